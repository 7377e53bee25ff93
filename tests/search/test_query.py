"""One answer from two engines."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunksink.embeddings.errors import TextRefused
from chunksink.search import order
from chunksink.search import query as query_
from chunksink.search.answer import Answer
from chunksink.search.errors import InvalidQuestion
from chunksink.search.legs import Legs
from chunksink.search.question import Mode, Question
from chunksink.sinks.document import Vectors
from chunksink.sinks.fts import FtsSink
from tests.search.support import MODES, Counted, family, legs_over, meaning, with_readers
from tests.support.bus import parent_of

FAMILIES = [
    family("pets.md", "The cat sleeps on the mat", "A cat and another cat", "Dogs bark at night"),
    family("sea.md", "The vessel left the harbour", "A boat needs paint"),
    family("law.md", "The levy is due in May"),
]


def search(legs: Legs, text: str, mode: Mode = "hybrid", limit: int = 10, **more: Any) -> Answer:
    return query_.search(legs, Question(text, mode=mode, limit=limit, **more))


def texts(answer: Answer) -> list[str]:
    return [hit.text for hit in answer.hits]


def test_keyword_finds_words_and_semantic_finds_meanings(legs: Legs) -> None:
    assert texts(search(legs, "boat", mode="keyword")) == ["A boat needs paint"]
    assert texts(search(legs, "feline", mode="keyword")) == []
    (hit,) = search(legs, "feline", mode="semantic", limit=1).hits
    assert hit.parent_id == parent_of("pets.md")
    assert "cat" in hit.text


def test_hybrid_score_is_the_sum_of_both_legs(legs: Legs) -> None:
    """One chunk contains `harbour`, two have the meaning of `ship`. The chunk with both comes first."""
    answer = search(legs, "ship harbour", mode="hybrid")
    first = answer.hits[0]
    assert first.text == "The vessel left the harbour"
    assert set(first.ranks) == {"keyword", "semantic"}
    assert first.score == pytest.approx(sum(share.points for share in first.shares))
    keyword, semantic = first.shares
    assert 0 < keyword.value < 1, (
        "no document contains the other word, so the best hit has less than half of the best possible score"
    )
    assert semantic.value == 1
    assert len(answer.hits) == 3


def test_query_decides_the_weights_unless_they_are_configured(legs: Legs) -> None:
    whole, part, none = (search(legs, text) for text in ("vessel harbour", "ship harbour", "feline ship"))
    assert whole.evidence == 1.0
    assert weights(whole) == pytest.approx({"keyword": 0.6, "semantic": 0.4})
    assert part.evidence is not None
    assert weights(part) == pytest.approx({"keyword": 0.3 + 0.3 * part.evidence, "semantic": 0.7 - 0.3 * part.evidence})
    assert 0 < part.evidence < 1
    assert none.evidence == 0.0
    assert weights(none) == pytest.approx({"semantic": 0.7})
    fixed = search(replace(legs, keyword_weight=0.9), "ship harbour")
    assert fixed.evidence is None
    assert weights(fixed) == pytest.approx({"keyword": 0.9, "semantic": 0.1})
    assert search(legs, "ship harbour", fusion="ranks").evidence is None


@pytest.mark.parametrize("mode", MODES)
def test_hits_far_from_words_and_meaning_are_weak(legs: Legs, mode: Mode) -> None:
    """Without a floor (no model was asked) no hit is weak."""
    assert legs.semantic is not None
    assert not any(hit.weak for hit in search(legs, "ship harbour", mode))
    with_floor = replace(legs, semantic=replace(legs.semantic, floor=lambda _unknown: 0.5))
    answer = search(with_floor, "ship harbour", mode)
    weak = {hit.text: hit.weak for hit in answer}
    assert not weak["The vessel left the harbour"]
    assert any(weak.values()) == (mode != "keyword")
    assert answer.notice is None
    alone = replace(with_floor, unavailable={"semantic": "down"}, semantic=None)
    assert not any(hit.weak for hit in search(alone, "ship harbour", "hybrid")), "its scores are not scaled"
    unrelated = search(with_floor, "zebra giraffe", mode)
    assert all(hit.as_json()["weak"] for hit in unrelated)
    assert ("weak matches" in (unrelated.notice or "")) == bool(unrelated.hits)
    further = search(with_floor, "zebra giraffe", mode, offset=1)
    assert all(hit.weak for hit in further)
    assert "weak matches" not in (further.notice or ""), "only the first page judges the whole answer"


def test_only_a_query_without_known_words_may_be_made_up(legs: Legs) -> None:
    """Then more similarity is needed."""
    assert legs.semantic is not None
    floors = replace(legs, semantic=replace(legs.semantic, floor=lambda unknown: 0.0 if unknown is None else 0.999))
    for text, mode, is_weak in (("feline", "hybrid", True), ("cat", "hybrid", False), ("feline", "semantic", False)):
        assert {hit.weak for hit in search(floors, text, mode)} == {is_weak}

    def refuse(_text: str) -> Vectors:
        raise TextRefused("too long")

    refused = replace(legs.semantic, encode=refuse, floor=lambda unknown: unknown and refuse(unknown))
    assert search(replace(legs, semantic=refused), "feline").unavailable == {"semantic": "too long"}


def weights(answer: Answer) -> dict[str, float]:
    return {share.leg: share.weight for hit in answer for share in hit.shares}


def test_hit_of_keyword_search_alone_has_a_similarity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "FETCH_AT_FIRST", 5)
    crowd = [family(f"{number}.md", f"cat feline kitten {number}") for number in range(8)]
    nearer, farther = family("nearer.md", "a rare zebra and one cat"), family("farther.md", "a rare zebra and one boat")
    with legs_over(tmp_path, [*crowd, farther, nearer]) as legs:
        answer = search(legs, "feline zebra rare", limit=4)
    hit = answer.hits[0]
    assert (hit.parent_id, hit.ranks.keys()) == (parent_of("nearer.md"), {"keyword"})
    keyword, semantic = hit.shares
    assert (keyword.leg, semantic.leg, semantic.rank) == ("keyword", "semantic", None)
    assert 0 < semantic.value < 1
    assert hit.score == pytest.approx(keyword.points + semantic.points)
    assert hit.as_json(explain=True)["explain"]["shares"][1]["rank"] is None


def test_family_is_shown_once_by_its_best_chunk(legs: Legs) -> None:
    answer = search(legs, "cat", mode="keyword")
    assert texts(answer) == ["A cat and another cat"]
    (hit,) = answer.hits
    assert hit.parent_id == parent_of("pets.md")
    assert hit.ranks == {"keyword": 1}
    assert hit.score == hit.shares[0].score > 0
    assert hit.source_uri == "pets.md"
    assert [piece.text for piece in hit.snippet if piece.match] == ["cat", "cat"]
    assert "".join(piece.text for piece in hit.snippet) == "A cat and another cat"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["", " \n\t", "\x00\x07"])
def test_search_refuses_an_empty_query(legs: Legs, mode: Mode, query: str) -> None:
    with pytest.raises(InvalidQuestion):
        search(legs, query, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "query",
    [
        "caf\udcff cat",
        '"cat',
        "NEAR(cat*:^(){} AND",
        "🐈 猫 مرحبا cat",
        "?!…",
        "x" * 10_000,
    ],
)
def test_odd_queries_are_no_errors(legs: Legs, mode: Mode, query: str) -> None:
    answer = search(legs, query, mode=mode)
    answer.query.encode()  # it can be printed
    if "cat" in query.split():
        assert parent_of("pets.md") in [hit.parent_id for hit in answer.hits]


def test_legs_are_asked_deeper_until_there_are_enough_families(tmp_path: Path) -> None:
    """The best 120 chunks belong to one document, so the first step finds no other."""
    crowd = family("crowd.md", *(f"cat cat cat {number}" for number in range(120)))
    others = [family(f"{number}.md", f"a boat with many words and one cat {number}") for number in range(4)]
    with legs_over(tmp_path, [crowd, *others]) as legs:
        for mode in MODES:
            assert legs.keyword is not None
            assert legs.semantic is not None
            keyword, vectors = Counted(legs.keyword.reader, "search"), Counted(legs.semantic.reader, "query")
            encoded: list[str] = []

            def encode(query: str, encoded: list[str] = encoded) -> Vectors:
                encoded.append(query)
                return meaning(query)

            counted = with_readers(legs, keyword=keyword, semantic=vectors)
            counted = replace(counted, semantic=replace(counted.semantic, encode=encode))  # type: ignore[type-var]
            answer = search(counted, "cat", mode=mode, limit=4)
            assert len({hit.parent_id for hit in answer.hits}) == 4
            assert answer.hits[0].parent_id == parent_of("crowd.md")
            for reader, is_used in ((keyword, mode != "semantic"), (vectors, mode != "keyword")):
                assert reader.depths == ([100, 400] if is_used else [])
            assert encoded == ([] if mode == "keyword" else ["cat"])  # the model is called once


def test_limit_above_the_number_of_hits_asks_once(legs: Legs) -> None:
    assert legs.keyword is not None
    keyword = Counted(legs.keyword.reader, "search")
    answer = search(with_readers(legs, keyword=keyword), "cat", mode="keyword", limit=1000)
    assert (len(answer.hits), answer.more) == (1, False)
    assert keyword.depths == [100]


def test_hit_that_vanishes_meanwhile_is_left_out(tmp_path: Path) -> None:
    """A sync removes the family from both engines before its text is read."""
    with legs_over(tmp_path, FAMILIES) as legs:

        class Racing(Counted):
            def __getattr__(self, name: str) -> object:
                if name == "get":
                    build = FtsSink(tmp_path / "fts").open("words")
                    build.delete([parent_of("pets.md")])
                    build.flush()
                    build.close()
                return super().__getattr__(name)

        assert legs.keyword is not None
        racing = replace(with_readers(legs, keyword=Racing(legs.keyword.reader, "search")), semantic=None)
        answer = search(racing, "cat boat", mode="hybrid")
        assert texts(answer) == ["A boat needs paint"]


def test_text_that_the_keyword_engine_lacks_comes_from_the_other(tmp_path: Path) -> None:
    with legs_over(tmp_path, FAMILIES, fts_families=FAMILIES[1:]) as legs:
        (hit,) = search(legs, "feline", mode="semantic", limit=1).hits
    assert "cat" in hit.text
    assert (hit.source_uri, hit.ranks) == ("pets.md", {"semantic": 1})


def test_chunk_without_text_is_no_semantic_hit(tmp_path: Path) -> None:
    """Another chunk of its source is shown instead, and words of its title still find it."""
    families = [*FAMILIES, family("empty.md", "", "the last word", metadata={"title": "An almanac"})]
    with legs_over(tmp_path, families) as legs:
        for mode in MODES[::2]:
            for text in ("*", "😀", "cat"):
                shown = texts(search(legs, text, mode=mode))
                assert len(shown) == 4, (mode, text)
                assert all(shown), (mode, text)
        assert len(search(legs, "almanac", collapse=False, mode="keyword")) == 2
