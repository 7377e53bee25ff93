"""What stands in quotes must stand in every hit of a keyword search, whatever script it is in."""

from collections.abc import Mapping

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.reader import FacetValue

TEXTS = {
    "phrase": "a smart pointer owns what it points to",
    "wrapped": "we call it a smart\npointer (of the\nstandard library)",
    "words": "the pointer of a smart compiler",
    "other": "a compiler and a linker",
    "tokyo": "東京都庁の展望台は無料です",
    "kyoto": "京都の展望と展望台、無料は京都だけ",
    "busan": "서울에서\n부산까지 기차",
    "seoul": "부산까지 기차로 서울에서",
    "beside": "使用machine learning的系统",
    "within": "使用machine learnings的系统",
}


@pytest.fixture
def texts(build: FtsBuild) -> dict[str, str]:
    families = {name: family(f"texts/{name}", [text], metadata={"tags": [name]}) for name, text in TEXTS.items()}
    build.replace(list(families.values()))
    return {one.documents[0].id: name for name, one in families.items()}


PHRASES: Mapping[str, set[str]] = {
    '"smart pointer"': {"phrase", "wrapped"},
    '"smart pointer" compiler': {"phrase", "wrapped"},
    '"smart pointer" "standard library" linker': {"wrapped"},
    '"smart pointer" "a compiler"': set(),
    '"pointer smart"': set(),
    '"the" compiler': {"words", "wrapped"},
    '"展望台は無料"': {"tokyo"},
    '"展望台" 京都': {"tokyo", "kyoto"},
    '"京都だ"': {"kyoto"},
    '"都"': {"tokyo", "kyoto"},
    '"京都の"': {"kyoto"},
    '"東京" 展望': {"tokyo"},
    '"서울에서 부산까지"': {"busan"},
    '"machine learning"': {"beside"},
    '"使用machine learning"': {"beside"},
    '"?!" linker': {"other"},
    '"" linker': {"other"},
    '"linker': {"other"},
}


@pytest.mark.parametrize("typed", PHRASES)
def test_only_what_holds_it_is_found_and_counted(reader: FtsReader, texts: dict[str, str], typed: str) -> None:
    assert {texts[hit.id] for hit in reader.search(typed, 100)} == PHRASES[typed]
    counted = reader.facets(typed, ["tags"])["tags"]
    assert counted == [FacetValue(name, 1) for name in sorted(PHRASES[typed])]


def test_any_number_of_phrases_can_be_asked_for(reader: FtsReader, texts: dict[str, str]) -> None:
    typed = " ".join(f'"{word}"' for word in TEXTS["phrase"].split())
    assert [texts[hit.id] for hit in reader.search(typed)] == ["phrase"]
    assert reader.search(" ".join(f'"n{number}"' for number in range(1500))) == []
