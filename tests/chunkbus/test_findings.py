"""Every code with its exact place; validation changes no file."""

from pathlib import Path

import pytest
import time_machine

from chunksink.chunkbus import findings
from chunksink.chunkbus.findings import Finding, Severity
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.record_checks import Rules
from tests.chunkbus.cases import CASES, Case
from tests.chunkbus.samples import chunk, commit, lines_of, listing, manifest, places, put, validate, validate_all

CODES = sorted(
    value for name, value in vars(findings).items() if name[0] != "_" and name.isupper() and isinstance(value, str)
)


def test_every_code_has_a_case() -> None:
    assert sorted({case.code for case in CASES.values()}) == CODES
    assert len(CODES) >= 16


def test_every_code_has_its_meaning() -> None:
    assert sorted(findings.MEANINGS) == CODES
    assert all(meaning and remedy for meaning, remedy in findings.MEANINGS.values())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_findings_are_exact_and_nothing_is_touched(case: Case, tmp_path: Path) -> None:
    root = FolderRoot(tmp_path / "bus")
    case.build(root)
    before = listing(root.path)
    summary, found = validate_all(root, rules=Rules(case.require_source_checksum, case.fields))
    assert places(found) == case.places()
    assert all(finding.detail and "\n" not in finding.detail for finding in found)
    assert summary.ok is (case.severity == "warning")
    assert listing(root.path) == before


def test_clean_bus_has_no_findings(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    put(root, "a", lines_of([chunk(0), chunk(1)]))
    commit(root, "b", [chunk(2, uri="docs/b.md")])
    put(root, "empty", b"")
    summary, found = validate_all(root)
    assert found == []
    assert (summary.partitions, summary.chunks, summary.ok) == (3, 3, True)


def test_bad_partition_does_not_affect_the_others(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    CASES["broken JSON"].build(root)
    put(root, "good", lines_of([chunk(7, uri="docs/b.md")]))
    found = validate(root)
    assert {finding.partition for finding in found} == {CASES["broken JSON"].partition}


@pytest.mark.parametrize(
    ("stamp", "is_ahead"),
    [
        ("2026-07-14T09:00:00", True),
        ("2026-07-14T09:00:00+05:30", False),
        ("20260714T090000Z", True),
        ("2026-07-13T22:00:00-11:00", True),
        ("2026-07-14T03:34:59z", False),
        ("2026-07-14T03:35:01z", True),
        ("tomorrow", False),
    ],
)
def test_time_is_in_the_future_when_five_minutes_ahead(stamp: str, is_ahead: bool, tmp_path: Path) -> None:
    """A time without a zone is UTC: the first one is local time in India."""
    with time_machine.travel("2026-07-14T03:30:00Z", tick=False):
        found = validate(put(FolderRoot(tmp_path), "k", lines_of([chunk(0), chunk(1, created_at=stamp)])))
    assert [finding.line for finding in found if finding.code == findings.TIME_IN_FUTURE] == [2] * is_ahead


def test_times_in_the_future_are_one_finding_for_each_partition(tmp_path: Path) -> None:
    """Also if the file is examined in several blocks."""
    stamp = "9998-01-01T00:00:00Z"
    data = lines_of([chunk(number, text="x" * 3_000_000, created_at=stamp) for number in range(3)])
    root = FolderRoot(tmp_path)
    for key in ("a", "b"):
        put(root, key, data, manifest(key, data, created_at=stamp))
    assert places(validate(root)) == [(findings.TIME_IN_FUTURE, "warning", key, 1) for key in ("a", "b")]


def test_only_the_named_partitions_are_read(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    CASES["broken JSON"].build(root)
    put(root, "good", lines_of([chunk(7)]))
    summary, found = validate_all(root, ["good", "good"])
    assert (summary.partitions, found) == (1, [])


def test_absent_partition_is_reported(tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "here", b"")
    assert places(validate(root, ["absent"])) == [
        (findings.CHUNKS_FILE_MISSING, "error", "absent", None),
        (findings.MANIFEST_MISSING, "error", "absent", None),
    ]


def test_damaged_manifest_without_chunks_is_reported(tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "k", lines_of([chunk(0)]), b"{")
    root.chunks_file("k").unlink()
    assert places(validate(root)) == [
        (findings.CHUNKS_FILE_MISSING, "error", "k", None),
        (findings.JSON_PARSE, "error", "k", None),
    ]


def test_all_problems_of_a_line_are_named_at_once(tmp_path: Path) -> None:
    bad = chunk(0, text="a\0b", created_at="never", provenance={"inputs": []}, hashes={"text_hash": "0" * 64})
    found = validate(put(FolderRoot(tmp_path), "k", lines_of([bad])), rules=Rules(True))
    assert [(finding.code, finding.line) for finding in found] == [
        (findings.FIELD_MISSING, 1),
        (findings.FIELD_MISSING, 1),
        (findings.FIELD_MISSING, 1),
        (findings.SOURCE_CHECKSUM_MISSING, 1),
        (findings.WRONG_TYPE, 1),
        (findings.TEXT_HASH_MISMATCH, 1),
        (findings.ENCODING, 1),
    ]


def test_all_fields_of_a_wrong_type_are_named_at_once(tmp_path: Path) -> None:
    bad = chunk(0, chunk_id=7, chunk_index="1", span={"pages": {"page_start": "1"}}, created_at=None)
    found = validate(put(FolderRoot(tmp_path), "k", lines_of([bad])))
    assert [finding.code for finding in found] == [findings.WRONG_TYPE] * 3
    places_named = [finding.detail.rpartition(" - at ")[2] for finding in found]
    assert places_named == ["`$.chunk_id`", "`$.chunk_index`", "`$.span.pages.page_start`"]


def test_a_finding_reads_as_code_place_detail() -> None:
    error = Finding("A:b", Severity.ERROR, "key", 3, "is wrong")
    warning = Finding("A:b", Severity.WARNING, "key", None, "is odd")
    assert str(error) == "A:b key:3 is wrong"
    assert str(warning) == "A:b key is odd (warning)"
    assert (error.is_error, warning.is_error) == (True, False)
