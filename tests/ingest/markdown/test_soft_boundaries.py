"""The rules of the chunking specification v2 that differ from v1: soft boundaries, the minimum, overlap, sentences."""

from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings

from chunksink.ingest.checklist import find_problems
from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.document import Kind
from chunksink.ingest.formats.markdown.passages import Passage, cut
from chunksink.ingest.formats.markdown.pieces import sentence_spans
from chunksink.ingest.formats.markdown.policy import V2
from chunksink.ingest.formats.markdown.structure import parse
from tests.conftest import examples
from tests.ingest.markdown.support import chunks_of, commonmark_examples, corpus, documents, own_parts, texts_of
from tests.ingest.markdown.test_rules import paragraph, sentence
from tests.ingest.reading import solid

SMALL_V2 = replace(V2, target=20, soft_max=26, hard_max=30, minimum=5)
"""Cuts everywhere, even in short texts."""
CODE = "```\nx\n```"
TABLE = "| a |\n|---|\n| b |"


def sizes(text: str) -> list[int]:
    return [record["metadata"]["token_count"] for record in chunks_of(text, policy=V2)]


@pytest.mark.parametrize(
    "text",
    [
        f"# A\n\nRun this:\n\n{CODE}\n\nThen wait.",
        f"Before.\n\n{TABLE}\n\nAfter.",
        "- a\n\n1. b\n\n> quote\n\nText.",
        f"- a\n\n  {CODE.replace(chr(10), chr(10) + '  ')}\n- b",
    ],
)
def test_short_units_of_a_section_are_one_chunk(text: str) -> None:
    assert texts_of(text, V2) == [text]


def test_headings_stay_hard_boundaries() -> None:
    assert texts_of(f"# A\n\nOne.\n\n## B\n\n{CODE}\n\n# C\n\nTwo.", V2) == [
        "# A\n\nOne.",
        f"## B\n\n{CODE}",
        "# C\n\nTwo.",
    ]


def test_kind_is_that_of_all_units_below_the_heading() -> None:
    text = f"# A\n\n```py\nx\n```\n\n# B\n\n{TABLE}\n\n# C\n\nText.\n\n{CODE}\n\n# D\n\nText.\n"
    found = [(one["metadata"]["kind"], one["metadata"].get("code_language")) for one in chunks_of(text, policy=V2)]
    assert found == [("code", "py"), ("table", None), ("prose", None), ("prose", None)]


def code(size: int) -> str:
    """A code block with this many tokens."""
    return "```\n" + "word\n" * (size - 6) + "```"


def bullets(size: int) -> str:
    return "\n".join("- " + sentence(18) for _ in range(size // 20))


@pytest.mark.parametrize("unit", [code(500), bullets(500), "> " + paragraph(12) + "\n>\n> " + paragraph(13)])
def test_unit_up_to_the_hard_maximum_is_never_cut(unit: str) -> None:
    assert tokens.count(unit) >= 500
    assert unit in texts_of(f"{paragraph(6)}\n\n{unit}\n\n{paragraph(6)}", V2)


def test_chunks_end_between_units_at_the_target() -> None:
    units = [paragraph(8), bullets(160), code(160), paragraph(8), bullets(160), code(160)]
    text = "\n\n".join(units)
    assert texts_of(text, V2) == ["\n\n".join(units[:2]), "\n\n".join(units[2:4]), "\n\n".join(units[4:])]


@pytest.mark.parametrize("size", [505, 515, 520])
def test_heading_joins_a_large_unit_even_if_that_must_be_cut(size: int) -> None:
    """A heading alone would be under the minimum."""
    found = sizes(f"# A heading of six words\n\n{code(size)}")
    assert min(found) >= V2.minimum
    assert max(found) <= V2.hard_max
    assert len(found) == (1 if size == 505 else 2)


@pytest.mark.parametrize("size", [450, 485, 505, 520])
def test_short_rest_joins_a_large_unit_even_if_that_must_be_cut(size: int) -> None:
    found = sizes(f"{code(size)}\n\n{sentence(30)}")
    assert min(found) >= V2.minimum
    assert max(found) <= V2.hard_max
    assert len(found) == (1 if size <= 485 else 2)


def test_only_whole_sections_are_under_the_minimum() -> None:
    assert sizes("# A\n\n# B\n\nShort.\n\n# C") == [2, 4, 2]


def test_packed_chunks_do_not_overlap() -> None:
    records = chunks_of("\n\n".join(paragraph(9) for _ in range(6)), policy=V2)
    assert [record["metadata"]["overlap_chars"] for record in records] == [0, 0, 0]


def test_introduction_is_repeated_above_the_unit_that_it_introduces() -> None:
    first, second = texts_of(f"{paragraph(17)} Run this:\n\n{code(300)}", V2)
    assert first.endswith("Run this:")
    assert second == f"Run this:\n\n{code(300)}"


def test_parts_of_a_unit_overlap_within_the_unit() -> None:
    """The sentences above the list are not repeated."""
    items = "\n".join(f"- Item {number} " + sentence(18) for number in range(40))
    records = chunks_of(f"{paragraph(4)}\n\n{items}", policy=V2)
    assert len(records) > 2
    for before, after in pairwise(records[1:]):
        overlap = after["text"][: after["metadata"]["overlap_chars"]]
        assert overlap.startswith("- Item ")
        assert before["text"].endswith(overlap.rstrip())
        assert 0 < tokens.count(overlap) <= 0.15 * before["metadata"]["token_count"]


def test_later_rows_of_a_table_repeat_its_header_and_join_the_text_below() -> None:
    rows = "".join(f"| {number} | {'cell ' * 40}|\n" for number in range(12))
    *_, last = chunks_of(f"Text.\n\n| id | text |\n|---|---|\n{rows}\n\nMore text.", policy=V2)
    assert last["text"].startswith("| id | text |\n|---|---|\n| ")
    assert last["text"].endswith("\n\nMore text.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run `a. B` now. Then `c! D`. End.", ["Run `a. B` now. ", "Then `c! D`. ", "End."]),
        ("Use ``x `y. Z``. Then go.", ["Use ``x `y. Z``. ", "Then go."]),
        ("A ` alone. Then go.", ["A ` alone. ", "Then go."]),
        ("`End.` Next.", ["`End.` Next."]),
    ],
)
def test_no_sentence_ends_within_a_code_span(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentence_spans(text, 0, len(text), Kind.PROSE, True)] == expected


def check(text: str) -> None:
    """Every property that holds for any text."""
    for policy in (SMALL_V2, V2):
        document = parse(text)
        passages = list(cut(document, policy))
        for _, of_section in groupby(passages, key=lambda one: (one.section, one.kind is Kind.FRONT_MATTER)):
            section = list(of_section)
            assert len(section) == 1 or min(own_tokens(document.text, one) for one in section) >= policy.minimum
        records = chunks_of(text, policy=policy)
        assert find_problems(records, policy) == []
        assert len({record["chunk_id"] for record in records}) == len(records)
        assert solid("".join(own_parts(records))) == solid(document.text)


def own_tokens(text: str, passage: Passage) -> int:
    return tokens.count(text[passage.own_start : passage.end])


@settings(max_examples=examples(300), deadline=None)
@given(documents)
def test_any_document_keeps_the_rules_and_loses_nothing(text: str) -> None:
    check(text)


def test_corpora_keep_the_rules_and_lose_nothing(shared_data: Path) -> None:
    for example in commonmark_examples(shared_data):
        check(example)
    for _, text in corpus(shared_data):
        check(text)
