"""A word that stands nowhere, and the one that is nearly written so."""

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.reader import Filter

TEXTS = (
    "The calibration of a sensor, and the structure of its housing",
    "Travel and other expenses: hotels, a Straße",
    "In the kitchen. Universities received packages",
    "All kitchens are closed",
    "手机iPhone 设置",
    "Eine Übersetzung; l'éclairage",
    "Köln, Kouen",
)


@pytest.fixture
def filled(build: FtsBuild, reader: FtsReader) -> FtsReader:
    build.replace([family(f"{number}.md", [text], source_type=f"t{number}") for number, text in enumerate(TEXTS)])
    build.flush()
    return reader


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("calibraton ", "calibration"),  # wrong in an ending, which the index does not have
        ("strcture ", "structure"),
        ("travle ", "travel"),
        ("expences ", "expenses"),  # `expens` is a stem, and no word that has it
        ("kichen ", "kitchen"),  # of two forms the nearer one
        ("KICHEN ", "kitchen"),
        ("koeln ", "köln"),  # which `kouen` is nearer to by its letters
        ("uebersetzung ", "übersetzung"),
        ("strase", "straße"),
        ("Übersetzng ", "übersetzung"),
        ("éclairrage ", "éclairage"),
        ("senzor", "sensor"),  # also where it may be going on
    ],
)
def test_what_is_meant(filled: FtsReader, typed: str, near: str) -> None:
    assert list(filled.corrections(typed).values()) == [near]


@pytest.mark.parametrize(
    "typed",
    [
        "calibration ",
        "calib",  # the beginning of one
        "universities received",
        "xylophone ",
        "hotl ",  # short as it is, it would be near to many
        "手几iPhone",
        "E-4711",
        "",
    ],
)
def test_nothing_is_meant(filled: FtsReader, typed: str) -> None:
    assert filled.corrections(typed) == {}


def test_only_what_the_filters_let_through(filled: FtsReader) -> None:
    theirs = [Filter("source_type", any_of=("t1",))]
    assert filled.corrections("kichen travle ", theirs) == {"travle": "travel"}
    assert filled.corrections("kitchen ", theirs) == {}, "another one's word is not said, though it is written just so"


def test_of_many_words_the_first(filled: FtsReader) -> None:
    assert filled.corrections("strcture " * 3 + "kichen ") == {"strcture": "structure", "kichen": "kitchen"}
    assert filled.corrections("x" * 5000 + " ") == {}
