"""Docling documents are read in the order of their body, with their headings, lists, tables, captions and pages."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes
from tests.ingest.parsed.samples import FORMAT
from tests.ingest.reading import families, names, notices, read_items


def ref(*pointers: str) -> list[Record]:
    return [{"$ref": f"#/{pointer}"} for pointer in pointers]


def text(label: str, words: str, *children: str, page: int = 1, **about: Any) -> Record:
    node = {"label": label, "text": words, "orig": words, "children": ref(*children), "prov": [{"page_no": page}]}
    return {"content_layer": "body", **node, **about}


def group(label: str, *children: str, **about: Any) -> Record:
    return {"label": label, "name": label, "children": ref(*children), "content_layer": "body", **about}


def cell(words: str, row: int, column: int, rows: int = 1, columns: int = 1, **about: Any) -> Record:
    place = {"start_row_offset_idx": row, "end_row_offset_idx": row + rows, "row_span": rows}
    place |= {"start_col_offset_idx": column, "end_col_offset_idx": column + columns, "col_span": columns}
    return {"text": words, **place, **about}


def document(body: list[str], **about: Any) -> Record:
    origin = {"filename": "report.pdf", "mimetype": "application/pdf", "binary_hash": 2**63}
    head = {"schema_name": "DoclingDocument", "version": "1.8.0", "name": "report", "origin": origin}
    return {**head, "body": group("unspecified", *body), **about}


TABLE = {
    "table_cells": [
        cell("Day", 0, 0, rows=2, column_header=True),
        cell("Rain", 0, 1, columns=2, column_header=True),
        cell("am", 1, 1, column_header=True),
        cell("pm", 1, 2, column_header=True),
        cell("Mon", 2, 0, rows=2),
        cell("1", 2, 1),
        cell("2", 2, 2),
        cell("none", 3, 1, columns=2),
    ]
}
REPORT = document(
    ["texts/0", "texts/1", "groups/0", "tables/0", "pictures/0", "texts/11"],
    texts=[
        text("page_header", "Draft", content_layer="furniture"),
        text("title", "Rain", "texts/2"),
        text("section_header", "Gauges", level=1),
        text("list_item", "brass", enumerated=True, marker="1."),
        text("list_item", "", "groups/1", enumerated=True, marker="2."),
        text("text", "steel", hyperlink="https://a.example/"),
        text("code", "x", page=1),
        text("caption", "Table 1: Rain by day", page=2),
        text("footnote", "In millimetres."),
        text("caption", "Figure 1: A mast"),
        text("text", "north"),
        text("formula", "", orig="E = m"),
        text("text", "."),
    ],
    groups=[group("list", "texts/3", "texts/4"), group("inline", "texts/5", "texts/6", "texts/12")],
    tables=[text("table", "", "texts/7", page=2, captions=ref("texts/7"), footnotes=ref("texts/8"), data=TABLE)],
    pictures=[text("picture", "", "texts/9", "texts/10", captions=ref("texts/9"))],
)


def read_document(folder: Path, record: Record) -> Any:
    path = folder / "report.json"
    path.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    return read_items(FORMAT, path, uri="exports/report.json")


def test_document_is_read_in_the_order_of_its_body(tmp_path: Path) -> None:
    items = read_document(tmp_path, REPORT)
    (chunks,) = families(items)
    assert [chunk["text"][chunk["overlap_chars"] :] for chunk in chunks] == [
        "# Rain",
        "## Gauges\n\n1. brass\n2. steel x.",
        "Table 1: Rain by day\n| Day | Rain am | Rain pm |\n| --- | --- | --- |\n| Mon | 1 | 2 |\n| Mon | none |  |",
        "In millimetres.\n\nFigure 1: A mast\nnorth\n\nE = m",
    ]
    assert [chunk["locator"]["page_number"] for chunk in chunks] == [1, 1, 2, 1]
    assert notices(items) == [(1, codes.PARTS_LEFT_OUT, False)]
    assert names(items) == ["exports/report.pdf"]
    assert chunks[0]["source"] == {"path": "exports/report.pdf", "type": "pdf"}
    assert chunks[0]["provenance"]["parser"] == {"parser_name": "docling", "parser_version": "1.8.0"}
    assert chunks[0]["metadata"]["title"] == "Rain"


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (document(["texts/9"]), findings.WRONG_TYPE),
        (document([], texts=[{"text": 7}]), findings.WRONG_TYPE),
        (document(["tables/0"], tables=[{"data": {"table_cells": [cell("x", 10**6, 10**6)]}}]), findings.WRONG_TYPE),
    ],
)
def test_broken_document_is_reported(tmp_path: Path, record: Record, code: str) -> None:
    assert notices(read_document(tmp_path, record)) == [(1, code, True)]


def test_items_that_refer_to_each_other_in_a_circle_are_read_once(tmp_path: Path) -> None:
    record = document(["groups/0"], groups=[group("list", "texts/0")], texts=[text("list_item", "once", "groups/0")])
    assert [chunk["text"] for chunk in families(read_document(tmp_path, record))[0]] == ["- once"]
