"""What must hold for every Markdown text: the specification's checklist, and that nothing is lost."""

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import canonical_text
from chunksink.chunkbus.chunk import Record
from chunksink.producers.markdown import Policy, WordTokenizer, cut, find_problems, normalise, parse, passages
from chunksink.producers.markdown.headings import carried
from tests.conftest import examples
from tests.producers.support import chunks_of, commonmark_examples, corpus, own_parts, without_space

SMALL = Policy(target=20, soft_max=26, hard_max=30)  # cuts everywhere, even in short texts
LARGER = Policy(target=60, soft_max=70, hard_max=80)  # has room for the header of a table

_inline = st.text(
    alphabet=st.sampled_from("ab Z.!? ,*_`[]()<>\t你好。é̂\U0001f469\u200d\U0001f4bb1#|-:\\&\u00a0\u3000"), max_size=60
)
_line = st.one_of(
    _inline,
    st.sampled_from(
        [
            "",
            "",
            "# One",
            "## Two",
            "### ",
            "===",
            "---",
            "```",
            "~~~~ py",
            "- a",
            "  - b",
            "1. x",
            "2) y",
            "> q",
            ">",
            "    code",
            "| a | b |",
            "|---|---|",
            "<div>",
            "</div>",
            "<!--",
            "[r]: /u",
            "* * *",
            "\tt",
            "- > - z",
            "  ```",
        ]
    ),
    st.builds("{}{}".format, st.sampled_from(["> ", "- ", "  ", "10. ", "   > ", "- - "]), _inline),
    st.builds(
        lambda word, n: " ".join([word] * n), st.sampled_from(["word", "Ende.", "中文。", "x"]), st.integers(1, 80)
    ),
)
documents = st.lists(_line, max_size=40).map("\n".join)


_SENTENCES = [
    *(
        "See Fig. 3 there. ",
        "Approx. 20 vs. 21. ",
        "Mr. A. B. said so... ",
        "And then? ",
        "> quoted\n>\n> more\n",
        "\n\n",
    ),
    *(
        "“Never.” ",
        "（好。）",
        "一句话。两句话！",
        "- item\n",
        "3. third\n",
        "```\nx\n```\n",
        "# Head\n\n",
        "one two three four ",
    ),
]


def check(text: str, policy: Policy) -> list[Record]:
    """Every property that does not depend on what the text says."""
    records = chunks_of(text, policy=policy)
    assert find_problems(records, policy, WordTokenizer()) == []
    assert [record["chunk_index"] for record in records] == list(range(len(records)))
    expected = without_space(canonical_text(re.sub("[\ufeff\u00ad\u2060]", "", text)))
    assert without_space("".join(own_parts(records))) == expected
    normal = normalise(text)
    for record in records:
        span = record["span"]["char_range"]
        _check_place(normal[span["char_start"] : span["char_end"]], _below_header(record))
    return records


def _below_header(record: Record) -> str:
    """The text without what a later part of a table has above it."""
    header, text = record["metadata"].get("table_header"), record["text"]
    first, _, below = text.partition("\n")
    rule, _, rows = below.partition("\n")
    return rows if header == carried(first) and re.fullmatch(r"[ |:>-]+", rule) else text


def _check_place(written: str, shown: str) -> None:
    """The text is what stands there; it may have been moved to the left, all of its lines by the same."""
    pairs = list(zip(written.split("\n"), shown.split("\n"), strict=True))
    assert all(line.lstrip(" \t") == moved.lstrip(" \t") for line, moved in pairs)
    assert len({len(line) - len(moved) for line, moved in pairs} - {0}) <= 1


@settings(max_examples=examples(300), deadline=None)
@given(documents, st.sampled_from([SMALL, LARGER]))
def test_any_document_is_cut_by_the_rules_and_loses_nothing(text: str, policy: Policy) -> None:
    check(text, policy)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(_inline, min_size=2, max_size=3), min_size=8, max_size=40), st.sampled_from(["", "> ", "  "]))
def test_any_table_is_cut_by_the_rules_and_loses_nothing(rows: list[list[str]], margin: str) -> None:
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


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=200))
def test_any_text_at_all_is_cut_by_the_rules_and_loses_nothing(text: str) -> None:
    text = text.encode("utf-8", "replace").decode().replace("\0", "")  # with more than traces of it it is refused
    check(text, SMALL)


def test_every_commonmark_example(shared_data: Path) -> None:
    examples = list(commonmark_examples(shared_data))
    assert len(examples) > 600
    for example in examples:
        check(example, Policy())
        check(example, SMALL)
        normal = normalise(example)
        assert normalise(normal) == normal


def test_every_document_of_the_corpora(shared_data: Path) -> None:
    names = set()
    for name, text in corpus(shared_data):
        names.add(name.split("/")[0])
        records = check(text, Policy())
        assert records, name
    assert names == {"rust-book", "javaguide", "commonmark"}


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.one_of(documents, st.sampled_from(_SENTENCES)), max_size=12).map("".join))
def test_the_end_of_a_chunk_is_the_same_from_near_and_from_far(text: str) -> None:
    _check_ends(text)


def test_so_it_is_in_the_corpora(shared_data: Path) -> None:
    for _, text in corpus(shared_data):
        _check_ends(text)


def _check_ends(text: str) -> None:
    document = parse(text)
    near = [list(cut(document, policy, WordTokenizer())) for policy in (SMALL, LARGER, Policy())]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passages, "_NEAR_TAIL_CHARACTERS", 0)
        assert near == [list(cut(document, policy, WordTokenizer())) for policy in (SMALL, LARGER, Policy())], text


def test_corpora_with_bytes_removed_at_random(shared_data: Path) -> None:
    """Broken fences, half tables, cut lists: what editing leaves behind."""
    chance = random.Random(7)
    for _, text in corpus(shared_data):
        start = chance.randrange(len(text))
        piece = text[start : start + 3000]
        for _ in range(12):
            place = chance.randrange(max(1, len(piece)))
            piece = piece[:place] + piece[place + chance.randrange(1, 9) :]
        check(piece, SMALL)


@pytest.mark.parametrize("text", ["", " \n\t\n", "\ufeff", "\x00", "\x01\x02", "\u00a0\n\n\u3000"])
def test_a_text_of_nothing_has_no_chunks(text: str) -> None:
    assert chunks_of(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "." * 100_000,
        '."' * 50_000,
        "[" * 50_000,
        "![[]()" * 10_000,
        "*a **b " * 20_000,
        "".join("`" * length + "  " for length in range(1, 400)),
        ">" * 10_000 + " a",
        "> " * 10_000 + "a",
        "- " * 3_000,
        "<p>" + " " * 20_000 + "\n   \nx",
        "<p>" + " " * 20_000 + "x\n" * 10_000 + "   \nx",
        "```\n\n~~~\n" * 5_000,
        "|" + "a|" * 5_000 + "\n|" + "-|" * 5_000 + "\n|" + "b|" * 5_000,
        "<!--" * 10_000,
        "x" * 1_000_000,
        "word " * 200_000,
    ],
    ids=lambda text: text[:8].strip(),
)
def test_hostile_texts_take_time_in_proportion(text: str) -> None:
    """Each takes well under a second of processor time; with one quadratic step it would take minutes."""
    start = time.process_time()
    records = chunks_of(text)
    assert time.process_time() - start < 10
    assert without_space("".join(own_parts(records))) == without_space(text)
