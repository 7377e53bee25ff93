"""Pages joined are one long answer: nothing twice, nothing left out, whatever limit and offset."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

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


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """60 texts in 7 sources each: more than two looks, and each look ends among the copies of some text. One of each
    has a title that words find too, and stands apart from the others."""
    drawn = random.Random(2)
    texts = [" ".join([*drawn.choices(WORDS, k=9), f"n{number}"]) for number in range(60)]
    held = [
        family(f"{copy}/{n}.md", text, metadata={"title": "Cats near ships" if copy == 6 else "Notes"})
        for n, text in enumerate(texts)
        for copy in range(7)
    ]
    with legs_over(tmp_path_factory.mktemp("copies"), held) as legs:
        yield legs


@pytest.mark.parametrize(("mode", "fusion", "collapse"), sampled(CASES, 2))
def test_pages_joined_are_one_long_answer(
    legs: Legs, copies: Legs, mode: Mode, fusion: FusionName, collapse: bool
) -> None:
    """With all that each hit names, so that every source, or chunk, is there once: as a hit, or at one."""
    for held in (legs, copies):

        def found(limit: int, offset: int = 0, held: Legs = held) -> list[dict[str, Any]]:
            question = Question("cat near ship", mode=mode, fusion=fusion, collapse=collapse)
            return [hit.as_json() for hit in search(held, replace(question, limit=limit, offset=offset))]

        whole = found(10_000)
        named = [one for hit in whole for one in (hit, *hit["same_text"])]
        assert len({one["parent_id" if collapse else "chunk_id"] for one in named}) == len(named) > 120
        assert len(whole) < len(named) / 3 if held is copies and collapse else len(whole) == len(named)
        assert [hit for start in range(0, len(whole) + 70, 70) for hit in found(70, start)] == whole
        assert [hit for start in range(0, 50, 7) for hit in found(7, start)] == whole[:56]
        for limit in (1, 99, 101, 400):
            assert found(limit) == whole[:limit]


def test_more_says_whether_another_text_follows(copies: Legs) -> None:
    question = Question("cat near ship")
    whole = len(search(copies, replace(question, limit=10_000)))
    for offset, more in ((0, True), (whole - 2, True), (whole - 1, False), (whole, False)):
        answer = search(copies, replace(question, limit=1, offset=offset))
        assert (answer.more, len(answer)) == (more, offset < whole)


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
