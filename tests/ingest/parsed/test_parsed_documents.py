"""Parsed documents become chunks that keep sections, lists, code and tables together, with their places and numbers."""

import hashlib
import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes
from chunksink.ingest.formats.markdown.policy import V2, Policy
from chunksink.ingest.formats.parsed import ParsedFormat
from chunksink.ingest.formats.registry import Match
from chunksink.ingest.model import Empty
from chunksink.sinks.projection import project_family
from tests.ingest.parsed.samples import FORMAT, heading, paragraph, parsed, read_documents, sentences
from tests.ingest.reading import families, names, notices

SMALL = ParsedFormat(Policy(target=30, soft_max=40, hard_max=50))


def chunks_of(folder: Path, document: Record, format_: ParsedFormat = FORMAT, *expected: str) -> list[Record]:
    items = read_documents(folder, [document], format_)
    assert notices(items) == [(1, code, False) for code in expected]
    (chunks,) = families(items)
    return chunks


def text_of(folder: Path, *blocks: Any, **about: Any) -> str:
    return "\n\n".join(chunk["text"] for chunk in chunks_of(folder, parsed("a.x", *blocks, **about)))


def item(text: str, **about: Any) -> Record:
    return {"type": "list_item", "text": text, **about}


def test_fields_reach_the_index(tmp_path: Path) -> None:
    document = parsed(
        "policies/data/retention.pdf",
        heading("Policy", page=3),
        heading("Retention", 2, page=4),
        paragraph("Enterprise data is retained for 90 days.", page=4),
        paragraph("Then it goes.", page=5, sheet=""),
        metadata={"language": "en", "tags": ["legal"], "headings": ["of the document"]},
    )
    fields = project_family(chunks_of(tmp_path, document))[-1].as_dict()
    expected = {
        "text": "## Retention\n\nEnterprise data is retained for 90 days.\n\nThen it goes.",
        "title": "Policy",
        "headings": ("Policy", "Retention"),
        "tags": ("legal",),
        "source_type": "policy",
        "page_start": 4,
        "page_end": 5,
    }
    assert {name: fields.get(name) for name in expected} == expected


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
    assert [chunk["text"] for chunk in chunks_of(tmp_path, document)] == [
        "# A\n\nBefore.\n\n- one\n  - two",
        "1. first\n2. second",
        "````py\nx = 1\n```\ny = 2\n````",
        "# B\n\nAfter.",
    ]


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "paragraph", "content": "The yield was 42 percent."}, "The yield was 42 percent."),
        ({"type": "list", "items": ["first", {"text": "second"}, {"content": "third"}]}, "- first\n- second\n- third"),
        ({"type": "bullet_list", "items": [{"text": "a", "items": ["b"]}, "c"]}, "- a\n  - b\n- c"),
        ("Only a string.", "Only a string."),
    ],
)
def test_fields_have_several_names(tmp_path: Path, block: Any, text: str) -> None:
    assert text_of(tmp_path, block) == text


def table(rows: int, width: int = 3, **about: Any) -> Record:
    header = [f"column {n}" for n in range(width)]
    return {"header": header, "rows": [[f"row {r} cell {c}" for c in range(width)] for r in range(rows)], **about}


def test_by_v2_short_units_are_one_chunk_but_tables_keep_their_own(tmp_path: Path) -> None:
    items = [{"type": "list_item", "text": "a"}, {"type": "code", "text": "x"}]
    document = parsed("a.pdf", heading("H"), paragraph("P."), *items, tables=[{"rows": [["t"]]}])
    *_, prose, own = families(read_documents(tmp_path, [document], ParsedFormat(V2)))[0]
    assert ("P." in prose["text"], "- a" in prose["text"], "x" in prose["text"]) == (True, True, True)
    assert (prose["kind"], own["kind"], "table" in own["metadata"]) == ("prose", "table", True)


def test_large_table_is_split_between_rows_under_its_header(tmp_path: Path) -> None:
    document = parsed("a.x", heading("T"), paragraph("See below."), paragraph("After."))
    document["tables"] = [table(40, caption="All of it", after_block=1, page=7)]
    format_ = ParsedFormat(Policy(target=100, soft_max=120, hard_max=140))
    chunks = chunks_of(tmp_path, document, format_)
    parts = [chunk for chunk in chunks if chunk["kind"] == "table"]
    assert len(parts) == 10
    rows: list[str] = []
    for chunk in parts:
        own = chunk["text"][chunk["overlap_chars"] :].split("\n")
        assert own[:3] == ["All of it", "| column 0 | column 1 | column 2 |", "| --- | --- | --- |"]
        assert chunk["metadata"]["table"]["first_row"] == len(rows)
        rows += own[3:]
        assert chunk["metadata"]["table"]["end_row"] == len(rows)
        assert chunk["locator"]["page_number"] == 7 or chunk is parts[0]
    assert rows == [f"| row {r} cell 0 | row {r} cell 1 | row {r} cell 2 |" for r in range(40)]
    assert chunks[-1]["text"].endswith("After.")


LINES = "| h | i |\n|---|:--|\n| a\\|b | c |"
HTML = "<table><tr><th>h</th><th>i</th></tr><tr><td>alpha</td><td>1 * 2</td></tr></table>"


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"markdown": LINES}, "| h | i |\n| --- | --- |\n| a\\|b | c |"),
        ({"text": "one line\n\nand another"}, "one line\nand another"),
        ({"html": HTML}, "| h | i |\n| --- | --- |\n| alpha | 1 * 2 |"),
        ({"header": [{"text": "h"}, 2019], "rows": [{"2019": 1, "h": 2}]}, "| h | 2019 |\n| --- | --- |\n| 2 | 1 |"),
        ({"header": True, "rows": [["h"], ["v"]]}, "| h |\n| --- |\n| v |"),
        ({"rows": [{"a": 1, "b": None}, {"b": [True]}]}, "| a | b |\n| --- | --- |\n| 1 |  |\n|  | [true] |"),
        ({"rows": [["r"]], "html": HTML}, "| r |"),
    ],
)
def test_tables_have_several_forms(tmp_path: Path, table: Record, text: str) -> None:
    assert text_of(tmp_path, paragraph("P."), tables=[table]) == f"P.\n\n{text}"
    assert text_of(tmp_path, {"type": "table", **table}) == text


def test_tables_and_images_come_where_they_belong(tmp_path: Path) -> None:
    document = parsed("a.x", paragraph("one", page=1), paragraph("two", page=2), paragraph("three", page=3))
    document["tables"] = [{"rows": [["t"]], "page": 2}, {"rows": [["first"]], "after_block": -1}, {"rows": [["last"]]}]
    document["images"] = [
        {"caption": "A mast", "alt": "mast", "after_block": 0, "file": "m.png"},
        {"file": "mute.png", "after_block": 1},
    ]
    chunks = chunks_of(tmp_path, document, ParsedFormat(Policy(overlap_percent=0)))
    assert [chunk["text"] for chunk in chunks] == [
        "| first |",
        "one\n\nA mast\nmast\n\ntwo",
        "| t |",
        "three",
        "| last |",
    ]
    assert [[image["file"] for image in chunk["metadata"]["images"]] for chunk in chunks[1:3]] == [
        ["m.png"],
        ["mute.png"],
    ]


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"doc_id": "d", "blocks": []}, findings.FIELD_MISSING),
        (parsed("a.x", {"type": "paragraph", "text": 7}), findings.WRONG_TYPE),
        (parsed("a.x", {"type": "paragraph", "text": "x", "page": "iv"}), findings.WRONG_TYPE),
        ({**parsed("a.x"), "tables": [{"header": {"cells": ["a"]}, "rows": [["r"]]}]}, findings.WRONG_TYPE),
        ({**parsed("a.x"), "metadata": {"long": "x" * 300_000}}, findings.LINE_TOO_LONG),
        ({**parsed("a.x"), "tenant_id": 1}, findings.WRONG_TYPE),
        (b'{"source": {"path": "a.x"}, "source": {}}', findings.JSON_PARSE),
        (b'{"text": "\xff"}', findings.ENCODING),
    ],
)
@pytest.mark.promise(6)
def test_bad_document_is_reported_and_the_others_are_read(tmp_path: Path, document: Record | bytes, code: str) -> None:
    items = read_documents(tmp_path, [parsed("b.md"), document, parsed("c.md")])
    assert notices(items) == [(2, code, True)]
    assert names(items) == ["b.md", "c.md"]
    assert families(items)[1][0]["metadata"]["stable_id"] == "chunk_0002"


def test_empty_document_is_no_failure_and_the_last_of_a_path_counts(tmp_path: Path) -> None:
    lines = [parsed("a.md", paragraph("old")), parsed("b.md", paragraph(" ")), parsed("./a.md", paragraph("new"))]
    items = read_documents(tmp_path, lines)
    assert [chunk["text"] for chunks in families(items) for chunk in chunks] == ["new"]
    assert notices(items) == [(1, codes.RECORD_SUPERSEDED, False), (2, codes.SOURCE_EMPTY, False)]
    assert [item.family for item in items if isinstance(item, Empty)] == [hashlib.sha256(b"b.md").hexdigest()]


def test_text_in_unknown_fields_is_reported_once_and_keeps_the_family(tmp_path: Path) -> None:
    known = parsed("a.x", heading("H"), {"type": "list", "items": [{"spans": ["x"]}]}, tables=[{"grid": [["a"]]}])
    unknown = parsed("b.x", {"type": "paragraph", "words": ["The", "yield"], "page": 2})
    items = read_documents(tmp_path, [known, unknown])
    assert notices(items) == [
        (1, codes.BLOCK_WITHOUT_TEXT, False),
        (2, codes.BLOCK_WITHOUT_TEXT, False),
        (2, codes.SOURCE_EMPTY, False),
    ]
    assert not any(isinstance(item, Empty) for item in items)
    assert [chunk["text"] for chunk in families(items)[0]] == ["# H"]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "page_break", "page": 3, "id": "b7", "bbox": [1, 2, 3, 4], "confidence": 0.9},
        {"type": "paragraph", "text": None, "spans": []},
        {"type": "image", "file": "mute.png"},
    ],
)
def test_block_without_words_is_not_reported(tmp_path: Path, block: Record) -> None:
    assert text_of(tmp_path, item("one"), block) == "- one"


@pytest.mark.promise(11)
def test_tenants_do_not_share_ids(tmp_path: Path) -> None:
    runs = (({}, None), ({"tenant_id": "own"}, None), ({}, "acme"))
    chunks = [families(read_documents(tmp_path, [parsed(**own)], tenant=tenant))[0][0] for own, tenant in runs]
    assert [chunk.get("tenant_id") for chunk in chunks] == [None, "own", "acme"]
    assert len({chunk["chunk_id"] for chunk in chunks}) == 3


@pytest.mark.parametrize(
    ("record", "expected", "expected_alone"),
    [
        (parsed(), Match.LIKELY, Match.LIKELY),
        ({"source": {"path": "a"}, "text": "x"}, Match.POSSIBLE, Match.POSSIBLE),
        ({"source": {"path": "a"}}, Match.NO, Match.POSSIBLE),
        ({"source": {"path": "a"}, "text": "x", "pane_id": 1}, Match.NO, Match.NO),
        ({"schema_name": "DoclingDocument", "body": {}}, Match.DECLARED, Match.DECLARED),
    ],
)
def test_match_is_by_source_path_and_content(record: Record, expected: Match, expected_alone: Match) -> None:
    assert (FORMAT.match(record), FORMAT.match(record, is_alone=True)) == (expected, expected_alone)


# -- numbers and order of a file's documents: folder lineage, then path, then index


def test_order_and_numbers_follow_lineage_then_path_then_index(tmp_path: Path) -> None:
    paths = ["b.md", "a/z.md", "a/b/c.md", "a-b/x.md", "a/b.md", "a.md", "a/b/a.md", "é/a.md"]
    documents = [parsed(name, heading("H"), paragraph("P."), heading("I"), paragraph("Q.")) for name in paths]
    for document in documents:
        del document["doc_id"]
    items = read_documents(tmp_path, documents)
    assert names(items) == ["a.md", "b.md", "a/b.md", "a/z.md", "a/b/a.md", "a/b/c.md", "a-b/x.md", "é/a.md"]
    chunks = [chunk for chunks in families(items) for chunk in chunks]
    assert [chunk["metadata"]["stable_id"] for chunk in chunks] == [f"chunk_{n:04d}" for n in range(1, 17)]
    assert [chunk["metadata"]["doc_id"] for chunk in chunks[::2]] == [f"doc_{n:04d}" for n in range(1, 9)]
    assert [chunk["metadata"]["neighbors"] for chunk in chunks[2:4]] == [["chunk_0004"], ["chunk_0003"]]


def test_order_of_the_lines_changes_no_byte(tmp_path: Path) -> None:
    documents = [parsed(f"{n % 3}/{n}.md", heading("H"), paragraph(sentences(60, n))) for n in range(12)]
    outputs = set()
    for seed in range(4):
        random.Random(seed).shuffle(documents)
        items = read_documents(tmp_path, documents)
        assert notices(items) == []
        outputs.add(orjson.dumps(families(items)))
    assert len(outputs) == 1


def test_numbers_shift_with_other_documents_but_ids_and_hashes_do_not(tmp_path: Path) -> None:
    document = parsed("b.md", heading("H"), paragraph(sentences(100)))
    before = families(read_documents(tmp_path, [document]))[0]
    after = families(read_documents(tmp_path, [parsed("a.md"), document]))[1]
    assert before[0]["metadata"]["stable_id"] != after[0]["metadata"]["stable_id"]
    assert [chunk["chunk_id"] for chunk in before] == [chunk["chunk_id"] for chunk in after]
    assert [chunk["hashes"] for chunk in before] == [chunk["hashes"] for chunk in after]
    assert project_family(before) == project_family(after)
