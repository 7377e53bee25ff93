"""Parsers call the same things by several names: all of them are read, and what is under none is told."""

from pathlib import Path
from typing import Any

import pytest

from chunksink.producers import errors
from chunksink.producers.parsed import ParsedReader
from tests.producers.bench import LATER, Bench
from tests.producers.parsed.samples import heading, item, paragraph, parsed
from tests.producers.reading import read_records, write_lines

READER = ParsedReader()


def text_of(tmp_path: Path, *blocks: Any, **about: Any) -> str:
    produced, left = read_records(READER, tmp_path, [parsed("a.x", *blocks, **about)])
    assert left == []
    return "\n\n".join(chunk["text"] for family in produced for chunk in family.records)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "paragraph", "content": "The yield was 42 percent."}, "The yield was 42 percent."),
        ({"type": "paragraph", "text": " ", "content": "Words."}, "Words."),
        ({"type": "heading", "level": 2, "content": "Results"}, "## Results"),
        ({"type": "list", "items": ["first", {"text": "second"}, {"content": "third"}]}, "- first\n- second\n- third"),
        ({"type": "list", "ordered": True, "items": ["one", "two"]}, "1. one\n2. two"),
        ({"type": "list", "text": "Take:", "items": ["salt"]}, "Take:\n\n- salt"),
        ({"type": "bullet_list", "items": [{"text": "a", "items": ["b"]}, "c"]}, "- a\n  - b\n- c"),
        ({"type": "image", "content": "A mast"}, "A mast"),
    ],
)
def test_texts_and_lists(tmp_path: Path, block: dict[str, Any], text: str) -> None:
    assert text_of(tmp_path, block) == text


LINES = "| h | i |\n|---|:--|\n| a\\|b | c |"
TABLES = [
    ({"cells": [["beta", "gamma"]]}, "| beta | gamma |"),
    ({"header": ["h"], "cells": [["v"]]}, "| h |\n| --- |\n| v |"),
    ({"markdown": "|delta|"}, "| delta |"),
    ({"markdown": LINES}, "| h | i |\n| --- | --- |\n| a\\|b | c |"),
    ({"text": "one line\n\nand another"}, "| one line |\n| and another |"),
    ({"content": LINES, "rows": []}, "| h | i |\n| --- | --- |\n| a\\|b | c |"),
    (
        {"html": "<table><tr><th>h</th><th>i</th></tr><tr><td>alpha</td><td>1 * 2</td></tr></table>"},
        "| h | i |\n| --- | --- |\n| alpha | 1 * 2 |",
    ),
    ({"header": " | h | i\\|j |", "rows": [["r", 1]]}, "| h | i\\|j |\n| --- | --- |\n| r | 1 |"),
    ({"header": "Borrowers", "rows": [["r"]]}, "| Borrowers |\n| --- |\n| r |"),
    ({"header": [{"text": "h"}, 2019], "rows": [{"2019": 1, "h": 2}]}, "| h | 2019 |\n| --- | --- |\n| 2 | 1 |"),
    ({"header": [["h"]], "rows": [{"h": 2}]}, '| ["h"] | h |\n| --- | --- |\n|  | 2 |'),
    ({"header": False, "rows": [["r"]]}, "| r |"),
    ({"rows": [["r"]], "html": "<table><tr><td>other</td></tr></table>"}, "| r |"),
]


@pytest.mark.parametrize(("table", "text"), TABLES)
def test_tables(tmp_path: Path, table: dict[str, Any], text: str) -> None:
    assert text_of(tmp_path, paragraph("P."), tables=[table]) == f"P.\n\n{text}"
    assert text_of(tmp_path, {"type": "table", **table}) == text


def test_what_was_read_does_not_stand_beside_the_text_too(tmp_path: Path) -> None:
    tables = [{"markdown": LINES, "id": "t1"}, {"cells": [["a"]], "html": "<b>"}]
    produced, _ = read_records(READER, tmp_path, [parsed("a.x", tables=tables)])
    about = [chunk["metadata"]["table"] for chunk in produced[0].records if chunk["kind"] == "table"]
    assert [{name: one.get(name) for name in ("id", "html", "markdown", "cells")} for one in about] == [
        {"id": "t1", "html": None, "markdown": None, "cells": None},
        {"id": None, "html": "<b>", "markdown": None, "cells": None},
    ]


def test_blocks_that_say_nothing_in_a_known_field_are_told_once_of_a_document(tmp_path: Path) -> None:
    blocks = [
        heading("Results"),
        {"type": "paragraph", "words": ["The", "yield"], "lang": "en", "page": 2},
        {"type": "list", "items": [{"spans": ["x"]}, "known"]},
    ]
    document = parsed("a.x", *blocks, tables=[{"grid": [["a"]], "caption": "Kept"}])
    produced, left = read_records(READER, tmp_path, [parsed("b.x"), document])
    assert [(one.line, one.code, one.is_failure) for one in left] == [(2, errors.BLOCK_WITHOUT_TEXT, False)]
    assert left[0].reason == "a.x: says nothing in a field that is read, but in blocks[1]: words, lang; and 2 more"
    assert [chunk["text"] for chunk in produced[0].records] == ["# Results\n\n- known", "Kept"]


NOTE = "See the annex below."


@pytest.mark.parametrize(
    ("document", "where"),
    [
        (parsed("a.x", paragraph("Words.") | {"footnote": NOTE}), "blocks[0].footnote"),
        (parsed("a.x", paragraph("Words.") | {"children": [{"spans": [{"text": NOTE}]}]}), "blocks[0].children"),
        (parsed("a.x", paragraph("Words.") | {"content": NOTE}), "blocks[0].content"),
        (parsed("a.x", paragraph("Words.") | {"caption": NOTE}), "blocks[0].caption"),
        (parsed("a.x", {"type": "list", "items": ["a", {"text": "b", "note": NOTE}]}), "blocks[0].items[1].note"),
        (parsed("a.x", {"type": "list", "items": ["a"], "note": NOTE}), "blocks[0].note"),
        (parsed("a.x", paragraph("Words."), footnotes=[{"mark": "1", "text": NOTE}]), "footnotes"),
        (parsed("a.x", paragraph("Words.") | {"footnote": "Fn: camels"}), "blocks[0].footnote"),
        (parsed("a.x", paragraph("文字。") | {"footnote": "请参阅下面的附件。"}), "blocks[0].footnote"),
        (parsed("a.x", paragraph("言葉。"), summary="これは要約です。"), "summary"),
        (parsed("a.x", paragraph("คำ") | {"note": "ดูภาคผนวกด้านล่าง"}), "blocks[0].note"),
        (parsed("a.x", paragraph("Words."), pages=[{"notes": "to be said"}]), "pages"),
        (parsed("a.x", paragraph("Words."), text="Words.\nAnd what blocks lack."), "text"),
        (parsed("a.x", paragraph("Words."), text="Words.\nplums"), "text"),
        (parsed("a.x", paragraph("Another party is here."), text="Another party is here.\nart"), "text"),
        (parsed("a.x", paragraph("文字。"), text="文字。\n結論"), "text"),
        (parsed("a.x", paragraph("Words."), keywords=["gateway", "billing"]), "keywords"),
        (parsed("a.x", paragraph("Words.") | {"spans": [{"word": "al"}, {"word": "be"}]}), "blocks[0].spans"),
        (parsed("a.x", paragraph("Words."), title="Lost", metadata={"title": "Kept"}), "title"),
        (parsed("a.x", paragraph("Words.") | {"label": "As was said before."}), "blocks[0].label"),
        (
            parsed("a.x", *[paragraph("Words.") | {"note": f"{NOTE} {n}"} for n in range(3)]),
            "blocks[0].note and 2 more",
        ),
    ],
)
def test_sentences_that_are_not_read_are_told_once_of_a_document(
    tmp_path: Path, document: dict[str, Any], where: str
) -> None:
    produced, left = read_records(READER, tmp_path, [parsed("b.x", paragraph("Words.")), document])
    assert [(one.line, one.code, one.is_failure) for one in left] == [(2, errors.TEXT_LEFT_OUT, False)]
    assert left[0].reason == f"a.x: what stands in {where} is in no chunk"
    assert [family.source_uri for family in produced] == ["a.x", "b.x"]


def test_signs_of_less_and_more_are_no_tags(tmp_path: Path) -> None:
    texts = ["If x < y holds.", "Then all is well.", "If z > 1 not."]
    assert text_of(tmp_path, *map(paragraph, texts), text="\n".join(texts))


def test_of_very_many_places_the_first_are_told(tmp_path: Path) -> None:
    blocks = [paragraph(f"Words {number}.") | {"note": f"Said of {number}."} for number in range(200)]
    _, left = read_records(READER, tmp_path, [parsed("a.x", *blocks)])
    assert left[0].reason == "a.x: what stands in blocks[0].note and at least 99 more is in no chunk"


@pytest.mark.parametrize(
    "more",
    [
        {"html": "<p>The <b>yield</b> was 42&nbsp;percent.</p>", "markdown": "The **yield** was\n42 percent."},
        {"lines": [{"text": "The yield was"}, {"text": "42 percent."}]},
        {"style": "Body Text Indent", "section": ["Results of the second year"], "confidence": 0.9},
        {"lang": "en", "spans": [{"font": {"name": "Times New Roman"}, "text": "The yield"}], "Label": "body text"},
        {"image": "data:image/png;base64,iVBORw0KGgo="},
    ],
)
def test_another_form_of_a_text_and_names_are_not_told(tmp_path: Path, more: dict[str, Any]) -> None:
    blocks = [heading("Results of the second year"), paragraph("The yield was 42 percent.") | more]
    whole = "Results of the sec-\nond year\n\n The yield was 42 percent.\n12\n"
    assert text_of(tmp_path, *blocks, text=whole)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "page_break"},
        {"type": "page_break", "page": 3, "id": "b7", "bbox": [1, 2, 3, 4], "confidence": 0.9},
        {"type": "paragraph", "text": " "},
        {"type": "paragraph", "text": None, "spans": []},
        {"type": "list", "items": []},
        {"type": "table", "rows": []},
        {"type": "image", "file": "mute.png"},
    ],
)
def test_what_has_nothing_to_say_is_silent(tmp_path: Path, block: dict[str, Any]) -> None:
    assert text_of(tmp_path, item("one"), block) == "- one"


def test_a_document_whose_fields_are_not_known_any_more_keeps_its_chunks(bench: Bench) -> None:
    write_lines(bench.docs / "p.jsonl", [parsed("a.x", paragraph("Words."))])
    bench.ingest(kind="parsed")
    write_lines(bench.docs / "p.jsonl", [parsed("a.x", {"type": "paragraph", "utterance": "Words."})])
    report = bench.ingest(kind="parsed", now=LATER)
    assert report.left_out == {errors.BLOCK_WITHOUT_TEXT: 1, errors.SOURCE_EMPTY: 1}
    assert (report.failed, report.documents) == (0, 1)
    assert bench.manifest().errors == report.left_out
