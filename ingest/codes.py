"""The codes that an ingest reports about sources and records, with their meanings and remedies.

They appear in manifests, in the ledger and in reports; `docs/findings.md` lists them.
"""

CHUNKING_FAILED = "CHUNKING_FAILED"
SOURCE_UNREADABLE = "SOURCE_UNREADABLE"
SOURCE_CHANGED = "SOURCE_CHANGED"
SOURCE_NAME_INVALID = "SOURCE_NAME_INVALID"
SOURCE_EMPTY = "SOURCE_EMPTY"
SCAN_WITHOUT_TEXT = "SCAN_WITHOUT_TEXT"
FENCE_UNCLOSED = "FENCE_UNCLOSED"
NUL_REMOVED = "NUL_REMOVED"
FOLDER_LINKED = "FOLDER_LINKED"
FILE_LINKED = "FILE_LINKED"
FOLDER_IS_OUTPUT = "FOLDER_IS_OUTPUT"
FOLDER_OF_TOOL = "FOLDER_OF_TOOL"
CONVERTER_MISSING = "CONVERTER_MISSING"
EVENT_MALFORMED = "EVENT_MALFORMED"
EVENT_TOO_LONG = "EVENT_TOO_LONG"
EVENT_KIND_UNKNOWN = "EVENT_KIND_UNKNOWN"
EVENT_OUT_OF_ORDER = "EVENT_OUT_OF_ORDER"
RECORDING_MALFORMED = "RECORDING_MALFORMED"
RECORD_FORM_UNKNOWN = "RECORD_FORM_UNKNOWN"
BLOCK_WITHOUT_TEXT = "BLOCK_WITHOUT_TEXT"
RECORD_SUPERSEDED = "RECORD_SUPERSEDED"
PARTS_LEFT_OUT = "PARTS_LEFT_OUT"
SITE_LEFT_OUT = "SITE_LEFT_OUT"
TEXT_LEFT_OUT = "TEXT_LEFT_OUT"
SOURCE_IN_ANOTHER_FILE = "SOURCE_IN_ANOTHER_FILE"
FAMILY_INCOMPLETE = "FAMILY_INCOMPLETE"
IDENTITY_MISMATCH = "IDENTITY_MISMATCH"
TENANT_MISMATCH = "TENANT_MISMATCH"
EXTRACTION_FAILED = "EXTRACTION_FAILED"
EXTRACTION_SKIPPED = "EXTRACTION_SKIPPED"

WITH_REMEDY = (FENCE_UNCLOSED, RECORD_FORM_UNKNOWN, SCAN_WITHOUT_TEXT, SOURCE_IN_ANOTHER_FILE)
"""Notices that need not be failures, but whose remedy is shown after an ingest."""
ODD = (FENCE_UNCLOSED, NUL_REMOVED)
"""Notices about a source that was read completely, but perhaps not as its author intended."""

MEANINGS: dict[str, tuple[str, str]] = {
    CHUNKING_FAILED: ("the source cannot be read or chunked", "correct the source; the message says where"),
    SOURCE_UNREADABLE: (
        "the file cannot be opened or read, or the folder cannot be listed",
        "correct its permissions, or check the disk",
    ),
    SOURCE_CHANGED: ("the file was written to while it was read", "run again when its writer has finished"),
    SOURCE_NAME_INVALID: ("the file's name is not UTF-8, so no record can contain it", "rename the file"),
    SOURCE_EMPTY: ("the source has no text; not a failure", "nothing, if this is intended"),
    SCAN_WITHOUT_TEXT: (
        "the pages of a PDF are pictures and contain no text; not a failure",
        "run text recognition (`ocrmypdf IN.pdf OUT.pdf`) and ingest the result",
    ),
    FENCE_UNCLOSED: (
        "a code block in Markdown is never closed, so all text below it is code; not a failure",
        "close it with a line like the one that opens it",
    ),
    NUL_REMOVED: ("NUL characters (U+0000) were removed from the source; not a failure", "nothing"),
    FOLDER_LINKED: (
        "a link to a folder was not followed, because it may be circular; not a failure",
        "name the link, or the folder it leads to, as a source",
    ),
    FILE_LINKED: (
        "a link to a file was not followed: the file is outside the named folders, or does not exist; not a failure",
        "name the file as a source, or use `--follow-links`; delete the link if its file does not exist",
    ),
    FOLDER_IS_OUTPUT: (
        "a folder was skipped because it contains output of chunksink: a bus root, or the home; not a failure",
        "nothing; to read another bus root, name it as a source",
    ),
    FOLDER_OF_TOOL: (
        "a folder was skipped because a tool filled it: installed packages (`node_modules`, a Python environment) or a "
        "cache (`CACHEDIR.TAG`); not a failure",
        "nothing; to read it, name it as a source",
    ),
    CONVERTER_MISSING: (
        "the library that reads this format is not installed",
        "install the extra that the message names, or skip such files with `--exclude`",
    ),
    RECORD_FORM_UNKNOWN: (
        "no format recognises the records, perhaps without the `--field` options of their last reading; not a failure "
        "for a file that was found in a folder, unless it is a CSV without chunks, has changed since its chunks were "
        "made, or had failures in that reading",
        "ingest the file alone with `--field text=NAME` or `--as FORMAT`",
    ),
    BLOCK_WITHOUT_TEXT: (
        "a parsed document has blocks or tables without text in the fields that are read; counted once for each "
        "document, not a failure",
        "put their text into a field named `text`, `content` or, for tables, `rows`",
    ),
    PARTS_LEFT_OUT: (
        "a file contains more than its text, such as comments, headers and footers of pages, charts, drawings, "
        "pictures without a description, or rows beyond the limit of a workbook; counted once for each file or parsed "
        "document, not a failure",
        "nothing, or move such content into the text",
    ),
    SITE_LEFT_OUT: (
        "menus, banners and footers of an HTML page were skipped; counted once for each page, not a failure",
        "nothing; do not mark parts of the text as `<nav>`",
    ),
    TEXT_LEFT_OUT: (
        "a row has other long fields that could be its text; counted once for each row, not a failure",
        "name the field that is the text (`--field text=NAME`), or give each of them a row of its own",
    ),
    RECORD_SUPERSEDED: (
        "a later record of the file has the same chunk or a later version of the source, and replaces this one; not a "
        "failure",
        "nothing",
    ),
    SOURCE_IN_ANOTHER_FILE: (
        "another file with a later name has chunks of the same source, and only those count; not a failure",
        "delete the file that is out of date; if both are needed, put all chunks of a source into one file",
    ),
    FAMILY_INCOMPLETE: (
        "records of a source are missing: if it states its `chunk_count`, it keeps its last good chunks, else it is "
        "ingested without the missing records",
        "correct the records that were refused, or export the source again",
    ),
    IDENTITY_MISMATCH: (
        "an id or an index contradicts the record's other fields",
        "compute it as the format's specification says; the message contains both values",
    ),
    TENANT_MISMATCH: (
        "a record names another tenant than `--tenant`",
        "correct the record; if its producer may write for every tenant, ingest the file without `--tenant`",
    ),
    EXTRACTION_FAILED: ("the record says that its extraction failed", "correct the source and extract it again"),
    EXTRACTION_SKIPPED: ("the record says that its source was skipped; not a failure", "nothing"),
    EVENT_MALFORMED: (
        "a line of a recorder log is not an event: broken JSON, not UTF-8, or a field that is missing or wrong",
        "fix the program that writes the log; the other lines were read",
    ),
    EVENT_TOO_LONG: ("a line of a recorder log is longer than 8 MiB", "record smaller events"),
    EVENT_KIND_UNKNOWN: (
        "an event has an unknown kind or code; not a failure in an asciinema recording",
        "use the kinds ingress_text, egress_output, control_marker, lifecycle_marker, or the codes i, o, m, x, r",
    ),
    EVENT_OUT_OF_ORDER: (
        "an event's segment and ordinal are not after those of the last event in its pane",
        "sort the log, or fix the recorder: it must append events in order",
    ),
    RECORDING_MALFORMED: (
        "an asciinema recording is malformed; none of it was read",
        "correct the line that the message names, or record again",
    ),
}
