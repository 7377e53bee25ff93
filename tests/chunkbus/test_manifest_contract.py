"""A manifest's required fields, according to the code and the published JSON Schema, and its match with the chunks."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.errors import InvalidManifest
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import (
    ManifestProducer,
    Tombstone,
    decode_manifest,
    encode_manifest,
    examine_manifest,
)
from chunksink.chunkbus.reader import read_manifest
from chunksink.chunkbus.writer import PartitionWriter
from tests.chunkbus.samples import (
    NOON,
    PRODUCER,
    chunk,
    commit,
    lines_of,
    manifest,
    put,
    schema_accepts,
    validate,
    without,
)
from tests.conftest import HEAVY

REQUIRED = [
    "schema_version",
    "partition_key",
    "created_at",
    "producer",
    "producer.name",
    "producer.version",
    "counts",
    "counts.documents",
    "counts.chunks_emitted",
    "counts.failures",
    "checksums",
    "checksums.chunks_file",
    "idempotency",
    "idempotency.skipped",
    "errors",
]


def problems(record: dict[str, Any] | bytes) -> list[tuple[str, str]]:
    data = record if isinstance(record, bytes) else json.dumps(record).encode()
    return [(problem.code, problem.detail) for problem in examine_manifest("k", data)]


def valid(**changes: Any) -> dict[str, Any]:
    return manifest("k", b"", **changes)


@pytest.mark.parametrize("path", REQUIRED)
def test_required_field_when_missing_is_an_error(path: str) -> None:
    assert problems(valid()) == []
    assert schema_accepts("manifest", valid())
    assert problems(without(valid(), path)) == [(findings.FIELD_MISSING, f"the manifest lacks {path}")]
    assert not schema_accepts("manifest", without(valid(), path))


@pytest.mark.parametrize(
    "changes",
    [
        {"counts": {"documents": 1, "chunks_emitted": "2", "failures": 0}},
        {"counts": {"documents": 1, "chunks_emitted": True, "failures": 0}},
        {"counts": {"documents": 1, "chunks_emitted": -1, "failures": 0}},
        {"counts": None},
        {"errors": {"SCHEMA_INVALID:json_parse": "many"}},
        {"producer": "tests 1"},
        {"created_at": "noon"},
        {"created_at": 5},
        {"checksums": {"chunks_file": "md5:0"}},
        {"checksums": {"chunks_file": None}},
        {"idempotency": {"skipped": 1.5}},
        {"tombstones": {"parent_id": "x"}},
        {"tombstones": [{"parent_id": "x", "at": "noon"}]},
    ],
    ids=str,
)
def test_field_when_of_a_wrong_type_is_an_error(changes: dict[str, Any]) -> None:
    assert [code for code, _ in problems(valid(**changes))] == [findings.WRONG_TYPE]
    is_time = "noon" in str(changes)
    assert schema_accepts("manifest", valid(**changes)) is is_time


def test_tombstone_without_an_id_is_an_error() -> None:
    good = valid(tombstones=[{"document_id": "d", "reason": "asked for", "at": NOON}, {"parent_id": "p"}])
    bad = valid(tombstones=[{"parent_id": "p"}, {"reason": "whom?"}])
    assert problems(good) == []
    found = problems(bad)
    assert [code for code, _ in found] == [findings.FIELD_MISSING]
    assert "tombstones[1]" in found[0][1]
    assert (schema_accepts("manifest", good), schema_accepts("manifest", bad)) == (True, False)


def test_bare_checksums_and_unknown_fields_are_accepted() -> None:
    checksum = {"chunks_file": "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"}
    accepted = valid(checksums=checksum, notes={"anything": 1}, input_sources=[{"uri": "a"}])
    assert problems(accepted) == []
    assert schema_accepts("manifest", accepted)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", findings.JSON_PARSE),
        (b" \n", findings.JSON_PARSE),
        (b"null", findings.JSON_PARSE),
        (b"[]", findings.JSON_PARSE),
        (b'{"a":1,"a":2}', findings.JSON_PARSE),
        (b'{"counts": NaN}', findings.JSON_PARSE),
        (b"[" * 10_000, findings.JSON_PARSE),
        (b"\xef\xbb\xbf{}", findings.ENCODING),
        (b"{}\x00", findings.ENCODING),
        (b"\xff\xfe{", findings.ENCODING),
    ],
    ids=repr,
)
def test_manifest_when_not_a_json_object_is_an_error(data: bytes, code: str, tmp_path: Path) -> None:
    assert [found for found, _ in problems(data)] == [code]
    root = put(FolderRoot(tmp_path), "k", lines_of([chunk()]), data)
    assert [(finding.code, finding.line) for finding in validate(root)] == [(code, None)]
    with pytest.raises(InvalidManifest):
        read_manifest(root, "k")


def test_manifest_when_cut_off_anywhere_is_an_error(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commit(root, "k", [chunk()])
    whole = root.manifest_file("k").read_bytes()
    for length in range(len(whole) - 1):  # its last byte is a line break
        root.manifest_file("k").write_bytes(whole[:length])
        found = validate(root)
        assert [(finding.code, finding.line) for finding in found] == [(findings.JSON_PARSE, None)], length


def test_manifest_when_encoded_decodes_to_the_same() -> None:
    written = decode_manifest(json.dumps(valid(tombstones=[{"parent_id": "p", "reason": "gone", "at": NOON}])).encode())
    data = encode_manifest(written)
    assert decode_manifest(data) == written
    assert examine_manifest("k", data) == []
    assert json.loads(data)["tombstones"] == [{"parent_id": "p", "reason": "gone", "at": NOON}]


@pytest.mark.parametrize(
    "facts",
    [
        {"created_at": "noon"},
        {"producer": ManifestProducer("", "1")},
        {"documents": -1},
        {"errors": {"x": -1}},
        {"tombstones": [Tombstone(reason="whom?")]},
    ],
    ids=str,
)
def test_commit_when_the_manifest_would_be_invalid_is_refused(facts: dict[str, Any], tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commit(root, "k", [chunk(0)])
    with PartitionWriter(root, "k") as writer:
        writer.add(chunk(1))
        with pytest.raises(InvalidManifest):
            writer.commit(**{"documents": 1, "producer": PRODUCER, "created_at": NOON} | facts)
    assert root.chunks_file("k").read_bytes() == lines_of([chunk(0)])
    assert validate(root) == []


def counted(root: FolderRoot, records: list[dict[str, Any]], documents: int, skipped: int = 0) -> list[str]:
    """The details of the findings for a manifest with this number of documents."""
    data = lines_of(records)
    counts = {"documents": documents, "chunks_emitted": len(records), "failures": 0}
    put(root, "k", data, manifest("k", data, counts=counts, idempotency={"skipped": skipped}))
    found = validate(root)
    assert {(finding.code, finding.severity.value) for finding in found} <= {(findings.MANIFEST_MISMATCH, "warning")}
    return [finding.detail for finding in found]


def of_documents(number: int, times: int = 1) -> list[dict[str, Any]]:
    """One chunk of each document in turn, `times` times."""
    return [
        chunk(f"{time}-{one}", uri=f"docs/{one}.md", document_id=f"d{one}")  # type: ignore[arg-type]
        for time in range(times)
        for one in range(number)
    ]


@pytest.mark.parametrize(("documents", "skipped"), [(0, 0), (2, 0), (1, 1)])
def test_documents_when_fewer_than_in_the_file_are_a_warning(documents: int, skipped: int, tmp_path: Path) -> None:
    (detail,) = counted(FolderRoot(tmp_path), of_documents(3, times=2), documents, skipped)
    assert re.findall("[0-9]+", detail) == [str(documents), str(skipped), "3"]


@pytest.mark.parametrize(("documents", "skipped"), [(3, 0), (1, 2), (3, 3), (1_000, 0)])
def test_documents_when_more_than_in_the_file_are_accepted(documents: int, skipped: int, tmp_path: Path) -> None:
    assert counted(FolderRoot(tmp_path), of_documents(3, times=2), documents, skipped) == []


def test_documents_when_the_partition_is_empty_are_accepted(tmp_path: Path) -> None:
    assert counted(FolderRoot(tmp_path), [], 0) == counted(FolderRoot(tmp_path), [], 7) == []


def test_documents_are_counted_as_sources_or_versions(tmp_path: Path) -> None:
    """Several documents of one source, such as a volume of articles; one document of several tenants."""
    articles = [chunk(number, document_id=f"article-{number}") for number in range(3)]
    assert counted(FolderRoot(tmp_path / "1"), articles, 1) == []
    tenants = [chunk(number, tenant_id=f"tenant-{number}") for number in range(3)]
    assert counted(FolderRoot(tmp_path / "2"), tenants, 1) == []
    assert len(counted(FolderRoot(tmp_path / "3"), [*articles, *of_documents(2)], 2)) == 1


def test_documents_when_many_are_counted_exactly(tmp_path: Path) -> None:
    """More than are held in memory, and each of them twice, far apart."""
    records = of_documents(number := 20_000 if HEAVY else 5_000, times=2)
    assert counted(FolderRoot(tmp_path), records, number) == []
    (detail,) = counted(FolderRoot(tmp_path), records, number - 1)
    assert re.findall("[0-9]+", detail) == [str(number - 1), "0", str(number)]
