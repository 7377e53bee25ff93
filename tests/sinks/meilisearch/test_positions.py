"""The position estimate against the real server: the last word of the longest accepted text is found."""

import unicodedata
from collections.abc import Callable

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.meilisearch.build import Limits
from chunksink.sinks.meilisearch.rows import MAX_POSITIONS, positions, refusal_reason
from tests.conftest import HEAVY
from tests.support.meilisearch import SETTINGS, Server, build_id_of, build_of

UNITS = [
    *("word ", "word. ", "word, ", "word; ", "word! ", "word? ", "word\n", "word-", "word。", "a.\n", "a..b ", "a!?b"),
    *("ab_cd ", "a.b ", "x-y ", "camelCase ", "a$b ", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467 "),
    *("东京都", "東京都庁の展望台は無料です。", "한국어를 배웁니다. ", "ภาษาไทยไม่มีช่องว่าง", "ភាសាខ្មែរ", "الكتاب، "),
    *("¡word! ", "¿word? ", "word‽ ", "§ 1 ", "word׃ ", "word։ ", "ሰላም። ", "བོད་ཡིག། ", "ひらがな｡", "a ! ☃ ! ☃ "),
    *(
        "aя",
        "яa1",
        "αaя ",
        "ЁжCamel ",
        "a1b2 ",
        "1a ",
        "e\u0301a ",
        "l'avion ",
        "ǅa",
        "μm ",
        "a\u037eb",
        "a˃b",
        "ﬁn ",
        "ß",
    ),
    *("שלום עולם ", "नमस्ते दुनिया। ", "Բարև։ ", "გამარჯობა ", "a\u200bb", "a\u00adb", "½ ", "x² ", "ﷺ ", "㌀", "ﾊﾝｶｸ"),
    *("if (a[i] != {b: 1}) // c\n", "| a | b |\n", "https://a.b/c?d=e&f#g ", "a@b.c ", "1,234.5 ", "#tag ", "C++ "),
]
_OF_EACH = 40


def signs(categories: tuple[str, ...], step: int = 1) -> list[str]:
    """Units of many signs, each after a letter, with and without spaces."""
    found = [sign for sign in map(chr, range(1, 0x30000)) if unicodedata.category(sign).startswith(categories)][::step]
    groups = [found[start : start + _OF_EACH] for start in range(0, len(found), _OF_EACH)]
    return [layout.join(group) + layout for group in groups for layout in ("a", " a ")]


KINDS: dict[str, Callable[[], list[str]]] = {
    "words": lambda: UNITS,
    "separators": lambda: signs(("P", "Z")),
    "symbols": lambda: signs(("S", "Cc", "Cf"), 9),
    "letters": lambda: signs(("L", "M", "N"), 197),
}


@pytest.mark.parametrize("kind", KINDS)
def test_position_estimate_is_never_too_low(kind: str, server: Server) -> None:
    quicker = {**SETTINGS, "proximityPrecision": "byAttribute", "prefixSearch": "disabled"}
    sink = server.sink(limits=Limits(patience=300), settings=quicker)
    texts = [longest(unit) for unit in KINDS[kind]()[:: 1 if HEAVY else 8]]
    families = [family(f"docs/{number}.md", [text]) for number, text in enumerate(texts)]
    build = build_of(sink, families)
    found = {hit.id for hit in sink.reader(build_id_of(build)).search('"lastword"', 1000)}
    assert [text[:40] for text, one in zip(texts, families, strict=True) if one.documents[0].id not in found] == []
    sink.close()


def longest(unit: str) -> str:
    def text(count: int) -> str:
        return unit * count + " lastword"

    per_unit = max((positions(unit * 20) - positions(unit * 10)) / 10, 0.5)  # some units form one word together
    count = int(MAX_POSITIONS / per_unit) + 1
    while positions(text(count)) > MAX_POSITIONS:
        count -= 1
    return text(count)


def test_a_short_text_of_many_positions_is_refused() -> None:
    (dense,) = family("a", ["一。" * 8000]).documents
    assert positions(dense.text) > MAX_POSITIONS
    assert refusal_reason(dense)


def test_position_estimate_is_close_for_ordinary_words() -> None:
    assert positions("word " * 1000) == 1000
    assert positions("word. " * 1000) == 8000
    assert positions("слово λόγος word ") == 3
