"""One bus for each way to break the contract, with its expected findings: at least one for each code."""

from collections.abc import Callable
from dataclasses import dataclass, field

from chunksink.chunkbus import findings
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.settings.fields import FieldOptions
from chunksink.sinks.custom_fields import FieldSet
from tests.chunkbus.samples import (
    chunk,
    line_of,
    lines_of,
    manifest,
    provenance,
    put,
    put_chunks,
    put_manifest,
    without,
)

KEY = "2026-01-31"
GOOD = [chunk(0), chunk(1)]

# code, severity, partition, line
Place = tuple[str, str, str, int | None]


@dataclass(frozen=True)
class Case:
    code: str
    build: Callable[[FolderRoot], object]
    line: int | None = None
    severity: str = "error"
    also: list[Place] = field(default_factory=list)
    partition: str = KEY
    require_source_checksum: bool = False
    fields: FieldSet | None = None

    def places(self) -> list[Place]:
        return [(self.code, self.severity, self.partition, self.line), *self.also]


def _lines(*lines: bytes) -> Callable[[FolderRoot], object]:
    return lambda root: put(root, KEY, b"".join(line + b"\n" for line in lines))


def _records(*records: object) -> Callable[[FolderRoot], object]:
    return lambda root: put(root, KEY, lines_of(records))


def _manifest(**changes: object) -> Callable[[FolderRoot], object]:
    data = lines_of(GOOD)
    return lambda root: put(root, KEY, data, manifest(KEY, data, **changes))


def _chunks_missing(root: FolderRoot) -> None:
    put_manifest(root, KEY, manifest(KEY, b""))


def _manifest_missing(root: FolderRoot) -> None:
    put_chunks(root, KEY, lines_of(GOOD))


def _folder_for_chunks(root: FolderRoot) -> None:
    put_manifest(root, KEY, manifest(KEY, b""))
    root.chunks_file(KEY).mkdir(parents=True)


def _folder_for_manifest(root: FolderRoot) -> None:
    put_chunks(root, KEY, lines_of(GOOD))
    root.manifest_file(KEY).mkdir(parents=True)


def _misnamed(root: FolderRoot) -> None:
    put_chunks(root, "two words", lines_of(GOOD))
    put(root, KEY, lines_of(GOOD))


def _stray(root: FolderRoot) -> None:
    put(root, KEY, lines_of(GOOD))
    (root.canonical / "notes.ndjson").touch()


def _two_documents(root: FolderRoot) -> None:
    put(root, KEY, lines_of([chunk(0), chunk(1, uri="docs/b.md", document_id="document-2")]))  # counted as one


def _split_over_two(root: FolderRoot) -> None:
    put(root, "one", lines_of([chunk(0)]))
    put(root, "two", lines_of([chunk(1)]))


GOOD_LINE = line_of(chunk(0))
LONG = line_of(chunk(1, text="x" * (8 * 2**20)))

CASES: dict[str, Case] = {
    "chunks file missing": Case(findings.CHUNKS_FILE_MISSING, _chunks_missing),
    "manifest missing": Case(findings.MANIFEST_MISSING, _manifest_missing),
    "folder in place of chunks": Case(findings.UNREADABLE, _folder_for_chunks),
    "folder in place of a manifest": Case(findings.UNREADABLE, _folder_for_manifest),
    "broken JSON": Case(findings.JSON_PARSE, _lines(GOOD_LINE, b'{"text": "x"'), line=2),
    "manifest not JSON": Case(findings.JSON_PARSE, lambda root: put(root, KEY, lines_of(GOOD), b"{")),
    "not UTF-8": Case(findings.ENCODING, _lines(GOOD_LINE, b'{"text":"\xff"}'), line=2),
    "required field missing": Case(findings.FIELD_MISSING, _records(chunk(0), without(chunk(1), "text")), line=2),
    "manifest field missing": Case(
        findings.FIELD_MISSING,
        lambda root: put(root, KEY, b"", without(manifest(KEY, b""), "counts.failures")),
    ),
    "wrong type": Case(findings.WRONG_TYPE, _records(chunk(0, text=None)), line=1),
    "no time": Case(findings.WRONG_TYPE, _records(chunk(0, created_at="yesterday")), line=1),
    "a tenant in a number": Case(findings.WRONG_TYPE, _records(chunk(0, metadata={"tenant_id": 101})), line=1),
    "a family in a list": Case(findings.WRONG_TYPE, _records(chunk(0, metadata={"parent_id": ["a"]})), line=1),
    "manifest wrong type": Case(findings.WRONG_TYPE, _manifest(errors=[])),
    "other version": Case(findings.UNSUPPORTED_VERSION, _records(chunk(0, schema_version="chunks.v2")), line=1),
    "manifest of another version": Case(findings.UNSUPPORTED_VERSION, _manifest(schema_version="chunks.v2")),
    "line too long": Case(findings.LINE_TOO_LONG, _lines(GOOD_LINE, LONG, line_of(chunk(2))), line=2),
    "a range that ends before it begins": Case(
        findings.PLACE_IMPOSSIBLE,
        _records(chunk(0), chunk(1, span={"char_range": {"char_start": 9, "char_end": 5}})),
        line=2,
        severity="warning",
    ),
    "misnamed file": Case(findings.PARTITION_KEY, _misnamed, partition="canonical/two words.jsonl"),
    "file of another kind": Case(
        findings.PARTITION_KEY, _stray, partition="canonical/notes.ndjson", severity="warning"
    ),
    "duplicate ids": Case(
        findings.DUPLICATE_IDS, _records(chunk(0), chunk(1), chunk(0, text="other"), chunk(2)), line=3
    ),
    "manifest count": Case(
        findings.MANIFEST_MISMATCH, _manifest(counts={"documents": 1, "chunks_emitted": 3, "failures": 0})
    ),
    "manifest count too low": Case(
        findings.MANIFEST_MISMATCH, _manifest(counts={"documents": 1, "chunks_emitted": 1, "failures": 0})
    ),
    "manifest of another partition": Case(findings.MANIFEST_MISMATCH, _manifest(partition_key="2026-02-01")),
    "manifest counts too few documents": Case(findings.MANIFEST_MISMATCH, _two_documents, severity="warning"),
    "checksum": Case(findings.CHECKSUM_MISMATCH, _manifest(checksums={"chunks_file": "sha256:" + "0" * 64})),
    "text hash": Case(
        findings.TEXT_HASH_MISMATCH, _records(chunk(0), chunk(1, hashes={"text_hash": "sha256:" + "0" * 64})), line=2
    ),
    "text hash of another kind": Case(
        findings.TEXT_HASH_MISMATCH, _records(chunk(0, hashes={"text_hash": "md5:1234"})), line=1, severity="warning"
    ),
    "family in two partitions": Case(
        findings.FAMILY_SPLIT,
        _split_over_two,
        line=1,
        partition="one",
        also=[(findings.FAMILY_SPLIT, "error", "two", 1)],
    ),
    "family too short": Case(findings.FAMILY_SPLIT, _records(chunk(0, chunk_count=3), chunk(1, chunk_count=3)), line=1),
    "versions of a source": Case(
        findings.SEVERAL_VERSIONS,
        _records(chunk(0), chunk(1), chunk(2, provenance=provenance(source_checksum="b" * 64))),
        line=1,
        severity="warning",
    ),
    "source checksum of another kind": Case(
        findings.WRONG_TYPE,
        _records(chunk(0, provenance=provenance(source_checksum="md5:abc"))),
        line=1,
        severity="warning",
    ),
    "value of a custom field": Case(
        findings.FIELD_VALUE,
        _records(chunk(0, metadata={"due": "2026-01-31"}), chunk(1, metadata={"due": "soon"})),
        line=2,
        severity="warning",
        fields=FieldSet.of({"due": FieldOptions(type="datetime")}),
    ),
    "times in the future": Case(
        findings.TIME_IN_FUTURE,
        _records(chunk(0), chunk(1, created_at="9998-01-01T00:00:00Z"), chunk(2, created_at="9997-01-01")),
        line=2,
        severity="warning",
    ),
    "manifest in the future": Case(
        findings.TIME_IN_FUTURE, _manifest(created_at="9998-01-01T00:00:00Z"), severity="warning"
    ),
    "tombstone in the future": Case(
        findings.TIME_IN_FUTURE, _manifest(tombstones=[{"parent_id": "a", "at": "9998-01-01"}]), severity="warning"
    ),
    "source checksum by policy": Case(
        findings.SOURCE_CHECKSUM_MISSING,
        _records(chunk(0), chunk(1, provenance=provenance(source_uri="docs/b.md", source_checksum=None))),
        line=2,
        require_source_checksum=True,
    ),
}
