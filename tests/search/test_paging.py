"""Pages together equal one long answer: nothing twice, nothing missing, with any limit and offset."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from chunksink.search.facets import IN_EVERY_DOCUMENT
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
    """520 chunks, so each leg needs more than two steps. Some sources have many of the best."""
    drawn = random.Random(3)

    def text(number: int) -> str:
        cats = ["cat"] * (number % 7 == 0) * 3
        return " ".join([*cats, *drawn.choices(WORDS, k=9), f"n{number}"])

    families = [family(f"{n}.md", *(text(n) for _ in range(4))) for n in range(FAMILIES)]
    with legs_over(tmp_path_factory.mktemp("index"), families) as legs:
        yield legs


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """60 texts in 7 sources each: more than two steps, and each step ends among the copies of some text. The title of
    one copy matches the query, so its place differs from that of the others."""
    drawn = random.Random(2)
    texts = [" ".join([*drawn.choices(WORDS, k=9), f"n{number}"]) for number in range(60)]
    families = [
        family(f"{copy}/{n}.md", text, metadata={"title": "Cats near ships" if copy == 6 else "Notes"})
        for n, text in enumerate(texts)
        for copy in range(7)
    ]
    with legs_over(tmp_path_factory.mktemp("copies"), families) as legs:
        yield legs


@pytest.mark.parametrize(("mode", "fusion", "collapse"), sampled(CASES, 3))
def test_pages_together_equal_one_long_answer(
    legs: Legs, copies: Legs, mode: Mode, fusion: FusionName, collapse: bool
) -> None:
    """Every source, or chunk, occurs once: as a hit, or in the `same_text` of a hit."""
    for index in (legs, copies):

        def found(limit: int, offset: int = 0, index: Legs = index) -> list[dict[str, Any]]:
            question = Question("cat near ship", mode=mode, fusion=fusion, collapse=collapse)
            return [hit.as_json() for hit in search(index, replace(question, limit=limit, offset=offset))]

        whole = found(10_000)
        sources = [one for hit in whole for one in (hit, *hit["same_text"])]
        assert len({one["parent_id" if collapse else "chunk_id"] for one in sources}) == len(sources) > 120
        assert len(whole) < len(sources) / 3 if index is copies and collapse else len(whole) == len(sources)
        assert [hit for start in range(0, len(whole) + 70, 70) for hit in found(70, start)] == whole
        assert [hit for start in range(0, 50, 7) for hit in found(7, start)] == whole[:56]
        for limit in (1, 99, 101, 400):
            assert found(limit) == whole[:limit]


def test_more_is_true_only_if_another_text_follows(copies: Legs) -> None:
    question = Question("cat near ship")
    whole = len(search(copies, replace(question, limit=10_000)))
    for offset, more in ((0, True), (whole - 2, True), (whole - 1, False), (whole, False)):
        answer = search(copies, replace(question, limit=1, offset=offset))
        assert (answer.more, len(answer)) == (more, offset < whole)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_later_steps_use_the_scale_of_the_first(legs: Legs, fusion: FusionName) -> None:
    hits = list(search(legs, Question("cat near ship", fusion=fusion, collapse=False, limit=500)))
    scales = {(share.leg, share.low, share.high) for hit in hits for share in hit.shares}
    assert len(scales) == 2
    for hit in hits:
        assert hit.score == pytest.approx(sum(share.points for share in hit.shares))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """Few sources of many chunks each, so that hits of one leg just below the depth of a step matter."""
    drawn = random.Random(5)
    families = [family(f"{n}.md", *(" ".join(drawn.choices(WORDS, k=9)) for _ in range(40))) for n in range(24)]
    with legs_over(tmp_path_factory.mktemp("few"), families) as legs:
        yield legs


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_source_takes_the_place_of_its_best_chunk(legs: Legs, few: Legs, mode: Mode, fusion: FusionName) -> None:
    """With its chunk, score and shares, so that the explanation belongs to the shown text."""
    for index, shown in ((legs, 20), (few, 24)):
        question = Question("cat near ship", mode=mode, fusion=fusion, limit=shown)
        first: dict[str, tuple[object, ...]] = {}
        for hit in search(index, replace(question, limit=1000, collapse=False)):
            first.setdefault(hit.parent_id, (hit.chunk_id, hit.score, hit.shares))
        once = [(hit.parent_id, (hit.chunk_id, hit.score, hit.shares)) for hit in search(index, question)]
        assert once == list(first.items())[:shown]
        assert len(once) == shown


@pytest.mark.parametrize(("mode", "at_first"), [("hybrid", False), ("keyword", True), ("semantic", True)])
def test_facets_of_a_hybrid_search_count_all_only_when_all_were_read(legs: Legs, mode: Mode, at_first: bool) -> None:
    question = Question("cat", mode=mode, facets=(IN_EVERY_DOCUMENT,))
    first, last = search(legs, question), search(legs, replace(question, offset=FAMILIES - 5))
    totals = [sum(value.families for value in answer.facets[IN_EVERY_DOCUMENT]) for answer in (first, last)]
    assert (first.counts_all, last.counts_all) == (at_first, True)
    assert (totals[0] == totals[1]) == at_first
