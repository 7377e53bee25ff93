"""Parsed documents become structure-aware chunks: what they hold, where it lies, how they are numbered."""

import hashlib
import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers import errors
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.parsed import ParsedReader
from chunksink.producers.parsed.document import items_in_order, read_document
from chunksink.producers.produced import Making, Produced
from chunksink.sinks.projection import project_family
from tests.conftest import ROOT
from tests.producers.parsed.samples import heading, item, paragraph, parsed, sentences
from tests.producers.reading import MAKING, make_partition, read_all, read_records, refusals, write_lines

READER = ParsedReader()
SMALL = ParsedReader(Policy(target=30, soft_max=40, hard_max=50))


def chunks_of(tmp_path: Path, document: Record, reader: ParsedReader = READER, *codes: str) -> list[Record]:
    produced, left = read_records(reader, tmp_path, [document])
    assert refusals(left) == [(1, code, False) for code in codes]
    return list(produced[0].records)


def test_golden_ids(tmp_path: Path) -> None:
    (chunk,) = chunks_of(tmp_path, parsed("a/b.pdf", paragraph("Hello."), checksum=None))
    document = hashlib.sha256(b'["a/b.pdf",null]').hexdigest()
    text = "sha256:" + hashlib.sha256(b"Hello.").hexdigest()
    assert chunk["document_id"] == document
    assert chunk["chunk_id"] == hashlib.sha256(f'["{document}",0,"{text}"]'.encode()).hexdigest()
    assert chunk["parent_id"] == hashlib.sha256(b"a/b.pdf").hexdigest()
    with_checksum = chunks_of(tmp_path, parsed("a/b.pdf", paragraph("Hello."), content_hash="ab" * 32))[0]
    version = hashlib.sha256(f'["a/b.pdf","{"ab" * 32}"]'.encode()).hexdigest()
    assert with_checksum["document_id"] == version
    assert with_checksum["provenance"]["source_checksum"] == "sha256:" + "ab" * 32


def test_what_an_index_takes(tmp_path: Path) -> None:
    document = parsed(
        "policies/data/retention.pdf",
        heading("Policy", page=3),
        heading("Retention", 2, page=4),
        paragraph("Enterprise data is retained for 90 days.", page=4),
        paragraph("Then it goes.", page=5),
        metadata={
            "title": "Data",
            "language": "en",
            "tags": ["legal"],
            "year": 2023,
            "authors": ["A. Poe"],
            "modified_at": "2024-01-01T00:00:00Z",
            "headings": ["of the whole document"],
        },
    )
    fields = project_family(chunks_of(tmp_path, document))[-1].fields()
    expected = {
        "text": "## Retention\n\nEnterprise data is retained for 90 days.\n\nThen it goes.",
        "title": "Data",
        "headings": ("Policy", "Retention"),
        "section": "/Policy/Retention",
        "language": "en",
        "tags": ("legal",),
        "year": 2023,
        "authors": ("A. Poe",),
        "path": "policies/data/retention.pdf",
        "source_folder": "policies/data",
        "source_type": "policy",
        "page_start": 4,
        "page_end": 5,
        "modified_at_epoch": 1704067200,
        "token_count": 18,
    }
    assert {name: fields.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"slide": 4}, {"slide_number": 4}),
        ({"sheet": "Q3"}, {"sheet_name": "Q3"}),
        ({"start": 3.5, "end": 9, "speaker": "Ann"}, {"timestamp_start": 3.5, "timestamp_end": 9.0, "speaker": "Ann"}),
        ({"page": True, "slide": -1, "sheet": " ", "start": "soon"}, {"page_start": None, "slide_number": None}),
    ],
)
def test_places_other_than_pages(tmp_path: Path, place: dict[str, Any], expected: dict[str, Any]) -> None:
    chunks = chunks_of(tmp_path, parsed("a.x", paragraph("Words.", **place)))
    fields = project_family(chunks)[0].fields()
    assert {name: fields.get(name) for name in expected} == expected


def test_the_first_heading_is_the_title_where_none_is_said(tmp_path: Path) -> None:
    chunks = chunks_of(tmp_path, parsed("a.x", heading("One"), paragraph("Words.")))
    assert project_family(chunks)[0].title == "One"
    named = chunks_of(tmp_path, parsed("a.x", heading("One"), paragraph("Words."), title="Named"))
    assert project_family(named)[0].title == "Named"


def test_sections_lists_and_code_keep_together(tmp_path: Path) -> None:
    document = parsed(
        "a.x",
        heading("A"),
        paragraph("Before."),
        item("one"),
        item("two", level=2),
        item("first", ordered=True),
        item("second", ordered=True),
        {"type": "code", "text": "x = 1\n```\ny = 2", "language": "py"},
        heading("B"),
        {"type": "footnote", "text": "After."},
    )
    texts = [chunk["text"] for chunk in chunks_of(tmp_path, document)]
    assert texts == [
        "# A\n\nBefore.\n\n- one\n  - two",
        "1. first\n2. second",
        "````py\nx = 1\n```\ny = 2\n````",
        "# B\n\nAfter.",
    ]


def table(rows: int, width: int = 3, **about: Any) -> dict[str, Any]:
    header = [f"column {n}" for n in range(width)]
    return {"header": header, "rows": [[f"row {r} cell {c}" for c in range(width)] for r in range(rows)], **about}


def test_a_table_is_cut_between_rows_and_every_part_has_its_header(tmp_path: Path) -> None:
    document = parsed("a.x", heading("T"), paragraph("See below."), paragraph("After."))
    document["tables"] = [table(40, caption="All of it", after_block=1, page=7)]
    reader = ParsedReader(Policy(target=100, soft_max=120, hard_max=140))
    chunks = chunks_of(tmp_path, document, reader)
    parts = [chunk for chunk in chunks if chunk["kind"] == "table"]
    assert len(parts) == 10
    rows: list[str] = []
    for chunk in parts:
        own = chunk["text"][chunk["overlap_chars"] :].split("\n")
        assert own[:3] == ["All of it", "| column 0 | column 1 | column 2 |", "| --- | --- | --- |"]
        assert all(line.startswith("| row ") and line.endswith(" |") and line.count("|") == 4 for line in own[3:])
        assert chunk["tokens"]["count"] <= reader.policy.hard_max
        table_of = chunk["metadata"]["table"]
        assert table_of["first_row"] == len(rows)
        rows += own[3:]
        assert table_of["end_row"] == len(rows)
        assert chunk["locator"]["page_number"] == 7 or chunk is parts[0]
    assert rows == [f"| row {r} cell 0 | row {r} cell 1 | row {r} cell 2 |" for r in range(40)]
    assert [part["metadata"]["table"].get("caption") for part in parts[:2]] == ["All of it", None]
    assert chunks[-1]["text"].endswith("After.")


def test_a_header_that_leaves_no_room_is_not_repeated(tmp_path: Path) -> None:
    chunks = chunks_of(tmp_path, parsed("a.x", paragraph("P."), tables=[table(9)]), SMALL)
    headed = [chunk["metadata"]["table"]["part"] for chunk in chunks[1:] if "| --- |" in chunk["text"]]
    assert headed == [0]
    assert sum(chunk["text"].count("cell 0 |") for chunk in chunks) == 9


def test_a_row_is_never_cut_however_long(tmp_path: Path) -> None:
    row = ["word " * 400, "end"]
    chunks = chunks_of(
        tmp_path,
        parsed("a.x", paragraph("P."), tables=[{"rows": [["a", "b"], row, ["c", "d"]]}]),
        SMALL,
        "TABLE_TOO_WIDE",
    )
    texts = [chunk["text"] for chunk in chunks if chunk["kind"] == "table"]
    assert texts == ["| a | b |", "| " + "word " * 400 + "| end |", "| c | d |"]
    assert chunks[2]["tokens"]["count"] == SMALL.tokenizer.count(texts[1])


@pytest.mark.parametrize(
    ("pages", "page", "expected"),
    [
        ([1, None, 2, None, 3, None], 1, 2),
        ([1, None, 2, None, 3, None], 2, 4),
        ([1, None, 2, None, 3, None], 9, 6),
        ([None, 3, None], 1, 1),
        ([2, None], 1, 0),
        ([1, 2, 1, None, 3], 1, 4),
        ([None, None], 1, 2),
    ],
)
def test_a_block_without_a_page_is_on_that_of_the_last_one_that_has_one(
    pages: list[int | None], page: int, expected: int
) -> None:
    blocks = [paragraph("Words.", page=number) for number in pages]
    record = parsed("a.x", *blocks, images=[{"alt": "Here.", "page": page}])
    items = items_in_order(read_document(record))
    assert [item.text for item in items].index("Here.") == expected


def test_tables_and_images_stand_where_they_belong(tmp_path: Path) -> None:
    document = parsed("a.x", paragraph("one", page=1), paragraph("two", page=2), paragraph("three", page=3))
    document["tables"] = [{"rows": [["t"]], "page": 2}, {"rows": [["first"]], "position": 0}, {"rows": [["last"]]}]
    document["images"] = [
        {"caption": "A mast", "alt": "mast", "after_block": 0, "file": "m.png"},
        {"file": "mute.png", "after_block": 1},
    ]
    chunks = chunks_of(tmp_path, document, ParsedReader(Policy(overlap_percent=0)))
    assert [chunk["text"] for chunk in chunks] == [
        "| first |",
        "one\n\nA mast\nmast\n\ntwo",
        "| t |",
        "three",
        "| last |",
    ]
    assert [image["file"] for image in chunks[1]["metadata"]["images"]] == ["m.png"]
    assert [image["file"] for image in chunks[2]["metadata"]["images"]] == ["mute.png"]


def test_rows_may_be_objects_and_cells_anything(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": None}, {"a": {"text": "x|y"}, "c": [True]}]
    (chunk,) = chunks_of(tmp_path, parsed("a.x", {"type": "table", "rows": rows}))
    assert chunk["text"] == "| a | b | c |\n| --- | --- | --- |\n| 1 |  |  |\n| x\\|y |  | [true] |"
    (first_row,) = chunks_of(tmp_path, parsed("a.x", {"type": "table", "header": True, "rows": [["h"], ["v"]]}))
    assert first_row["text"] == "| h |\n| --- |\n| v |"


def test_order_and_numbers_follow_lineage_then_path_then_index(tmp_path: Path) -> None:
    paths = ["b.md", "a/z.md", "a/b/c.md", "a-b/x.md", "a/b.md", "a.md", "a/b/a.md", "é/a.md"]
    documents = [parsed(path, heading("H"), paragraph("P."), heading("I"), paragraph("Q.")) for path in paths]
    for document in documents:
        del document["doc_id"]
    produced, _ = read_records(READER, tmp_path, documents)
    assert [family.source_uri for family in produced] == [
        "a.md",
        "b.md",
        "a/b.md",
        "a/z.md",
        "a/b/a.md",
        "a/b/c.md",
        "a-b/x.md",
        "é/a.md",
    ]
    chunks = [chunk for family in produced for chunk in family.records]
    assert [chunk["metadata"]["stable_id"] for chunk in chunks] == [f"chunk_{n:04d}" for n in range(1, 17)]
    assert [chunk["metadata"]["doc_id"] for chunk in chunks[::2]] == [f"doc_{n:04d}" for n in range(1, 9)]
    assert [chunk["metadata"]["neighbors"] for chunk in chunks[2:4]] == [["chunk_0004"], ["chunk_0003"]]


def test_a_made_id_is_never_one_that_a_document_states(tmp_path: Path) -> None:
    documents = [parsed(f"{n}.md", doc_id=None) for n in range(1, 9)]
    documents[0]["doc_id"], documents[7]["doc_id"] = "doc_0003", "doc_0004"
    documents[3]["blocks"] = []
    documents[4]["metadata"] = {"long": "x" * 300_000}
    produced, _ = read_records(READER, tmp_path, documents)
    ids = {family.source_uri: family.records[0]["metadata"]["doc_id"] for family in produced}
    assert ids == {
        "1.md": "doc_0003",
        "2.md": "doc_0002",
        "3.md": "doc_0005",
        "6.md": "doc_0006",
        "7.md": "doc_0007",
        "8.md": "doc_0004",
    }


@pytest.mark.promise(1)
def test_the_order_of_the_lines_changes_no_byte(tmp_path: Path) -> None:
    documents = [parsed(f"{n % 3}/{n}.md", heading("H"), paragraph(sentences(60, n))) for n in range(12)]
    outputs = set()
    for seed in range(4):
        random.Random(seed).shuffle(documents)
        produced, left = read_records(READER, tmp_path, documents)
        assert left == []
        outputs.add(orjson.dumps([list(family.records) for family in produced]))
        assert make_partition(tmp_path / str(seed), produced)
    assert len(outputs) == 1


def test_another_time_and_run_change_those_fields_alone(tmp_path: Path) -> None:
    document = parsed("b.md", heading("H"), paragraph(sentences(100)))
    path = tmp_path / "b.jsonl"
    path.write_bytes(orjson.dumps(document))
    chunks = []
    for day, run in ((1, "one"), (2, "two")):
        making = Making(f"2026-01-0{day}T00:00:00Z", {"name": "p", "version": "1", "run_id": run})
        (family,) = READER.read(path, "b.jsonl", making)
        assert isinstance(family, Produced)
        chunks.append([{**record, "created_at": "", "producer": ""} for record in family.records])
    assert orjson.dumps(chunks[0]) == orjson.dumps(chunks[1])


def test_numbers_shift_with_other_files_and_nothing_that_counts_does(tmp_path: Path) -> None:
    document = parsed("b.md", heading("H"), paragraph(sentences(100)))
    alone, _ = read_records(READER, tmp_path, [document])
    second = read_records(READER, tmp_path, [parsed("a.md"), document])[0][1]
    before, after = alone[0].records, second.records
    assert before[0]["metadata"]["stable_id"] != after[0]["metadata"]["stable_id"]
    assert [chunk["chunk_id"] for chunk in before] == [chunk["chunk_id"] for chunk in after]
    assert [chunk["hashes"] for chunk in before] == [chunk["hashes"] for chunk in after]
    assert project_family(before) == project_family(after)


def test_overlap_is_an_option(tmp_path: Path) -> None:
    document = parsed("a.x", paragraph(sentences(150)))
    overlapping = chunks_of(tmp_path, document)
    assert all(chunk["overlap_chars"] > 0 for chunk in overlapping[1:])
    plain = chunks_of(tmp_path, document, ParsedReader(Policy(overlap_percent=0)))
    assert " ".join(chunk["text"] for chunk in plain) == sentences(150)
    assert ParsedReader(Policy(overlap_percent=0)).canonicalizer != READER.canonicalizer


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"doc_id": "d", "blocks": []}, findings.FIELD_MISSING),
        (parsed("a.x", {"type": "paragraph", "text": 7}), findings.WRONG_TYPE),
        ({**parsed("a.x"), "blocks": "text"}, findings.WRONG_TYPE),
        ({**parsed("a.x"), "blocks": [7]}, findings.WRONG_TYPE),
        ({**parsed("a.x"), "tables": [{"rows": [7]}]}, findings.WRONG_TYPE),
        ({**parsed("a.x"), "tables": [{"header": {"cells": ["a"]}, "rows": [["r"]]}]}, findings.WRONG_TYPE),
        ({**parsed("a.x"), "metadata": []}, findings.WRONG_TYPE),
        ({**parsed("a.x"), "metadata": {"long": "x" * 300_000}}, findings.LINE_TOO_LONG),
        ({**parsed("a\0.x")}, findings.WRONG_TYPE),
        ({**parsed("a.x"), "tenant_id": 1}, findings.WRONG_TYPE),
        (b'{"source": {"path": "a.x"}, "source": {}}', findings.JSON_PARSE),
        (b'{"text": "\xff"}', findings.ENCODING),
        (b'{"text": "' + b"x" * 50_000_000 + b'"}', findings.LINE_TOO_LONG),
    ],
)
@pytest.mark.promise(6)
def test_a_bad_document_stays_alone(tmp_path: Path, document: Record | bytes, code: str) -> None:
    produced, left = read_records(READER, tmp_path, [parsed("b.md"), document, parsed("c.md")])
    assert refusals(left) == [(2, code, True)]
    assert [family.source_uri for family in produced] == ["b.md", "c.md"]
    assert produced[1].records[0]["metadata"]["stable_id"] == "chunk_0002"


def test_a_document_without_text_is_no_failure_and_the_last_of_a_path_counts(tmp_path: Path) -> None:
    lines = [parsed("a.md", paragraph("old")), parsed("b.md", paragraph(" ")), parsed("./a.md", paragraph("new"))]
    produced, left = read_records(READER, tmp_path, lines)
    assert [chunk["text"] for family in produced for chunk in family.records] == ["new"]
    assert sorted(refusals(left)) == [(1, errors.RECORD_SUPERSEDED, False), (2, errors.SOURCE_EMPTY, False)]


@pytest.mark.promise(11)
def test_tenants_do_not_share_ids(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "r.jsonl", [parsed(), {**parsed(), "tenant_id": "own"}])
    ids = set()
    for tenant in (None, "acme"):
        produced, _ = read_all(READER, file, Making(MAKING.created_at, MAKING.producer, tenant))
        assert sorted(family.tenant or "" for family in produced) == sorted(["own", tenant or ""])
        ids |= {family.records[0]["chunk_id"] for family in produced}
    assert len(ids) == 3


def test_what_a_document_says_under_our_names_is_kept_beside(tmp_path: Path) -> None:
    document = parsed("a.x", metadata={"stable_id": "theirs", "other": 1}, provenance={"parser": "x", "tool": "y"})
    (chunk,) = chunks_of(tmp_path, document)
    assert chunk["metadata"]["stable_id"] == "chunk_0001"
    assert chunk["metadata"]["other"] == 1
    assert chunk["original"] == {"metadata": {"stable_id": "theirs"}, "provenance": {"parser": "x"}}
    assert chunk["provenance"]["tool"] == "y"


def test_a_parser_that_the_document_names_is_its_parser(tmp_path: Path) -> None:
    parser = {"parser_name": "layout", "parser_version": "3"}
    (chunk,) = chunks_of(tmp_path, parsed("a.x", provenance={"parser": parser}))
    assert chunk["provenance"]["parser"] == parser
    assert "original" not in chunk


def test_the_example_is_read_whole() -> None:
    produced, left = read_all(READER, ROOT / "examples" / "parsed" / "manual.jsonl")
    assert left == []
    assert [family.source_uri for family in produced] == ["manuals/gauge.pdf", "manuals/de/mast.pdf"]
    assert [document.title for family in produced for document in project_family(family.records)][-1] == "Der Mast"
