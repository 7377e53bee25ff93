"""Counting without looking for tokens agrees with the tokens that are found: chunk boundaries depend on it."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chunksink.ingest.formats.markdown import tokens
from tests.conftest import HEAVY, examples

_words = st.text(alphabet="aZ", min_size=1, max_size=30)
_digits = st.text(alphabet="019", min_size=1, max_size=12)
# Letters, digits, spaces and singles of several scripts and lengths in UTF-8, marks, and what is easily taken for one.
_odd = st.sampled_from(
    [
        *"é ñßжשअक中。！“”’—…«»½\u00a0\u3000\u2009\u1680\x85\x7f\x00\x1f٣３?-_|\n\t\u00ad\u200b",
        *(
            "\u200d",
            "\ufe0f",
            "\ud800",
            "\udc00",
            "e\u0301",
            "\U0001f469\u200d\U0001f4bb",
            "\U0001f44d\U0001f3fd",
            "\U0001d400",
            "คำ",
        ),
    ]
)
_mixed = st.lists(st.one_of(_words, _digits, _odd, st.characters(codec=None)), max_size=30).map("".join)


def found(text: str) -> int:
    return sum(1 for _ in tokens.spans(text, 0, len(text)))


@settings(max_examples=examples(1500), deadline=None)
@given(st.one_of(_mixed, st.text(st.characters(codec=None)), st.text(st.characters(max_codepoint=127))))
@example("é" * 8 + "中1234é")
@example("a\u0301b" * 9)
def test_count_of_any_text_equals_the_tokens_found(text: str) -> None:
    assert tokens.count(text) == found(text)


@settings(max_examples=examples(800), deadline=None)
@given(_mixed, st.data())
def test_counter_of_any_part_equals_the_tokens_of_the_part(text: str, data: st.DataObject) -> None:
    edges = sorted({0, len(text), *(edge for span in tokens.spans(text, 0, len(text)) for edge in span)})
    start, end = sorted(data.draw(st.tuples(st.sampled_from(edges), st.sampled_from(edges))))
    assert tokens.counter(text)(start, end) == found(text[start:end])


def test_count_of_every_character_equals_the_tokens_found() -> None:
    """Between letters and digits, and beside itself: a character in a wrong class would join or separate them."""
    for code in (*range(0x3000), *range(0x3000, 0x110000, 1 if HEAVY else 17)):
        text = f"abc{chr(code)}12{chr(code)}{chr(code)}d"
        assert tokens.count(text) == found(text), hex(code)


@pytest.mark.parametrize("letter", ["a", "é", "ж", "\ud800"])
def test_count_of_long_runs_takes_seven_letters_or_three_digits(letter: str) -> None:
    for length in range(1, 40):
        assert tokens.count(letter * length) == -(-length // 7)
        assert tokens.count(f"{letter * length}{'5' * length}{letter}") == -(-length // 7) + -(-length // 3) + 1


def test_count_of_a_huge_text_with_a_mark() -> None:
    assert tokens.count("word " * 2**18 + "e\u0301") == 2**18 + 1


@pytest.mark.parametrize("more", ["", "e\u0301"])
def test_counter_of_a_huge_text(more: str) -> None:
    assert tokens.counter("word " * 2**18 + more)(5, 5 * 2**18) == 2**18 - 1
