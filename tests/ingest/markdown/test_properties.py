"""Properties of every Markdown text: the specification's checklist holds, and nothing is lost."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import canonical_text
from chunksink.chunkbus.chunk import Record
from chunksink.ingest.checklist import find_problems
from chunksink.ingest.formats.markdown.normalise import shortened
from chunksink.ingest.formats.markdown.policy import Policy
from chunksink.ingest.formats.markdown.structure import parse
from tests.conftest import HEAVY, examples, sampled
from tests.ingest.markdown.support import (
    chunks_of,
    commonmark_examples,
    corpus,
    documents,
    inline,
    normalise,
    own_parts,
)
from tests.ingest.reading import solid

SMALL = Policy(target=20, soft_max=26, hard_max=30)  # cuts everywhere, even in short texts
LARGER = Policy(target=60, soft_max=70, hard_max=80)  # has room for the header of a table


def check(text: str, policy: Policy) -> list[Record]:
    """Every property that holds for any text."""
    records = chunks_of(text, policy=policy)
    assert find_problems(records, policy) == []
    assert [record["chunk_index"] for record in records] == list(range(len(records)))
    expected = solid(canonical_text(re.sub("[\ufeff\u00ad\u2060]", "", text)))
    assert solid("".join(own_parts(records))) == expected
    normal = normalise(text)
    for record in records:
        span = record["span"]["char_range"]
        _check_place(normal[span["char_start"] : span["char_end"]], _below_header(record))
    return records


def _below_header(record: Record) -> str:
    """The text of a later part of a table without the header above it."""
    header, text = record["metadata"].get("table_header"), record["text"]
    first, _, below = text.partition("\n")
    rule, _, rows = below.partition("\n")
    return rows if header == shortened(first) and re.fullmatch(r"[ |:>-]+", rule) else text


def _check_place(written: str, shown: str) -> None:
    """The text is that of the place; all its lines may have been moved to the left by the same."""
    pairs = list(zip(written.split("\n"), shown.split("\n"), strict=True))
    assert all(line.lstrip(" \t") == moved.lstrip(" \t") for line, moved in pairs)
    assert len({len(line) - len(moved) for line, moved in pairs} - {0}) <= 1


@settings(max_examples=examples(300), deadline=None)
@given(documents, st.sampled_from([SMALL, LARGER]))
def test_any_document_keeps_the_checklist_and_loses_nothing(text: str, policy: Policy) -> None:
    check(text, policy)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(inline, min_size=2, max_size=3), min_size=8, max_size=40), st.sampled_from(["", "> ", "  "]))
def test_any_table_keeps_the_checklist_and_loses_nothing(rows: list[list[str]], margin: str) -> None:
    lines = ["| a | b |", "|---|:-:|", *(f"| {' | '.join(cells)} |" for cells in rows)]
    check("".join(f"{margin}{line}\n" for line in lines), LARGER)


@settings(max_examples=examples(200), deadline=None)
@given(documents)
def test_normalising_twice_changes_nothing_and_keeps_the_structure(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert [(b.kind, b.section, b.element) for b in parse(once).blocks] == [
        (b.kind, b.section, b.element) for b in parse(text).blocks
    ]


def test_commonmark_examples_keep_the_checklist(shared_data: Path) -> None:
    examples = list(commonmark_examples(shared_data))
    assert len(examples) > 600
    for example in examples:
        check(example, Policy())
        check(example, SMALL)
        normal = normalise(example)
        assert normalise(normal) == normal


def test_corpora_keep_the_checklist(shared_data: Path) -> None:
    names = set()
    for name, text in corpus(shared_data):
        names.add(name.split("/")[0])
        records = check(text, Policy())
        assert records, name
    assert names == {"rust-book", "javaguide", "commonmark"}


@pytest.mark.parametrize("text", ["", " \n\t\n", "\ufeff", "\x00", "\x01\x02", "\u00a0\n\n\u3000"])
def test_text_without_visible_characters_has_no_chunks(text: str) -> None:
    assert chunks_of(text) == []


def many(times: int) -> int:
    """A quarter of it every day."""
    return times if HEAVY else times // 4


SECONDS = 10 if HEAVY else 2.5
"""Much more than any of these takes, and much less than with one quadratic step."""

HOSTILE = [
    *(
        "." * many(100_000),
        '."' * many(50_000),
        "[" * many(50_000),
        "![[]()" * many(10_000),
        "*a **b " * many(20_000),
        ">" * many(10_000) + " a",
    ),
    *(
        "> " * many(10_000) + "a",
        "- " * many(3_000),
        "<p>" + " " * many(20_000) + "\n   \nx",
        "```\n\n~~~\n" * many(5_000),
        "<!--" * many(10_000),
    ),
    *("".join("`" * length + "  " for length in range(1, 400)), "x" * many(1_000_000), "word " * many(200_000)),
    *(
        "<p>" + " " * many(20_000) + "x\n" * many(10_000) + "   \nx",
        "|" + "a|" * many(5_000) + "\n|" + "-|" * many(5_000),
    ),
    # Front matter
    *(
        "---\n" + "a: b\n" * many(200_000),
        "---\ntitle: x" + "\n" * many(200_000) + "---\n",
        "---\n" + 'title: "\n' * many(100_000) + "---\n",
    ),
    *("---\ntitle: " + "x #" * many(200_000) + "\n---\n", "+++\n" + "a." * 7_900 + "a = 1\n+++\n"),
    "+++\n" + "a." * many(500_000) + "a = 1\n+++\n",
    # Headings and their attributes
    *(
        "<h1>" * many(100_000),
        "<div>\n" + "<h1 " * many(100_000),
        "<div>\n" + "<h1>x<" * many(100_000),
        "# {#a" + " b=" * many(100_000),
    ),
    *("# {#a" + " .b" * many(100_000), "# a" + " " * many(200_000) + "{", "# {/*" + " " * many(200_000) + "a"),
]
HOSTILE_DATA = [
    *("![](data:" * many(20_000), "![a](data:" + "(" * many(100_000), "[a][b" * many(20_000) + "\n\n[b]: data:x"),
    "data: " + "".join("`" * length + " " for length in range(1, 1000)),
    "![a](" + ("x" * 4097 + "(") * 50,
    "|" + "[a]|" * many(4_000) + "\n|" + "-|" * many(4_000) + "\n\n[b]: data:x",
]
"""Embedded data and long addresses, of which a part is removed."""


@pytest.mark.parametrize("text", sampled([*HOSTILE, *HOSTILE_DATA]), ids=lambda text: text[:8].strip())
def test_hostile_texts_take_linear_time(text: str) -> None:
    start = time.process_time()
    records = chunks_of(text)
    assert time.process_time() - start < SECONDS
    assert text in HOSTILE_DATA or solid("".join(own_parts(records))) == solid(text)
