"""Split families: one version of a source must be complete in one partition. Similar cases are not reported."""

from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.record_checks import Rules
from tests.chunkbus.samples import (
    chunk,
    codes,
    line_of,
    lines_of,
    places,
    provenance,
    put,
    put_chunks,
    validate,
    without,
)
from tests.conftest import HEAVY

SPLIT = findings.FAMILY_SPLIT


def bus(folder: Path, **partitions: list[Record]) -> FolderRoot:
    root = FolderRoot(folder)
    for key, records in partitions.items():
        put(root, key, lines_of(records))
    return root


def splits(folder: Path, **partitions: list[Record]) -> list[tuple[str, int | None]]:
    found = validate(bus(folder, **partitions))
    assert codes(found) == [SPLIT] * len(found)
    assert all(finding.is_error for finding in found)
    return [(finding.partition, finding.line) for finding in found]


def with_provenance(index: int, **changes: Any) -> Record:
    return chunk(index, provenance=provenance(**changes))


def test_family_when_in_two_partitions_is_split(tmp_path: Path) -> None:
    other = chunk(9, uri="docs/b.md")
    root = bus(tmp_path, p1=[other, chunk(0), chunk(1)], p2=[chunk(2)], p3=[chunk(8, uri="docs/c.md")])
    found = validate(root)
    assert places(found) == [(SPLIT, "error", "p1", 2), (SPLIT, "error", "p2", 1)]
    assert "'document-1' of 'docs/a.md'" in found[0].detail
    assert "partition p2" in found[0].detail
    assert "partition p1" in found[1].detail


def test_family_when_two_of_three_partitions_agree_is_split(tmp_path: Path) -> None:
    assert splits(tmp_path, p1=[chunk(0)], p2=[chunk(1)], p3=[chunk(0)]) == [("p1", 1), ("p2", 1), ("p3", 1)]


@pytest.mark.parametrize(
    "fields",
    [{"chunk_count": 3}, {"metadata": {"chunk_count": 3}}, {"chunk_count": 3, "metadata": {"chunk_count": 1}}],
    ids=str,
)
def test_family_with_fewer_chunks_than_chunk_count_is_split(fields: dict[str, Any], tmp_path: Path) -> None:
    def part(index: int) -> Record:
        return chunk(index, **fields)

    assert splits(tmp_path / "short", p=[part(0), part(1)]) == [("p", 1)]
    assert splits(tmp_path / "whole", p=[part(0), part(1), part(2)]) == []
    assert splits(tmp_path / "twice", p1=[part(0), part(1)], p2=[part(0), part(1)]) == [("p1", 1), ("p2", 1)]


def test_family_with_a_repeated_and_a_missing_chunk_is_split(tmp_path: Path) -> None:
    records = [chunk(0, chunk_count=2), chunk(0, chunk_count=2)]
    assert codes(validate(bus(tmp_path, p=records))) == [findings.DUPLICATE_IDS]
    # The ids are reported as repeated; the missing chunk is reported if the file has fewer lines than chunk_count.
    assert codes(validate(bus(tmp_path, p=[records[0]]))) == [SPLIT]


def test_family_when_its_lines_are_apart_is_whole(tmp_path: Path) -> None:
    records = [chunk(index, uri=f"docs/{index % 3}.md", chunk_count=4) for index in range(12)]
    assert splits(tmp_path / "whole", p=records) == []
    assert splits(tmp_path / "short", p=records[:-1]) == [("p", 3)]


@pytest.mark.parametrize("count", [2**62, 2**63, 2**64, 10**30, 10**300])
def test_family_with_a_huge_chunk_count_is_split(count: int, tmp_path: Path) -> None:
    for name, fields in (("a", {"metadata": {"chunk_count": count}}), ("b", {"chunk_count": count})):
        root = put(FolderRoot(tmp_path / name), "p", line_of(chunk(**fields)) + b"\n")
        assert set(codes(validate(root))) <= {SPLIT, findings.WRONG_TYPE}
    assert codes(validate(put(FolderRoot(tmp_path), "p", lines_of([chunk(chunk_count=2**62)])))) == [SPLIT]


@pytest.mark.parametrize("count", [True, -5, 2.5, "7", None, [3]], ids=repr)
def test_chunk_count_in_metadata_when_not_an_integer_is_ignored(count: object, tmp_path: Path) -> None:
    assert splits(tmp_path, p=[chunk(0, metadata={"chunk_count": count})]) == []


VERSIONS: list[dict[str, Any]] = [
    {"source_checksum": "sha256:" + "b" * 64},
    {"parser": {"parser_name": "markdown", "parser_version": "2"}},
    {"parser": {"parser_name": "other", "parser_version": "1"}},
    {"canonicalizer": {"canonicalizer_name": "plain", "canonicalizer_version": "2"}},
    {"canonicalizer": {"canonicalizer_name": "other", "canonicalizer_version": "1"}},
    {"parser": None, "parser_name": "markdown", "parser_version": "2"},
]


def test_version_is_equal_for_nested_and_flat_names(tmp_path: Path) -> None:
    flat = {"parser": None, "parser_name": "markdown", "parser_version": "1"}
    assert splits(tmp_path, p1=[chunk(0)], p2=[with_provenance(1, **flat)]) == [("p1", 1), ("p2", 1)]


def test_version_differs_for_two_flat_parsers(tmp_path: Path) -> None:
    def read_by(name: str, index: int) -> Record:
        return with_provenance(index, parser=None, parser_name=name, parser_version="1")

    found = splits(tmp_path, p1=[read_by("x", 0), read_by("y", 1)], p2=[read_by("y", 2)])
    assert found == [("p1", 2), ("p2", 1)]


@pytest.mark.parametrize(
    "others",
    [
        [chunk(1), chunk(0)],
        [chunk(1), chunk(2)],
        [chunk(2, tenant_id="None")],
        [chunk(2, uri="docs/A.md")],
        *([with_provenance(2, **changes)] for changes in VERSIONS),
    ],
    ids=str,
)
def test_family_when_copied_or_of_other_versions_is_not_split(others: list[Record], tmp_path: Path) -> None:
    assert splits(tmp_path, p1=[chunk(0), chunk(1)], p2=others) == []


def test_families_of_other_tenants_are_separate(tmp_path: Path) -> None:
    mine, yours = chunk(0, tenant_id="a"), chunk(1, metadata={"tenant_id": "b"})
    assert splits(tmp_path / "1", p1=[mine], p2=[yours], p3=[chunk(2)]) == []
    again = chunk(3, metadata={"tenant_id": "a"})
    assert splits(tmp_path / "2", p1=[mine], p2=[again]) == [("p1", 1), ("p2", 1)]


def test_family_without_source_checksum_is_not_split_between_partitions(tmp_path: Path) -> None:
    for absent in (None, ""):
        one, two = with_provenance(0, source_checksum=absent), with_provenance(1, source_checksum=absent)
        assert splits(tmp_path / repr(absent), p1=[one], p2=[two]) == []


def test_family_without_source_checksum_can_lack_chunks(tmp_path: Path) -> None:
    def part(index: int) -> Record:
        return {**with_provenance(index, source_checksum=None), "chunk_count": 2}

    assert splits(tmp_path / "short", p1=[part(0)], p2=[part(1)]) == [("p1", 1), ("p2", 1)]
    assert splits(tmp_path / "whole", p1=[part(0), part(1)], p2=[part(2), part(3)]) == []


def test_family_is_identified_by_parent_id_then_source_then_document(tmp_path: Path) -> None:
    own = [chunk(index, uri=f"docs/{index}.md", parent_id="paper") for index in range(2)]
    assert splits(tmp_path / "own", p1=[own[0]], p2=[own[1]]) == [("p1", 1), ("p2", 1)]
    spelt = [chunk(0, uri="docs/a.md"), chunk(1, uri="./docs//a.md", document_id="other")]
    assert splits(tmp_path / "source", p1=[spelt[0]], p2=[spelt[1]]) == [("p1", 1), ("p2", 1)]


def test_split_families_among_many_are_found(tmp_path: Path) -> None:
    """In `make soak` more rows than are held in memory: 12 partitions of 4,000 families each, of which one is split."""
    root, families = FolderRoot(tmp_path), 4_000 if HEAVY else 1_000
    for number in range(12):
        records = [chunk(index, uri=f"docs/{number}-{index}.md") for index in range(families)]
        if number in (3, 7):
            records[families // 2] = chunk(100_000 + number, uri="docs/split.md")
        put_chunks(root, f"p{number:02}", lines_of(records))
    found = [finding for finding in validate(root) if finding.code != findings.MANIFEST_MISSING]
    assert places(found) == [(SPLIT, "error", key, families // 2 + 1) for key in ("p03", "p07")]


def test_version_is_equal_for_two_spellings_of_a_checksum(tmp_path: Path) -> None:
    digits = "ab" * 32
    spelt = [with_provenance(n, source_checksum=c) for n, c in enumerate((f"sha256:{digits}", digits.upper()))]
    assert splits(tmp_path, a=spelt[:1], b=spelt[1:]) == [("a", 1), ("b", 1)]


def short(index: int, uri: str = "docs/a.md", **changes: Any) -> Record:
    """One of three chunks of its source."""
    return chunk(index, uri=uri, chunk_count=3, **changes)


REFUSED = {
    "a wrong type": line_of(short(1, text=None)),
    "cut off": line_of(short(1))[:-20],
    "too long": line_of(short(1, text="x" * (8 * 2**20))),
    "no parser": line_of(short(1, provenance=without(provenance(), "parser"))),
    "another hash": line_of(short(1, hashes={"text_hash": "sha256:" + "0" * 64})),
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_family_in_a_partition_with_a_refused_line_is_not_reported(line: bytes, tmp_path: Path) -> None:
    """That line may be its missing chunk, and must be corrected first."""
    around = [line_of(short(0)), line, line_of(short(2))]
    for name, lines in (("within", around), ("last", [*around[::2], line])):
        found = validate(put(FolderRoot(tmp_path / name), "p", b"\n".join(lines) + b"\n"))
        assert len(found) == 1
        assert SPLIT not in codes(found)


def test_family_in_another_partition_than_a_refused_line_is_reported(tmp_path: Path) -> None:
    found = validate(bus(tmp_path, p1=[chunk(0), chunk(1, text=None)], p2=[short(0, uri="docs/b.md")]))
    assert [(finding.partition, finding.code == SPLIT) for finding in found] == [("p1", False), ("p2", True)]


@pytest.mark.parametrize("refused", [chunk(1, text=None), chunk(1, hashes={"text_hash": "sha256:" + "0" * 64})])
def test_split_family_with_a_refused_line_is_not_reported(refused: Record, tmp_path: Path) -> None:
    """The refused line may be the missing chunk."""
    (code,) = codes(validate(bus(tmp_path, p1=[chunk(0), refused], p2=[chunk(7)])))
    assert code != SPLIT


def test_family_without_a_required_checksum_is_not_reported(tmp_path: Path) -> None:
    odd = short(1, provenance=without(provenance(), "source_checksum"))
    root = put(FolderRoot(tmp_path), "p", lines_of([short(0), odd, short(2)]))
    found = validate(root, rules=Rules(True))
    assert codes(found) == [findings.SOURCE_CHECKSUM_MISSING]


def test_split_family_when_two_parsers_read_it_names_them(tmp_path: Path) -> None:
    parsers = [{"parser_name": "markdown", "parser_version": str(number)} for number in (1, 2)]
    records = [chunk(n, chunk_count=2, provenance=provenance(parser=parsers[n])) for n in (0, 1)]
    found = validate(put(FolderRoot(tmp_path), "p", lines_of(records)))
    assert codes(found) == [SPLIT, SPLIT]
    for number, finding in enumerate(found, start=1):
        assert "chunk_count is 2" in finding.detail
        assert f"'markdown {number}'" in finding.detail
        assert "only 1 chunk made" in finding.detail
