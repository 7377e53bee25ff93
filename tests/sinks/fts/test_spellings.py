"""Signs that FTS5 takes for others than the letters they stand for."""

import pytest

from sinks.conformance.samples import family
from sinks.fts import FtsBuild, FtsReader
from sinks.fts.query import spellings

TEXTS = {
    "ligature": "the \ufb01nance of\ufb01ce is e\ufb03cient",
    "letters": "Finance, an office, efficient",
    "eszett": "die lange Straße am Fluss",
    "double": "die lange Strasse am Fluß",
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
