"""Pages joined are one long answer: nothing twice, nothing left out, whatever limit and offset."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.question import FUSIONS, FusionName, Mode, Question
from tests.conftest import sampled
from tests.search.support import family, legs_over

FAMILIES = 130
WORDS = ("cat", "feline", "kitten", "boat", "ship", "tax", "levy", "red", "old", "large", "on", "near")

CASES: list[tuple[Mode, FusionName, bool]] = [
    *product(("keyword", "semantic"), FUSIONS[:1], (True, False)),
    *product(("hybrid",), FUSIONS, (True, False)),
]


@pytest.fixture(scope="module")
def legs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """520 chunks, more than two looks of each leg; some sources have many of the best."""
    drawn = random.Random(3)

    def text(number: int) -> str:
        cats = ["cat"] * (number % 7 == 0) * 3
        return " ".join([*cats, *drawn.choices(WORDS, k=9), f"n{number}"])

    held = [family(f"{n}.md", *(text(n) for _ in range(4))) for n in range(FAMILIES)]
    with legs_over(tmp_path_factory.mktemp("index"), held) as legs:
        yield legs


def found(legs: Legs, mode: Mode, fusion: FusionName, collapse: bool, limit: int, offset: int = 0) -> list[str]:
    question = Question("cat near ship", mode=mode, fusion=fusion, collapse=collapse, limit=limit, offset=offset)
    return [hit.parent_id if collapse else hit.chunk_id for hit in search(legs, question)]


@pytest.mark.parametrize(("mode", "fusion", "collapse"), CASES)
def test_pages_joined_are_one_long_answer(legs: Legs, mode: Mode, fusion: FusionName, collapse: bool) -> None:
    whole = found(legs, mode, fusion, collapse, 10_000)
    assert len(whole) > (120 if collapse else 400)
    assert len(set(whole)) == len(whole)
    pages = [found(legs, mode, fusion, collapse, 70, start) for start in range(0, len(whole) + 70, 70)]
    assert pages[-1] == []
    assert [one for page in pages for one in page] == whole
    pages = [found(legs, mode, fusion, collapse, 10, start) for start in range(80, 120, 10)]
    assert [one for page in pages for one in page] == whole[80:120]


@pytest.mark.parametrize(("mode", "fusion", "collapse"), CASES)
def test_a_shorter_answer_is_the_beginning_of_a_longer_one(
    legs: Legs, mode: Mode, fusion: FusionName, collapse: bool
) -> None:
    whole = found(legs, mode, fusion, collapse, 1000)
    for limit in (1, 99, 101, 400):
        assert found(legs, mode, fusion, collapse, limit) == whole[:limit]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_what_is_deeper_is_scaled_as_what_stands_above(legs: Legs, fusion: FusionName) -> None:
    hits = list(search(legs, Question("cat near ship", fusion=fusion, collapse=False, limit=500)))
    scales = {(share.leg, share.low, share.high) for hit in hits for share in hit.shares}
    assert len(scales) == 2
    for hit in hits:
        assert hit.score == pytest.approx(sum(share.points for share in hit.shares))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """Fewer sources than are settled in a step, of many chunks each: what one leg has just beyond its depth matters."""
    drawn = random.Random(5)
    held = [family(f"{n}.md", *(" ".join(drawn.choices(WORDS, k=9)) for _ in range(40))) for n in range(24)]
    with legs_over(tmp_path_factory.mktemp("few"), held) as legs:
        yield legs


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("words", sampled(["cat near ship", "old boat"]))
def test_a_source_stands_where_its_best_chunk_does(
    legs: Legs, few: Legs, mode: Mode, fusion: FusionName, words: str
) -> None:
    """With the same chunk, score and shares: what explains a hit is of the text that is shown."""
    for held, shown in ((legs, 20), (few, 24)):
        question = Question(words, mode=mode, fusion=fusion, limit=shown)
        first: dict[str, tuple[object, ...]] = {}
        for hit in search(held, replace(question, limit=1000, collapse=False)):
            first.setdefault(hit.parent_id, (hit.chunk_id, hit.score, hit.shares))
        once = [(hit.parent_id, (hit.chunk_id, hit.score, hit.shares)) for hit in search(held, question)]
        assert once == list(first.items())[:shown]
        assert len(once) == shown
