"""A pasted page is a query too: of its words those are looked for that say most."""

import time

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader, query, text_patterns
from chunksink.sinks.fts.query import MOST_TERMS

FILLER = [f"filler{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(MOST_TERMS + 30)]


def test_a_rare_word_after_many_others_is_found(build: FtsBuild, reader: FtsReader) -> None:
    rare = family("rare", ["how to make a screenshot"], metadata={"tags": ["rare"]})
    common = [family(f"d{number}", [" ".join(FILLER)], metadata={"tags": ["common"]}) for number in range(3)]
    build.replace([rare, *common])
    for before in (FILLER, [f"nowhere{number}x" for number in range(500)], [f"{word}, {word * 200}" for word in "ab"]):
        typed = " ".join(before) + " screenshot "
        assert rare.parent_id in [hit.parent_id for hit in reader.search(typed)]
        assert "rare" in [value.value for value in reader.facets(typed, ["tags"])["tags"]]
        id = rare.documents[0].id
        assert [piece.text for piece in reader.snippets(typed, [id])[id] if piece.match] == ["screenshot"]
        most = reader.most_score(typed)
        assert most is None or most > 0


def test_a_word_of_the_last_page_is_found(build: FtsBuild, reader: FtsReader) -> None:
    rare = family("rare", ["how to make a screenshot"])
    build.replace([rare, *(family(f"d{number}", ["something else"]) for number in range(5))])
    typed = "something " * 990 + "screenshot"
    assert 9_900 < len(typed) < 10_000
    assert reader.search(typed, 1)[0].parent_id == rare.parent_id


def test_a_rare_run_after_many_others_is_found(build: FtsBuild, reader: FtsReader) -> None:
    rare = family("rare", ["東京都庁の展望台"])
    build.replace([rare, family("other", ["something else"])])
    for between in ("", " ", "。"):
        before = between.join(chr(0x5000 + number) for number in range(300))
        assert [hit.parent_id for hit in reader.search(f"{before} 展望台")] == [rare.parent_id]


@pytest.mark.parametrize(
    "sign", ["x", "x-", "-", "#", "1", "1.", "+", "x+", "'", '"', '1"', " ", "猫", "猫x", "::", "x::"]
)
def test_no_query_takes_longer_than_it_is_long(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MOST_CHARACTERS", 100_000)
    long = sign * (100_000 // len(sign)) + "!"
    began = time.process_time()
    query.parse(long)
    query.parse(f'"{long}"')
    text_patterns.signed_words(long)
    assert time.process_time() - began < 10  # by the square of its length it is minutes
