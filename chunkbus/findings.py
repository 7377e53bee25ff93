"""Problems of a chunk bus, as data: codes, meanings, remedies. `docs/findings.md` is generated from it."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Problem:
    """What is wrong with one line or manifest, without its place."""

    code: str
    detail: str
    severity: Severity = Severity.ERROR


def has_error(problems: tuple[Problem, ...]) -> bool:
    """Whether a line with these problems is refused."""
    return any(problem.severity is Severity.ERROR for problem in problems)


@dataclass(frozen=True)
class Finding:
    """A problem and its place. A partition with an error is not accepted: its indexed documents stay unchanged."""

    code: str
    severity: Severity
    partition: str
    line: int | None
    detail: str

    def __str__(self) -> str:
        return f"{self.code} {self.reason}"

    @property
    def reason(self) -> str:
        """The place and the problem."""
        place = f"{self.partition}:{self.line}" if self.line is not None else self.partition
        mark = "" if self.severity is Severity.ERROR else " (warning)"
        return f"{place} {self.detail}{mark}"

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


CHUNKS_FILE_MISSING = "MISSING_OUTPUT:chunks_file"
MANIFEST_MISSING = "MISSING_OUTPUT:manifest"
JSON_PARSE = "SCHEMA_INVALID:json_parse"
ENCODING = "SCHEMA_INVALID:encoding"
FIELD_MISSING = "SCHEMA_INVALID:required_field_missing"
WRONG_TYPE = "SCHEMA_INVALID:wrong_type"
FIELD_VALUE = "SCHEMA_INVALID:field_value"
UNSUPPORTED_VERSION = "SCHEMA_INVALID:unsupported_version"
LINE_TOO_LONG = "SCHEMA_INVALID:line_too_long"
PLACE_IMPOSSIBLE = "SCHEMA_INVALID:impossible_place"
PARTITION_KEY = "SCHEMA_INVALID:partition_key"
DUPLICATE_IDS = "INTEGRITY_VIOLATION:duplicate_ids"
MANIFEST_MISMATCH = "INTEGRITY_VIOLATION:manifest_mismatch"
CHECKSUM_MISMATCH = "INTEGRITY_VIOLATION:checksum_mismatch"
TEXT_HASH_MISMATCH = "INTEGRITY_VIOLATION:text_hash_mismatch"
FAMILY_SPLIT = "INTEGRITY_VIOLATION:family_split"
SEVERAL_VERSIONS = "INTEGRITY_VIOLATION:several_versions"
TIME_IN_FUTURE = "PROVENANCE_INVALID:time_in_future"
SOURCE_CHECKSUM_MISSING = "PROVENANCE_INVALID:missing_source_checksum"
UNREADABLE = "MISSING_OUTPUT:unreadable"

_AGAIN = "write the partition again (with `chunksink ingest`: move its files away, then ingest all its sources)"

MEANINGS: dict[str, tuple[str, str]] = {
    CHUNKS_FILE_MISSING: (
        "a manifest exists without its chunks file",
        "restore the chunks file, or write the partition again (with `chunksink ingest`: move the manifest away, "
        "then ingest all its sources)",
    ),
    MANIFEST_MISSING: (
        "a chunks file exists without its manifest",
        "let its producer finish, since a partition without a manifest was never committed; if the manifest was "
        f"lost, restore it, or {_AGAIN}",
    ),
    UNREADABLE: ("a file of the bus cannot be read", "correct its permissions, or check the disk"),
    JSON_PARSE: (
        "a line, or the manifest, is not one JSON object: broken syntax, an empty line, a key that occurs twice, "
        "NaN, nesting too deep",
        "correct what the finding names (one record on each line, each key once, no NaN), or restore the file from a "
        f"copy; if the syntax ends too early, the end was probably cut off: {_AGAIN}",
    ),
    ENCODING: (
        "not UTF-8, a byte order mark, NUL bytes, CR LF line ends, a lone surrogate",
        "write plain UTF-8 with \\n line ends, and no U+0000 or lone surrogate in a text, id or name, even escaped",
    ),
    LINE_TOO_LONG: ("a line is longer than 8 MiB", "split the chunk; engines cut off or refuse such texts"),
    FIELD_MISSING: ("a required field is absent or empty", "fill it where the chunk is produced"),
    WRONG_TYPE: (
        "a known field has a type that the contract does not allow, or a time that is not ISO 8601 (a warning if a "
        "`source_checksum` is not `sha256:<hex>`)",
        "`chunksink schema chunk` (or `manifest`) prints the allowed types",
    ),
    FIELD_VALUE: (
        "(a warning) a value does not have the type of its custom field",
        "correct it where the chunk is produced, or change `type` in [fields.NAME]; the chunk is indexed without this "
        "value",
    ),
    UNSUPPORTED_VERSION: (
        "`schema_version` is not one this release reads",
        "upgrade chunksink, or migrate the chunks",
    ),
    PLACE_IMPOSSIBLE: (
        "(a warning) an impossible place: `span.pages` or `span.char_range` below 0 or ending before it begins, or a "
        "number above 2^53-1",
        "correct it where the chunk is produced; the chunk is indexed without this place",
    ),
    PARTITION_KEY: (
        "a file's name is not a partition key, so nothing reads it (a warning for a folder or a file of another kind "
        "in `canonical/` or `manifest/`; hidden files are ignored)",
        "rename it to KEY.jsonl or KEY.manifest.json, where KEY is 1 to 128 of A-Z a-z 0-9 . _ - and begins with a "
        "letter or digit; move files that are neither chunks nor a manifest elsewhere",
    ),
    DUPLICATE_IDS: (
        "a `chunk_id` occurs twice in one partition",
        "keep one of them, or make the ids differ, for example by deriving them from document, place and text",
    ),
    MANIFEST_MISMATCH: (
        "the manifest's key differs from its file name, or its counts differ from the chunks file, because lines were "
        "lost or added (a warning if only its number of documents is too small)",
        _AGAIN,
    ),
    CHECKSUM_MISMATCH: (
        "the chunks file is damaged or was changed after its commit: its checksum is not the one in the manifest",
        f"restore the chunks file from a copy, or {_AGAIN}",
    ),
    TEXT_HASH_MISMATCH: (
        "a stored `text_hash` is not the hash of the text (a warning if it is not 64 hex digits at all)",
        "recompute hashes where the chunk is produced",
    ),
    FAMILY_SPLIT: (
        "the chunks of one version of a source are in several partitions, or there are fewer of them than its "
        "`chunk_count`; not checked in a partition that has a line with an error",
        "write all chunks of one source into one partition; if none is missing, correct its `chunk_count`",
    ),
    SEVERAL_VERSIONS: (
        "(a warning) chunks of one source in one partition have several `source_checksum`s: only those with the "
        "checksum of the source's last chunk in the file are indexed",
        "if they are different documents, give each its own `source_uri` (and `parent_id`); if they are one document, "
        "remove its earlier versions",
    ),
    TIME_IN_FUTURE: (
        "(a warning, once for each partition) a `created_at`, or the `at` of a tombstone, was more than five minutes "
        "ahead of this machine's clock when the partition was read. Until the given time, newer versions and "
        "tombstones of the same source count as older",
        "write times with a zone, e.g. 2026-07-14T09:00:00+05:30, since a time without one is UTC; or set the clock "
        "right; then write the partition again",
    ),
    SOURCE_CHECKSUM_MISSING: (
        "`provenance.source_checksum` is absent, and the configuration requires it",
        "record the checksum, or switch off `require_source_checksum`",
    ),
}
