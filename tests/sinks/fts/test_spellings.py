"""Signs that FTS5 takes for others than the letters they stand for."""

import unicodedata

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.fts.word_forms import spellings

TEXTS = {
    "ligature": "the \ufb01nance of\ufb01ce is e\ufb03cient",
    "letters": "Finance, an office, efficient",
    "eszett": "die lange Straße am Fluss",
    "double": "die lange Strasse am Fluß",
    "dots": "Ёмкость бака 40 литров, всё ещё полная",
    "no dots": "емкость бака 40 литров, все еще полная",
    "joined": "un cœur de bœuf, Encyclopædia",
    "apart": "un coeur de boeuf, encyclopaedia",
    "wide": "\uff12\uff10\uff12\uff14年の\uff21\uff30\uff29と\uff2e\uff4f\uff44\uff45",
    "narrow": "2024年のAPIとNode",
    "kana": "コンポーネントが無い",
    "half-wide": "\uff7a\uff9d\uff8e\uff9f\uff70\uff88\uff9d\uff84一覧",
    "hangul": "한글",
    "arabic": "في مكتبة كبيرة",
    "hebrew": "שלום לכם",
    "one word": "hashed with SHA256, the XR9 hums",
    "two words": "hashed with SHA-256, the XR-9 hums",
    "parted": "hashed with SHA 256, the XR\u20119 hums",
    "longer": "hashed with SHA512, the XR95 hums",
}


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("finance ", {"ligature", "letters"}),
        ("FINANCE", {"ligature", "letters"}),
        ("\ufb01nance ", {"ligature", "letters"}),
        ("fina", {"ligature", "letters"}),
        ("office ", {"ligature", "letters"}),
        ("efficient ", {"ligature", "letters"}),
        ('"finance office"', {"ligature"}),
        ("strasse ", {"eszett", "double"}),
        ("STRASSE ", {"eszett", "double"}),
        ("Straße ", {"eszett", "double"}),
        ("fi\u00adnance", {"ligature", "letters"}),
        ("\uff26\uff29\uff2e\uff21\uff2e\uff23\uff25 ", {"ligature", "letters"}),
        ("\uff26\uff29\uff2e\uff21", {"ligature", "letters"}),
        ('"lange strasse"', {"eszett", "double"}),
        ("емкость ", {"dots", "no dots"}),
        ("ЁМКОСТЬ ", {"dots", "no dots"}),
        ("емк", {"dots", "no dots"}),
        ("еще ", {"dots", "no dots"}),
        ('"ёмкость бака"', {"dots", "no dots"}),
        ('"все еще"', {"dots", "no dots"}),
        ('"всё еще"', {"dots", "no dots"}),
        ("coeur ", {"joined", "apart"}),
        ("Cœur ", {"joined", "apart"}),
        ("encyclopaedia ", {"joined", "apart"}),
        ("2024", {"wide", "narrow"}),
        ("2024 ", {"wide", "narrow"}),
        ("\uff12\uff10\uff12\uff14", {"wide", "narrow"}),
        ("API ", {"wide", "narrow"}),
        ("nod", {"wide", "narrow"}),
        ("nod ", set()),
        ("\uff7a\uff9d\uff8e\uff9f\uff70\uff88\uff9d\uff84", {"kana", "half-wide"}),
        (unicodedata.normalize("NFD", "コンポーネントが"), {"kana"}),
        (unicodedata.normalize("NFD", "한글"), {"hangul"}),
        ("مَكْتَبة", {"arabic"}),
        ("مكتبـــة ", {"arabic"}),
        ("שָׁלוֹם", {"hebrew"}),
        ("sha256 ", {"one word", "two words", "parted"}),
        ("SHA-256 ", {"one word", "two words", "parted"}),
        ("sha\u2011256 ", {"one word", "two words", "parted"}),
        ("xr9", {"one word", "two words", "parted", "longer"}),
        ("XR9 ", {"one word", "two words", "parted"}),
        ("xr-9", {"one word", "two words", "parted", "longer"}),
        ("XR 9 ", {"two words", "parted"}),
        ('"XR9"', {"one word", "two words", "parted"}),
        ('"XR-9"', {"two words", "parted"}),
    ],
)
def test_both_ways_of_writing_find_both(build: FtsBuild, reader: FtsReader, typed: str, found: set[str]) -> None:
    families = {name: family(name, [text]) for name, text in TEXTS.items()}
    build.replace([*families.values(), *(family(f"d{number}", ["something else"]) for number in range(9))])
    names = {one.parent_id: name for name, one in families.items()}
    assert {names[hit.parent_id] for hit in reader.search(typed)} == found


def test_most_words_have_one_spelling() -> None:
    assert spellings("Harbour") == ["Harbour"]
    assert spellings("boundary layer") == ["boundary layer"]
    assert [spellings(word) for word in ("a4", "3d", "B-52", "x86-64")] == [["a4"], ["3d"], ["B-52"], ["x86-64"]]


@pytest.mark.parametrize("typed", ["2024", "nod", "\uff2e\uff4f\uff44\uff45 "])
def test_wide_letters_are_marked_and_counted_as_others(build: FtsBuild, reader: FtsReader, typed: str) -> None:
    families = [family(name, [TEXTS[name]], metadata={"tags": ["x"]}) for name in ("wide", "narrow")]
    build.replace([*families, *(family(f"d{number}", ["something else"]) for number in range(9))])
    ids = [one.documents[0].id for one in families]
    marked = reader.snippets(typed, ids)
    assert [any(piece.match for piece in marked[id]) for id in ids] == [True, True]
    assert [value.families for value in reader.facets(typed, ["tags"])["tags"]] == [2]
