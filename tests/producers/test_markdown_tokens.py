"""Counting without looking for tokens gives the number of tokens that are found: chunk boundaries hang on it."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chunksink.producers.markdown import WordTokenizer
from tests.conftest import HEAVY, examples

TOKENS = WordTokenizer()
_words = st.text(alphabet="aZ", min_size=1, max_size=30)
_digits = st.text(alphabet="019", min_size=1, max_size=12)
# Letters, digits, spaces and singles of several scripts and lengths in UTF-8, marks, and what is easily taken for one.
_odd = st.sampled_from(
    [
        *"é ñßжשअक中。！“”’—…«»½\u00a0\u3000\u2009\u1680\x85\x7f\x00\x1f٣３?-_|\n\t\u00ad\u200b",
        "e\u0301",
        "\u200d",
        "\ufe0f",
        "\U0001f469\u200d\U0001f4bb",
        "\U0001f44d\U0001f3fd",
        "\ud800",
        "\udc00",
        "\U0001d400",
        "คำ",
    ]
)
_mixed = st.lists(st.one_of(_words, _digits, _odd, st.characters(codec=None)), max_size=30).map("".join)


def found(text: str) -> int:
    return sum(1 for _ in TOKENS.spans(text, 0, len(text)))


@settings(max_examples=examples(1500), deadline=None)
@given(st.one_of(_mixed, st.text(st.characters(codec=None)), st.text(st.characters(max_codepoint=127))))
@example("é" * 8 + "中1234é")
@example("a\u0301b" * 9)
def test_a_text_has_as_many_tokens_as_are_found_in_it(text: str) -> None:
    assert TOKENS.count(text) == found(text)


@settings(max_examples=examples(800), deadline=None)
@given(_mixed, st.data())
def test_a_part_that_begins_and_ends_with_a_token_or_at_white_space_is_counted_as_if_it_stood_alone(
    text: str, data: st.DataObject
) -> None:
    edges = sorted({0, len(text), *(edge for span in TOKENS.spans(text, 0, len(text)) for edge in span)})
    start, end = sorted(data.draw(st.tuples(st.sampled_from(edges), st.sampled_from(edges))))
    assert TOKENS.counter(text)(start, end) == found(text[start:end])


def test_every_character_counts_as_it_is_found() -> None:
    """Between letters and digits, and next to its like: a character in another class would join or part them."""
    for code in (*range(0x3000), *range(0x3000, 0x110000, 1 if HEAVY else 17)):
        text = f"abc{chr(code)}12{chr(code)}{chr(code)}d"
        assert TOKENS.count(text) == found(text), hex(code)


@pytest.mark.parametrize("letter", ["a", "é", "ж", "\ud800"])
def test_long_runs_are_parted_by_seven_and_three(letter: str) -> None:
    for length in range(1, 40):
        assert TOKENS.count(letter * length) == -(-length // 7)
        assert TOKENS.count(f"{letter * length}{'5' * length}{letter}") == -(-length // 7) + -(-length // 3) + 1


def test_a_huge_text_with_a_mark_is_counted_too() -> None:
    assert TOKENS.count("word " * 2**18 + "e\u0301") == 2**18 + 1


@pytest.mark.parametrize("more", ["", "e\u0301"])
def test_parts_of_a_huge_text_are_counted_too(more: str) -> None:
    assert TOKENS.counter("word " * 2**18 + more)(5, 5 * 2**18) == 2**18 - 1
