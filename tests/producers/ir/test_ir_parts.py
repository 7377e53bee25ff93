"""A part whose extraction failed: what stands of the same content is not given up for less."""

from typing import Any

import pytest

from chunksink.producers import errors
from tests.producers.bench import LATER, Bench
from tests.producers.bridges.samples import markdown_chunk
from tests.producers.ir.samples import ir_record
from tests.producers.reading import write_lines

PARTS = ["one", "two", "three"]


def put(bench: Bench, failed: int | None, content: bytes = b"v1", extractor: str = "1.4.0") -> None:
    records: list[dict[str, Any]] = [
        ir_record("/a.pdf", text, index=index, count=len(PARTS), content=content) for index, text in enumerate(PARTS)
    ]
    for record in records:
        record["provenance"]["extractor_version"] = extractor
    if failed is not None:
        records[failed] |= {"status": "failed", "errors": ["no font"]}
    write_lines(bench.docs / "r.jsonl", [*records, ir_record("/b.pdf", extractor)])


def texts(bench: Bench) -> list[str]:
    return bench.texts("/a.pdf", key="documents")


@pytest.fixture
def whole(bench: Bench) -> Bench:
    put(bench, failed=None)
    bench.ingest(kind="ir", to="documents")
    assert texts(bench) == PARTS
    return bench


@pytest.mark.parametrize("extractor", ["1.4.0", "2.0.0"])
def test_a_document_of_the_same_content_stays_whole(whole: Bench, extractor: str) -> None:
    put(whole, failed=1, extractor=extractor)
    report = whole.ingest(kind="ir", to="documents", now=LATER)
    assert (texts(whole), report.left_out) == (PARTS, {errors.EXTRACTION_FAILED: 1})
    assert whole.texts("/b.pdf", key="documents") == [extractor]
    whole.assert_valid()
    put(whole, failed=None, extractor=extractor)
    report = whole.ingest(kind="ir", to="documents", now=LATER)
    assert (texts(whole), report.left_out) == (PARTS, {})


def test_a_document_of_new_content_goes_on_without_the_part(whole: Bench) -> None:
    put(whole, failed=1, content=b"v2")
    whole.ingest(kind="ir", to="documents", now=LATER)
    assert texts(whole) == ["one", "three"]
    put(whole, failed=2, content=b"v2")
    whole.ingest(kind="ir", to="documents", now=LATER)
    assert texts(whole) == ["one", "two"], "as many of the same content: the later ones"


def test_where_nothing_stood_a_part_is_better_than_nothing(bench: Bench) -> None:
    put(bench, failed=0)
    bench.ingest(kind="ir", to="documents")
    assert texts(bench) == ["two", "three"]


@pytest.mark.parametrize("checksum", [{}, {"source_checksum": "sha256:" + "a" * 64}])
@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_chunk_whose_line_is_broken_stays_with_the_others(
    bench: Bench, broken: int, checksum: dict[str, str]
) -> None:
    """Which family it is of the line does not say."""
    lines = [markdown_chunk(number, chunk_text=f"text {number}", **checksum) for number in range(3)]
    write_lines(bench.docs / "c.jsonl", lines)
    bench.ingest(kind="chunks", to="documents")
    assert len(bench.records("documents")) == 3
    write_lines(bench.docs / "c.jsonl", [b"{" if number == broken else line for number, line in enumerate(lines)])
    report = bench.ingest(kind="chunks", to="documents", now=LATER)
    assert (len(bench.records("documents")), report.failed) == (3, 1 if broken == 2 else 2), "a gap is told, too"
