"""Several versions of one source in one partition: only the last one counts, so a warning reports the others."""

from pathlib import Path
from typing import Any

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from tests.chunkbus.samples import chunk, lines_of, provenance, put, put_chunks, validate

VERSIONS = findings.SEVERAL_VERSIONS


def of_version(index: int, digit: str | None, uri: str = "docs/a.md", **changes: Any) -> Record:
    checksum = None if digit is None else f"sha256:{digit * 64}"
    return chunk(index, provenance=provenance(source_uri=uri, source_checksum=checksum), **changes)


def details(folder: Path, *records: Record) -> list[tuple[int | None, str]]:
    found = validate(put(FolderRoot(folder), "p", lines_of(records)))
    assert {(finding.code, finding.is_error) for finding in found} <= {(VERSIONS, False)}
    return sorted((finding.line, finding.detail.partition(": ")[0]) for finding in found)


def test_all_but_the_last_version_are_counted(tmp_path: Path) -> None:
    records = [of_version(index, digit) for index, digit in enumerate("aabacc")]
    assert details(tmp_path, *records) == [(1, "4 chunks of 2 versions")]
    assert "docs/a.md" in validate(FolderRoot(tmp_path))[0].detail


def test_version_that_returns_counts_completely(tmp_path: Path) -> None:
    assert details(tmp_path, *[of_version(index, digit) for index, digit in enumerate("aabaa")]) == [
        (3, "1 chunk of 1 version")
    ]


def test_each_source_is_judged_for_itself(tmp_path: Path) -> None:
    records = [of_version(0, "a"), of_version(1, "b", "docs/b.md"), of_version(2, "b"), of_version(3, "c", "docs/b.md")]
    assert details(tmp_path / "two", *records) == [(1, "1 chunk of 1 version"), (2, "1 chunk of 1 version")]
    assert details(tmp_path / "apart", *records[:2]) == []


def test_versions_are_grouped_by_family(tmp_path: Path) -> None:
    """A source is identified by its id, else by its normalised name, and by its tenant."""
    own = [of_version(index, str(index), f"docs/{index}.md", parent_id="paper") for index in range(3)]
    assert details(tmp_path / "own", *own) == [(1, "2 chunks of 2 versions")]
    spelt = [of_version(0, "a"), of_version(1, "b", "./docs//a.md")]
    assert details(tmp_path / "spelt", *spelt) == [(1, "1 chunk of 1 version")]
    tenants = [
        of_version(0, "a", tenant_id="one"),
        of_version(1, "b", metadata={"tenant_id": "two"}),
        of_version(2, "c"),
    ]
    assert details(tmp_path / "tenants", *tenants) == []


def test_spellings_of_a_checksum_are_equal_and_no_checksum_differs(tmp_path: Path) -> None:
    bare = chunk(1, provenance=provenance(source_checksum="A" * 64))
    assert details(tmp_path / "spelt", of_version(0, "a"), bare) == []
    assert details(tmp_path / "none", of_version(0, None), of_version(1, None)) == []
    assert details(tmp_path / "some", of_version(0, "a"), of_version(1, None)) == [(1, "1 chunk of 1 version")]
    parsers = [chunk(n, provenance=provenance(parser={"parser_name": "p", "parser_version": str(n)})) for n in (0, 1)]
    assert details(tmp_path / "parsers", *parsers) == []


def test_versions_in_two_partitions_are_not_reported(tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "p1", lines_of([of_version(0, "a")]))
    assert validate(put(root, "p2", lines_of([of_version(1, "b")]))) == []


def test_more_sources_than_are_held_in_memory(tmp_path: Path) -> None:
    """Its versions are far apart, in other blocks of the file."""
    records = [of_version(index, "a", f"docs/{index}.md") for index in range(20_000)]
    records[9] = of_version(9, "a", "docs/twice.md")
    records[15_000] = of_version(15_000, "b", "docs/twice.md")
    put_chunks(FolderRoot(tmp_path), "p", lines_of(records))
    found = validate(FolderRoot(tmp_path))
    assert [(finding.code, finding.line) for finding in found][-1:] == [(VERSIONS, 10)]
    assert [finding.code for finding in found].count(VERSIONS) == 1
