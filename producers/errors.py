"""Errors of the producers. Each docstring is the sentence its reader needs; messages add the facts.

ProducerError
├── SourceFailed        one source cannot become chunks; the others go on   (has the code for ledger and manifest)
├── RecordRefused       one record of a file cannot become a chunk; the others go on
└── IngestRefused       the whole run cannot start or go on, nothing was written
"""

from chunksink.chunkbus.errors import ChunksinkError


class ProducerError(ChunksinkError):
    """Something about a producer's input that its reader can act on."""


class SourceFailed(ProducerError):
    """The source was left out; its last good chunks stay."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class RecordRefused(ProducerError):
    """The record was left out; what else stands in the file goes on."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class IngestRefused(ProducerError):
    """Nothing was written."""


CHUNKING_FAILED = "CHUNKING_FAILED"
SOURCE_UNREADABLE = "SOURCE_UNREADABLE"
SOURCE_CHANGED = "SOURCE_CHANGED"
SOURCE_NAME_INVALID = "SOURCE_NAME_INVALID"
SOURCE_EMPTY = "SOURCE_EMPTY"
SCAN_WITHOUT_TEXT = "SCAN_WITHOUT_TEXT"
WITHOUT_TEXT = (SOURCE_EMPTY, SCAN_WITHOUT_TEXT)
FENCE_UNCLOSED = "FENCE_UNCLOSED"
LINE_ENDLESS = "LINE_ENDLESS"
NESTING_TOO_DEEP = "NESTING_TOO_DEEP"
NUL_REMOVED = "NUL_REMOVED"
TABLE_TOO_WIDE = "TABLE_TOO_WIDE"
FOLDER_LINKED = "FOLDER_LINKED"
FOLDER_IS_OUTPUT = "FOLDER_IS_OUTPUT"
FOLDER_OF_TOOL = "FOLDER_OF_TOOL"
CONVERTER_MISSING = "CONVERTER_MISSING"
EVENT_MALFORMED = "EVENT_MALFORMED"
EVENT_NOT_UTF8 = "EVENT_NOT_UTF8"
EVENT_TOO_LONG = "EVENT_TOO_LONG"
EVENT_KIND_UNKNOWN = "EVENT_KIND_UNKNOWN"
EVENT_WITHOUT_TIME = "EVENT_WITHOUT_TIME"
EVENT_OUT_OF_ORDER = "EVENT_OUT_OF_ORDER"
EVENT_BACK_IN_TIME = "EVENT_BACK_IN_TIME"
EVENT_WITHOUT_TEXT = "EVENT_WITHOUT_TEXT"
LABEL_WITHOUT_TEXT = "LABEL_WITHOUT_TEXT"
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
EXTRACTION_FAILED = "EXTRACTION_FAILED"
EXTRACTION_SKIPPED = "EXTRACTION_SKIPPED"

ODD = (EVENT_BACK_IN_TIME, FENCE_UNCLOSED, LINE_ENDLESS, NESTING_TOO_DEEP, NUL_REMOVED, TABLE_TOO_WIDE)
"""The source is read whole, but otherwise than may be meant."""

MEANINGS: dict[str, tuple[str, str]] = {
    CHUNKING_FAILED: (
        "the source cannot be chunked as its specification says",
        "mend the source; the message says where",
    ),
    SOURCE_UNREADABLE: ("the source cannot be opened or read", "mend its permissions or its disk"),
    SOURCE_CHANGED: ("the source was written to while it was being read", "run again when its writer has finished"),
    SOURCE_NAME_INVALID: ("the source's name is not Unicode, so no record can carry it", "rename the file"),
    SOURCE_EMPTY: (
        "the source has no text; it is a document without chunks, not a failure",
        "nothing, if that is meant",
    ),
    SCAN_WITHOUT_TEXT: (
        "the pages of a PDF are pictures and hold no text; it is a document without chunks, not a failure",
        "have its text recognised (`ocrmypdf IN.pdf OUT.pdf`) and ingest that",
    ),
    FENCE_UNCLOSED: (
        "code in Markdown is begun and never ended, so that all below it is code; it is read like that, and no failure",
        "end it with a line like the one that begins it",
    ),
    LINE_ENDLESS: (
        "a line, or a paragraph of HTML, has more than 20,000 characters: it is cut between sentences or words, and "
        "of the marks in it only links are read; no failure",
        "nothing, if that is meant",
    ),
    NESTING_TOO_DEEP: (
        "quotes or lists in Markdown stand a hundred deep in each other: what is deeper is text with its marks; "
        "no failure",
        "nothing, if that is meant",
    ),
    NUL_REMOVED: ("NUL characters (U+0000) stood in the source and were taken out; no failure", "nothing"),
    TABLE_TOO_WIDE: (
        "a row of a table is longer than a chunk may be: it stands in several, that of a parsed document in a longer "
        "one; no failure",
        "nothing, if that is meant; else make its cells shorter",
    ),
    FOLDER_LINKED: (
        "a folder that is a link was not followed, since it may lead round in a circle; not a failure",
        "name the link, or the folder that it leads to, as a source, if it is to be read",
    ),
    FOLDER_IS_OUTPUT: (
        "a folder holds what was made from sources and was not read: a bus of chunks (`canonical/` and `manifest/` are "
        "in it), the bus that the run writes to, or the home; not a failure",
        "nothing; name a bus as a source of its own, if another one's chunks are to be read",
    ),
    FOLDER_OF_TOOL: (
        "a folder holds what a tool put there and was not read: installed packages (`node_modules`, or an environment "
        "of Python with its `pyvenv.cfg`) or a cache (tagged with `CACHEDIR.TAG`); not a failure",
        "nothing; name the folder as a source of its own, if it is to be read",
    ),
    CONVERTER_MISSING: (
        "what reads this kind of source is not installed",
        "install the extra that the message names, or leave such sources out with `--as`",
    ),
    RECORD_FORM_UNKNOWN: (
        "the record is of no form that is read here; a file that merely lies in a folder is then no failure",
        "name the reader that it is for (`--as`), or give it the fields of its form (docs/seams.md)",
    ),
    BLOCK_WITHOUT_TEXT: (
        "a parsed document has blocks or tables that say nothing in the fields that are read, but something in others; "
        "told once of each document, and no failure",
        "give their text one of the names in docs/seams.md",
    ),
    PARTS_LEFT_OUT: (
        "what a file says beside its text is in no chunk: a DOCX in headers and footers of its pages, comments, "
        "diagrams, charts, letters that are drawn, and of drawings and tables, a PDF in comments, a page of HTML in "
        "drawings; told once of each file, and no failure",
        "nothing; write into the text what belongs to it",
    ),
    SITE_LEFT_OUT: (
        "what a page of HTML says is of its site, as menus and footers, is in no chunk of it; told once of each page, "
        "and no failure",
        "nothing; what belongs to the page should be no `<nav>`, and bear no role of that kind",
    ),
    TEXT_LEFT_OUT: (
        "a row has other long fields that could be its text, as an abstract or the page that it was taken from, or a "
        "parsed document has words in fields that are not read, as the footnotes of a block; they are in no chunk; "
        "told once of each row and document, and no failure",
        "say which field of rows is the text (`--field text=NAME`), or make a row of each; make blocks of what is no "
        "field of one (docs/seams.md)",
    ),
    RECORD_SUPERSEDED: (
        "a later record of the file stands for the same chunk, or for a later version of its source; not a failure",
        "nothing",
    ),
    SOURCE_IN_ANOTHER_FILE: (
        "a later file that was read has chunks of the same source: those count, and what this file has of it does not; "
        "not a failure",
        "if both are needed put all chunks of a source into one file: of several the last by name counts alone",
    ),
    FAMILY_INCOMPLETE: (
        "records of a source are missing: where it states its `chunk_count` the source keeps its last good chunks, "
        "else it goes on without them",
        "mend the records that were refused, or export the source again",
    ),
    IDENTITY_MISMATCH: (
        "an id is not the one that its formula gives for the record's own fields",
        "compute it as the form's specification says; the message names both values",
    ),
    EXTRACTION_FAILED: ("the record says that its extraction failed", "mend the source and extract it again"),
    EXTRACTION_SKIPPED: ("the record says that its source was skipped; not a failure", "nothing"),
    EVENT_MALFORMED: (
        "a line of a recorder log is no event: broken JSON, or a field that is missing or wrong",
        "mend what writes the log; the other lines were read",
    ),
    EVENT_NOT_UTF8: ("a line of a recorder log is not UTF-8", "mend what writes the log; the other lines were read"),
    EVENT_TOO_LONG: ("a line of a recorder log is longer than 8 MiB", "record smaller events"),
    EVENT_KIND_UNKNOWN: (
        "an event is of a kind, or has a code, that is not known; in an asciinema recording that is no failure",
        "see docs/seams.md for the kinds",
    ),
    EVENT_WITHOUT_TIME: (
        "an event says no `occurred_at_ms`, so nobody knows in which window it belongs",
        "mend what writes the log; the other lines were read",
    ),
    EVENT_OUT_OF_ORDER: (
        "an event's segment and ordinal are not after those of its pane's last event",
        "mend or sort the log; an append log cannot hold such an event",
    ),
    EVENT_BACK_IN_TIME: (
        "an event says an earlier time than the one before it in its pane; it is read where the log has it, and no "
        "failure",
        "set the recorder's clock, or sort the log if it was put together",
    ),
    EVENT_WITHOUT_TEXT: (
        "events hold nothing to read, only control sequences and white space; no failure",
        "nothing",
    ),
    LABEL_WITHOUT_TEXT: (
        "markers have labels below which nothing stands, so that they head no chunk; told once of a pane, and of what "
        "is for all panes; no failure",
        "nothing",
    ),
    RECORDING_MALFORMED: (
        "an asciinema recording breaks its format; none of it was read",
        "mend the line that the message names, or record again",
    ),
}
