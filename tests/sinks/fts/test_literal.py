"""Words that are typed with signs: the index drops these, so the texts are looked at."""

from collections.abc import Mapping

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.fts.query import parse
from chunksink.sinks.fts.text_patterns import has_signs

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
    '"c#"': {"csharp"},
    '".NET"': {"dotnet"},
    '".NET  and F#"': {"dotnet"},
    '".NET and F"': {"dotnet"},
    '"v3.11.2"': {"v"},
    '"3.11.2"': {"version"},
    '"boundary-layer"': {"layer"},
    '"boundary layer"': {"layer", "apart"},
    '"plan.py"': {"file"},
    '"plan.py here."': {"file"},
    '"plan py"': {"file", "files"},
    '"C++" templates': {"cpp", "cpp17", "beside"},
    '"使用C++的"': {"beside"},
    '"&str"': {"borrowed"},
    '"str"': {"borrowed", "owned"},
    '"\'static"': {"borrowed"},
    '"\u2019static"': {"borrowed"},
    '"?Sized"': {"borrowed"},
    '"T: ?Sized"': {"borrowed"},
    '"[u8"': {"borrowed", "owned"},
    '"#[derive"': {"attribute"},
    '"derive"': {"attribute", "derived"},
    '":host"': {"derived"},
    '"except*"': {"group"},
    '"except"': {"group", "exceptions"},
    '"char*"': {"group"},
    '"except* a group"': {"group"},
    '"don\'t write!it"': {"attribute"},
}


@pytest.fixture
def texts(build: FtsBuild) -> dict[str, str]:
    families = {name: family(f"texts/{name}", [text], metadata={"tags": [name]}) for name, text in TEXTS.items()}
    build.replace([*families.values(), *(family(f"d{number}", ["something else"]) for number in range(9))])
    return {one.parent_id: name for name, one in families.items()}


@pytest.mark.parametrize("typed", PHRASES)
def test_in_quotes_signs_stand_as_they_were_typed(reader: FtsReader, texts: dict[str, str], typed: str) -> None:
    assert {texts[hit.parent_id] for hit in reader.search(typed, 100)} == PHRASES[typed]
    assert {value.value for value in reader.facets(typed, ["tags"])["tags"]} == PHRASES[typed]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("C++", {"cpp", "cpp17"}),
        ("c++ templates", {"cpp"}),
        ("(C++)", {"cpp", "cpp17"}),
        ("C#", {"csharp"}),
        ("F#", {"dotnet"}),
        (".NET", {"dotnet"}),
        (".net ", {"dotnet"}),
        ("3.11.2", {"version", "v"}),
        ("v3.11.2", {"version", "v"}),
        ("V3.11.2,", {"version", "v"}),
    ],
)
def test_without_quotes_what_has_them_comes_first(
    reader: FtsReader, texts: dict[str, str], typed: str, first: set[str]
) -> None:
    hits = [texts[hit.parent_id] for hit in reader.search(typed, 100)]
    assert set(hits[: len(first)]) == first
    bare = {texts[hit.parent_id] for hit in reader.search(typed.replace("+", "").replace("#", ""), 100)}
    assert bare <= set(hits), "the bare word is found too"


def test_where_nothing_has_the_sign_it_does_not_count(reader: FtsReader, texts: dict[str, str]) -> None:
    assert reader.search("net+ ") == reader.search("net ")


@pytest.mark.parametrize(
    ("typed", "signed"),
    [
        ("C++, C# or .NET?", (("C", "C++"), ("C", "C#"), ("NET", ".NET"))),
        ("a+b e.g. 3. .5 ...and C++17 -zebra #tag", ()),
        ("B+ tree", (("B", "B+"),)),
    ],
)
def test_which_words_have_signs(typed: str, signed: tuple[tuple[str, str], ...]) -> None:
    assert parse(typed).signed == signed


def test_which_phrases_have_signs() -> None:
    assert all(map(has_signs, ("C++", "err_42", "a/b", "say --force", "std::vec", "is .NET.", "&str", "a ?Sized")))
    assert not any(
        map(has_signs, ("left the harbour.", "don't, please", "one (two) three - four", "展望台、無料", "ปลา"))
    )
