"""Ids and counts that must never change: another implementation of the formula must produce them."""

import hashlib
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.records import canonical_chunk_text
from tests.conftest import HEAVY, examples
from tests.ingest.markdown.support import chunks_of

TEXT = "# Tea\n\nGreen  tea steeps at 80 °C.\n\n```sh\nboil   --to 80\n```\n\n茶。\n"


def test_chunk_id_follows_the_formula() -> None:
    prose, code, chinese = chunks_of(TEXT, uri="kitchen/tea.md", tenant="acme")
    version = hashlib.sha256(TEXT.encode()).hexdigest()
    canonical = {
        0: (prose, "# Tea Green tea steeps at 80 °C."),
        1: (code, "```sh\nboil   --to 80\n```"),
        2: (chinese, "茶。"),
    }
    for ordinal, (record, text) in canonical.items():
        key = f"acme|{record['document_id']}|{version}|{ordinal}|{text}"
        assert record["chunk_id"] == hashlib.sha256(key.encode()).hexdigest()


def test_canonical_text_collapses_white_space_in_prose_and_in_the_overlap_of_code() -> None:
    spaces = [character for character in map(chr, range(sys.maxunicode + 1)) if character.isspace()]
    assert len(spaces) > 25
    for space in spaces:
        for prose in (f"a{space}b", f"a {space}b", f"a{space}\n\nb\n", f" a \nb{space}", f"{space}\n a\n  b"):
            assert canonical_chunk_text(prose, "prose", 0) == "a b", ascii(space)
            assert canonical_chunk_text(f"{prose}x  y", "code", len(prose)) == "a b\nx  y", ascii(space)
        assert canonical_chunk_text(f"{space}\n{space}", "prose", 0) == ""


def test_golden_ids_do_not_change() -> None:
    found = [(r["chunk_id"], r["hashes"]["text_hash"], r["metadata"]["token_count"]) for r in chunks_of(TEXT)]
    assert found == GOLDEN


def test_golden_token_counts_do_not_change() -> None:
    counts = {
        "": 0,
        " \n\t\u3000": 0,
        "tea": 1,
        "seventh": 1,
        "eighteen": 2,
        "2026": 2,
        "a_b": 3,
        "e.g.": 4,
        "茶叶。": 3,
    }
    counts |= {"茶叶。": 3, "cafe\u0301": 1, "\U0001f469\u200d\U0001f4bb\U0001f44d\U0001f3fd": 2, "नमस्ते": 1, "한국": 2}
    assert {text: tokens.count(text) for text in counts} == counts
    assert tokens.VERSION == "words-1"


GOLDEN = [
    (
        "f23b26933570772b7d9c9727ed45fa8edc0f1cf92bc9dbf3ae4cfc03feef1ddb",
        "sha256:3056750db546269ff201238e59705d1caf094c56f5e8a5a3ddc7115f3ece0ab5",
        10,
    ),
    (
        "3fd9fde7717afd99f5f772ed5b6f75558709d73d3eeb02e7fa4e91c5f42b62d6",
        "sha256:722d7de2426154e7cd177c851d6896ef9d82675b3b5cc149bd52e71fd224c434",
        12,
    ),
    (
        "35180e98642b8b510dbd6ff032431d768594841e03074941b4978d2020b438ec",
        "sha256:83440c4346f649d12b3b6fe3770eebbec6da9d2ae4b96c221f9d0c98c3ad6d75",
        2,
    ),
]


# -- the fast token count equals the number of tokens: chunk boundaries depend on it


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
    """Each character between letters and digits, and repeated: in a wrong class it would join or separate them."""
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
