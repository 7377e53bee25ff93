"""Words beside scripts without spaces: found as words, never within longer ones."""

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.reader import FacetValue, Piece

TEXTS = {
    "framework": "使用Spring框架的personLocation与parties",
    "structure": "Spring里的ring结构,Spring框架",
    "beside": "手机iPhone很好",
    "beside, longer": "手机iPhones和iPhone15",
    "prefixed": "动物zebras很多",
    "korean": "서울KTX열차",
    "thai": "ใช้redisใน",
    "english": "a Spring of personLocations",
}


@pytest.fixture
def texts(build: FtsBuild) -> dict[str, str]:
    families = {name: family(name, [text], metadata={"tags": [name]}) for name, text in TEXTS.items()}
    build.replace(list(families.values()))
    return {one.documents[0].id: name for name, one in families.items()}


def marked(pieces: tuple[Piece, ...]) -> list[str]:
    return [piece.text for piece in pieces if piece.match]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("ring", {"structure": ["ring"]}),
        ("ring ", {"structure": ["ring"]}),
        ("cat", {}),
        ("art ", {}),
        ("location parties ", {"framework": ["parties"]}),
        ("iphone ", {"beside": ["iPhone"]}),
        ("iPhone15 ", {"beside, longer": ["iPhone15"]}),
        ("zeb", {"prefixed": ["zeb"]}),
        ("zeb ", {}),
        ("ebras", {}),
        ("ktx", {"korean": ["KTX"]}),
        ("redis ", {"thai": ["redis"]}),
        ("ring 框架 ", {"structure": ["ring", "框架"], "framework": ["框架"]}),
    ],
)
def test_a_word_ends_where_other_letters_do(
    reader: FtsReader, texts: dict[str, str], typed: str, found: dict[str, list[str]]
) -> None:
    hits = reader.search(typed, 100)
    assert {texts[hit.id] for hit in hits} == found.keys()
    assert reader.facets(typed, ["tags"])["tags"] == [FacetValue(name, 1) for name in sorted(found)]
    shown = reader.snippets(typed, list(texts))
    assert {texts[id]: marked(pieces) for id, pieces in shown.items()} == found
    for id, pieces in shown.items():
        assert "".join(piece.text for piece in pieces) == TEXTS[texts[id]]


def test_what_is_shown_is_around_the_word_and_not_around_a_part_of_another(build: FtsBuild, reader: FtsReader) -> None:
    long = family("long", ["Spring" + "的" * 300 + "ring" + "的" * 300])
    build.replace([long])
    [id] = [document.id for document in long.documents]
    assert marked(reader.snippets("ring ", [id])[id]) == ["ring"]
