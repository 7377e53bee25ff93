"""Matches beyond the index's tokens: words typed with symbols, and equivalent symbols."""

import sqlite3
import unicodedata
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.fts.letters import REPLACEMENTS, fold_whole
from chunksink.sinks.fts.query import parse
from chunksink.sinks.reader import Sort
from tests.support.fts import fill

TEXTS = {
    "c": "the language C and c libraries",
    "cpp": "templates of a large kind are, after all of this and much else, a part of C++ as well",
    "csharp": "C# notes: C, C and C",
    "cpp17": "in C++17 and in Objective-C++",
    "net": "the net of a fisher, a net",
    "dotnet": "whatever else there is to be said of it, .NET and F# run here",
    "version": "since 3.11.2 of it",
    "v": "tag v3.11.2 again",
    "other": "3 of 11 in 2 days",
    "layer": "the boundary\u2011layer of a plate",
    "apart": "the boundary layer of a plate",
    "file": "see plan.py here",
    "files": "a plan. Py is another one",
    "beside": "使用C++的系统",
    "borrowed": "takes a (&str, &'static [u8]) and T: ?Sized",
    "owned": "takes a str of static size, sized [u8",
    "attribute": "write #[derive(Debug)] above, don\u2019t write!it",
    "group": "with except* a group is taken apart, a char*",
    "exceptions": "all are exceptions, except one char **",
    "derived": "how to derive Debug, and a :host",
}
PHRASES: Mapping[str, set[str]] = {
    '"C++"': {"cpp", "cpp17", "beside"},
    '".NET"': {"dotnet"},
    '".NET  and F#"': {"dotnet"},
    '"3.11.2"': {"version"},
    '"boundary-layer"': {"layer"},
    '"boundary layer"': {"layer", "apart"},
    '"plan.py"': {"file"},
    '"plan py"': {"file", "files"},
    '"C++" templates': {"cpp", "cpp17", "beside"},
    '"使用C++的"': {"beside"},
    '"&str"': {"borrowed"},
    '"str"': {"borrowed", "owned"},
    '"\'static"': {"borrowed"},
    '"?Sized"': {"borrowed"},
    '"[u8"': {"borrowed", "owned"},
    '"#[derive"': {"attribute"},
    '"derive"': {"attribute", "derived"},
    '"except*"': {"group"},
    '"char*"': {"group"},
    '"except* a group"': {"group"},
    '"don\'t write!it"': {"attribute"},
}


@pytest.fixture
def texts(build: FtsBuild) -> dict[str, str]:
    families = {name: family(f"texts/{name}", [text], metadata={"tags": [name]}) for name, text in TEXTS.items()}
    build.replace([*families.values(), *(family(f"d{number}", ["something else"]) for number in range(9))])
    return {one.parent_id: name for name, one in families.items()}


def test_phrase_with_punctuation_and_vowel_signs_is_found(build: FtsBuild, reader: FtsReader) -> None:
    fill(build, {"hindi": "यह हिन्दी-भाषा और C++ हिन्दी में"})
    assert len(reader.search('"हिन्दी-भाषा"', 3)) == len(reader.search('"C++ हिन्दी"', 3)) == 1


@pytest.mark.parametrize("typed", PHRASES)
def test_quoted_symbols_match_exactly(reader: FtsReader, texts: dict[str, str], typed: str) -> None:
    assert {texts[hit.parent_id] for hit in reader.search(typed, 100)} == PHRASES[typed]
    assert {value.value for value in reader.facets(typed, ["tags"])["tags"]} == PHRASES[typed]
    if typed.endswith('"'):  # a sorted search also requires the other words
        assert {texts[hit.parent_id] for hit in reader.search(typed, 100, sort=Sort("year"))} == PHRASES[typed]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("C++", {"cpp", "cpp17"}),
        ("c++ templates", {"cpp"}),
        ("C#", {"csharp"}),
        (".NET", {"dotnet"}),
        ("3.11.2", {"version", "v"}),
        ("V3.11.2,", {"version", "v"}),
    ],
)
def test_unquoted_symbols_rank_exact_matches_first(
    reader: FtsReader, texts: dict[str, str], typed: str, first: set[str]
) -> None:
    hits = [texts[hit.parent_id] for hit in reader.search(typed, 100)]
    assert set(hits[: len(first)]) == first
    bare = {texts[hit.parent_id] for hit in reader.search(typed.replace("+", "").replace("#", ""), 100)}
    assert bare <= set(hits), "the bare word is found too"


def test_missing_symbol_is_ignored(reader: FtsReader, texts: dict[str, str]) -> None:
    assert reader.search("net+ ") == reader.search("net ")


@pytest.mark.parametrize(
    ("typed", "punctuated"),
    [
        ("C++, C# or .NET?", (("C", "C++"), ("C", "C#"), ("NET", ".NET"))),
        ("a+b e.g. 3. .5 ...and C++17 -zebra #tag", ()),
        ("B+ tree", (("B", "B+"),)),
    ],
)
def test_words_with_symbols_are_recognised(typed: str, punctuated: tuple[tuple[str, str], ...]) -> None:
    assert parse(typed).punctuated == punctuated


SPELT = {
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
    "polish": "Łódź i Żółw",
    "danish": "RØDGRØD på dansk",
    "croatian": "grad Đakovo",
    "icelandic": "á Þingvellir",
    "turkish": "Işık, IŞIK",
    "greek": "ο οδηγός",
    "arabic hamza": "إدارة الملفات عند أحمد",
    "nukta": "यह फ़ाइल है",
    "two signs": "यह \u095eाइल है",
    "umlaut": "die Größe von Müller",
    "digraph": "die Groesse von Mueller",
    "bucket": "the files are in S3",
    "possessive": "the company's 3 branches",
    "one letter": "road E52, fault P0420, key H7, paper A4",
    "hyphen": "road E-52, fault P-0420, key H-7, a 4 km walk",
    "arabic article": "تم شحن البطارية",
    "arabic and": "خلل وبطارية",
    "arabic signs": "المحوّل الكهربائيّ، شكرًا",
    "arabic elongation": "مـــرحبا بكم",
    "arabic digits": "رقم ١٢٧٥",
    "persian digits": "شماره ۱۲۷۵",
    "bengali digits": "সংখ্যা ১২৭৫",
    "hebrew article": "טעינת הסוללה",
    "hebrew in": "תקלה בסוללה",
    "hebrew points": "מַחְשֵׁב חדש",
    "arabic beginning": "مع الالتزام",
    "hebrew beginning": "נא לפנות בהודעה",
    "hebrew cantillation": "בְּרֵאשִׁ֖ית בָּרָ֣א",
}


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("finance ", {"ligature", "letters"}),
        ("\ufb01nance ", {"ligature", "letters"}),
        ("fina", {"ligature", "letters"}),
        ("office ", {"ligature", "letters"}),
        ('"finance office"', {"ligature"}),
        ("strasse ", {"eszett", "double"}),
        ("Straße ", {"eszett", "double"}),
        ("fi\u00adnance", {"ligature", "letters"}),
        ("\uff26\uff29\uff2e\uff21\uff2e\uff23\uff25 ", {"ligature", "letters"}),
        ('"lange strasse"', {"eszett", "double"}),
        ("емкость ", {"dots", "no dots"}),
        ("емк", {"dots", "no dots"}),
        ('"ёмкость бака"', {"dots", "no dots"}),
        ('"все еще"', {"dots", "no dots"}),
        ("coeur ", {"joined", "apart"}),
        ("2024", {"wide", "narrow"}),
        ("\uff12\uff10\uff12\uff14", {"wide", "narrow"}),
        ("nod", {"wide", "narrow"}),
        ("nod ", set()),
        ("\uff7a\uff9d\uff8e\uff9f\uff70\uff88\uff9d\uff84", {"kana", "half-wide"}),
        (unicodedata.normalize("NFD", "コンポーネントが"), {"kana"}),
        (unicodedata.normalize("NFD", "한글"), {"hangul"}),
        ("مَكْتَبة", {"arabic"}),
        ("مكتبـــة ", {"arabic"}),
        ("שָׁלוֹם", {"hebrew"}),
        ("SHA-256 ", {"one word", "two words", "parted"}),
        ("sha\u2011256 ", {"one word", "two words", "parted"}),
        ("xr9", {"one word", "two words", "parted", "longer"}),
        ("XR9 ", {"one word", "two words", "parted"}),
        ("XR 9 ", {"two words", "parted"}),
        ('"XR9"', {"one word", "two words", "parted"}),
        ('"XR-9"', {"two words", "parted"}),
        ("Lodz ", {"polish"}),
        ("ŻÓŁW ", {"polish"}),
        ("zolw", {"polish"}),
        ('"lodz i zolw"', {"polish"}),
        ("rodgrod ", {"danish"}),
        ("rødg", {"danish"}),
        ("dakovo ", {"croatian"}),
        ("Thingvellir ", {"icelandic"}),
        ("isik ", {"turkish"}),
        ("ışık ", {"turkish"}),
        ("οδηγος ", {"greek"}),
        ("ΟΔΗΓΌΣ ", {"greek"}),
        ("ادارة ", {"arabic hamza"}),
        ("احمد ", {"arabic hamza"}),
        ("फाइल ", {"nukta", "two signs"}),
        ("फ़ाइल ", {"nukta", "two signs"}),
        ("Müller ", {"umlaut", "digraph"}),
        ("GRÖSSE ", {"umlaut", "digraph"}),
        ("E52 ", {"one letter", "hyphen"}),
        ("P-0420 ", {"one letter", "hyphen"}),
        ("h7 ", {"one letter", "hyphen"}),
        ("A4 ", {"one letter"}),
        ("S3 ", {"bucket"}),
        ("بطارية ", {"arabic article", "arabic and"}),
        ("البطارية ", {"arabic article", "arabic and"}),
        ("وبطارية ", {"arabic and"}),
        ("المحول ", {"arabic signs"}),
        ("محوّل ", {"arabic signs"}),
        ("شكرا", {"arabic signs"}),
        ('"المحول الكهربائي"', {"arabic signs"}),
        ("مرحبا ", {"arabic elongation"}),
        ("1275 ", {"arabic digits", "persian digits", "bengali digits"}),
        ("١٢٧٥ ", {"arabic digits", "persian digits", "bengali digits"}),
        ("סוללה ", {"hebrew article", "hebrew in"}),
        ("הסוללה ", {"hebrew article", "hebrew in"}),
        ("מחשב ", {"hebrew points"}),
        ("التزام ", {"arabic beginning"}),
        ("הודעה ", {"hebrew beginning"}),
        ("בראשית ", {"hebrew cantillation"}),
    ],
)
def test_both_spellings_find_both(build: FtsBuild, reader: FtsReader, typed: str, found: set[str]) -> None:
    families = {name: family(name, [text]) for name, text in SPELT.items()}
    build.replace([*families.values(), *(family(f"d{number}", ["something else"]) for number in range(9))])
    names = {one.parent_id: name for name, one in families.items()}
    assert {names[hit.parent_id] for hit in reader.search(typed)} == found


@pytest.mark.parametrize("before", ["", "and so on " * 3000])
def test_snippet_has_the_letters_of_the_text(build: FtsBuild, reader: FtsReader, before: str) -> None:
    """Also if they are indexed as others, or as two."""
    one = family("a", [f"{before}Æther, Þingvellir, फ़ाइल, Łódź"])
    build.replace([one])
    id = one.documents[0].id
    pieces = reader.snippets("lodz thingvellir फाइल aether", [id])[id]
    assert [piece.text for piece in pieces if piece.match] == ["Æther", "Þingvellir", "फ़ाइल", "Łódź"]


@pytest.mark.parametrize("before", ["", "x " * 11_000])
@pytest.mark.parametrize(
    "signs",
    [
        "الشدة (\u0651) و \u25cc\u0651 ثم \u064b\u0651",
        "\u0640",
        "\u0651 \u064b",
        "\u201c\u0640\u201d *\u0651* _\u0651_ -\u0640",
    ],
)
def test_matches_after_signs_that_stand_alone_are_marked(
    build: FtsBuild, reader: FtsReader, signs: str, before: str
) -> None:
    """FTS5 counts such a sign as a word, in the index as in the text."""
    one = family("a", [f"{signs} المحو\u0651ل الكبير {before}"])
    build.replace([one])
    id = one.documents[0].id
    for typed, found in (("المحول", "المحو\u0651ل"), ("كبير", "الكبير")):
        assert [piece.text for piece in reader.snippets(typed, [id])[id] if piece.match] == [found]


@pytest.mark.parametrize("typed", ["2024", "nod", "\uff2e\uff4f\uff44\uff45 "])
def test_wide_letters_are_marked_and_counted_like_others(build: FtsBuild, reader: FtsReader, typed: str) -> None:
    families = [family(name, [SPELT[name]], metadata={"tags": ["x"]}) for name in ("wide", "narrow")]
    build.replace([*families, *(family(f"d{number}", ["something else"]) for number in range(9))])
    ids = [one.documents[0].id for one in families]
    marked = reader.snippets(typed, ids)
    assert [any(piece.match for piece in marked[id]) for id in ids] == [True, True]
    assert [value.families for value in reader.facets(typed, ["tags"])["tags"]] == [2]


def test_letters_are_replaced_alike_in_python_and_in_sql(build: FtsBuild, path: Path) -> None:
    texts = [
        *SPELT.values(),
        "".join(REPLACEMENTS),
        "\u0958\u093c",
        "a \u093c b",
        "a \u0651\u0640 (\u0651) \u0311",
        "\u0640 a",
    ]
    build.replace([family("f", texts)])
    with closing(sqlite3.connect(path)) as connection:
        folded = dict(connection.execute("SELECT d.text, f.text FROM documents d JOIN documents_folded f USING (row)"))
    assert folded == {text: fold_whole(text) for text in texts}
