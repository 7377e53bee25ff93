"""Grouping records by family: order, versions, incomplete families, and what one bad record costs."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import family_key
from chunksink.ingest import codes
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.family_groups import Draft, group_records
from chunksink.ingest.json_records import NumberedRecord
from chunksink.ingest.model import Empty, Family, Item, Notice
from tests.ingest.reading import notices, source_of, texts, write_lines

PROVENANCE = {
    "parser": {"parser_name": "p", "parser_version": "1"},
    "canonicalizer": {"canonicalizer_name": "c", "canonicalizer_version": "1"},
    "inputs": [],
}


def draft(numbered: NumberedRecord) -> Draft:
    """Of a record {"of": family, "n": index, "text": ..., "version", "count", "not_indexed"}."""
    record = numbered.record
    if "of" not in record:
        raise RecordRefused(findings.FIELD_MISSING, "has no family")
    fields = {name: record[name] for name in ("index", "count", "chunk_id") if name in record}
    code, is_failure = record.get("not_indexed", (None, False))
    return Draft(
        name=record["of"],
        parent=record["of"],
        tenant=None,
        version=(record.get("version", 1),),
        document_id=f"{record['of']}-{record.get('version', 1)}",
        text=record["text"],
        provenance={"source_uri": record["of"], **PROVENANCE},
        fields=record.get("fields", {}),
        order=(record.get("index", 0),),
        not_indexed=Notice(code, "", is_failure=is_failure) if code else None,
        **fields,
    )


def group(path: Path, records: list[Record | bytes]) -> list[Item]:
    return list(group_records(source_of(write_lines(path, records)), draft, lambda record: "of" in record))


def chunk(family: str, index: int, **more: Any) -> Record:
    return {"of": family, "index": index, "text": f"{family}{index}", **more}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def test_group_when_records_are_apart_returns_families_by_their_last_record(path: Path) -> None:
    records = [chunk("a", 0), chunk("b", 0), chunk("c", 0), chunk("b", 1), chunk("a", 1)]
    assert texts(group(path, [*records])) == [["c0"], ["b0", "b1"], ["a0", "a1"]]


@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 4))
def test_group_when_records_are_shuffled_returns_the_same_families(
    tmp_path_factory: pytest.TempPathFactory, shuffle: random.Random, families: int, size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "shuffled.jsonl"
    records: list[Record | bytes] = [chunk(f"f{name}", index) for name in range(families) for index in range(size)]
    expected = sorted(texts(group(path, records)))
    shuffle.shuffle(records)
    items = group(path, records)
    assert (sorted(texts(items)), notices(items)) == (expected, [])


def test_group_when_versions_differ_keeps_the_last(path: Path) -> None:
    items = group(path, [chunk("a", 0), chunk("a", 1), chunk("a", 0, version=2, text="new")])
    assert texts(items) == [["new"]]
    assert notices(items) == [(1, codes.RECORD_SUPERSEDED, False), (2, codes.RECORD_SUPERSEDED, False)]


def test_group_when_a_chunk_comes_twice_keeps_the_last(path: Path) -> None:
    items = group(path, [chunk("a", 0), chunk("a", 1), chunk("a", 0, text="again")])
    assert texts(items) == [["again", "a1"]]
    assert notices(items) == [(1, codes.RECORD_SUPERSEDED, False)]


@pytest.mark.parametrize(("count", "expected"), [(None, [["a0", "a2"]]), (3, [])])
def test_group_when_a_chunk_is_missing_skips_only_families_with_a_count(
    path: Path, count: int | None, expected: list[list[str]]
) -> None:
    items = group(path, [chunk("a", 0, count=count), chunk("a", 2, count=count)])
    assert (texts(items), notices(items)) == (expected, [(1, codes.FAMILY_INCOMPLETE, True)])
    assert [item.is_partial for item in items if isinstance(item, Family)] == [True] * len(expected)


def test_group_when_an_index_is_far_away_is_fast(path: Path) -> None:
    assert texts(group(path, [chunk("a", 0), chunk("a", 2**50)])) == [["a0", f"a{2**50}"]]


@pytest.mark.parametrize("bad", [b"{", b'{"a": 1}'])
def test_group_when_a_record_is_refused_marks_every_family_as_partial(path: Path, bad: bytes) -> None:
    items = group(path, [chunk("a", 0), bad, chunk("b", 0)])
    assert isinstance(items[0], Notice)
    assert items[0].line == 2
    assert [item.is_partial for item in items[1:] if isinstance(item, Family)] == [True, True]


def test_group_when_records_have_excuses_reports_them_and_numbers_the_rest(path: Path) -> None:
    empty, failed = (codes.SOURCE_EMPTY, False), (codes.EXTRACTION_FAILED, True)
    items = group(
        path,
        [
            *(chunk("a", 0), chunk("a", 1, not_indexed=empty), chunk("a", 2)),
            *(chunk("b", 0, not_indexed=empty), chunk("b", 1, not_indexed=empty)),
            *(chunk("c", 0, not_indexed=empty), chunk("c", 1, not_indexed=failed)),
            *(chunk("d", 0, not_indexed=failed), chunk("d", 1)),
            *(chunk("e", 0), chunk("e", 0, not_indexed=failed)),
            *(chunk("f", 0, not_indexed=failed), chunk("f", 0, version=2, not_indexed=empty)),
        ],
    )
    assert texts(items) == [["a0", "a2"], ["d1"], ["e0"]]
    assert [item.is_partial for item in items if isinstance(item, Family)] == [False, True, False]
    assert [item.family for item in items if isinstance(item, Empty)] == [family_key("b", None), family_key("f", None)]
    assert sorted(notices(items)) == [
        *((2, codes.SOURCE_EMPTY, False), (4, codes.SOURCE_EMPTY, False), (5, codes.SOURCE_EMPTY, False)),
        *((6, codes.SOURCE_EMPTY, False), (7, codes.EXTRACTION_FAILED, True), (8, codes.EXTRACTION_FAILED, True)),
        *((11, codes.EXTRACTION_FAILED, True), (12, codes.EXTRACTION_FAILED, True), (13, codes.SOURCE_EMPTY, False)),
    ]


@pytest.mark.parametrize(("count", "expected"), [(None, [["a0"], ["b1"]]), (2, [["a0"]])])
def test_group_when_two_families_share_an_id_refuses_the_second(
    path: Path, count: int | None, expected: list[list[str]]
) -> None:
    other = {"count": count} if count else {}
    records = [chunk("a", 0, chunk_id="x"), chunk("b", 0, chunk_id="x", **other), chunk("b", 1, **other)]
    items = group(path, [*records])
    incomplete = [(2, codes.FAMILY_INCOMPLETE, True)] if count else []
    assert (texts(items), notices(items)) == (expected, [(2, findings.DUPLICATE_IDS, True), *incomplete])


def test_group_when_a_chunk_would_be_invalid_refuses_it_alone(path: Path) -> None:
    items = group(path, [chunk("a", 0, fields={"quality": 5}), chunk("a", 1), chunk("b", 0)])
    assert texts(items) == [["a1"], ["b0"]]
    assert notices(items) == [(1, findings.WRONG_TYPE, True)]
