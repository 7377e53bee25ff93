"""A tenant's answers are a function of its documents: the same, byte for byte, whether others are in the index or not.

CHUNKSINK_SOAK_QUERIES says how many questions are drawn.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.identity import tenant_key
from chunksink.search.access import Access
from chunksink.search.filters import parse_filters
from chunksink.search.legs import EngineLeg, KeywordLeg, Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Family
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.reader import Filter
from tests.engines.servers import MeilisearchServer
from tests.search.support import DIMENSIONS, MODES, family, legs_over, meaning
from tests.support.meilisearch import SETTINGS

QUERIES = int(os.environ.get("CHUNKSINK_SOAK_QUERIES", "60"))
WORDS = (
    *("cat", "feline", "kitten", "boat", "ship", "vessel", "tax", "levy", "the", "of", "keeper", "lighthouse"),
    *("calibration", "calibrate", "installation", "install", "dry-run", "C++", ".NET", "E-417", "component"),
    *("東京都庁の展望台", "京都の寺", "手机iPhone", "straße", "harbour"),
)
TYPED = (*WORDS, "calibraton", "lighthuose", "harbuor", "instal", "mosquito", "zeppelin", "東京", "寺", '"the keeper"')
OWN = "acme"


def drawn_families(tenant: str, number: int, words: tuple[str, ...]) -> list[Family]:
    drawn = random.Random(f"{tenant} {number}")
    return [
        family(
            f"{place}.md",
            *(" ".join(drawn.choices(words, k=drawn.randint(2, 40))) for _ in range(drawn.randint(1, 4))),
            ids=f"{tenant}{place}",
            tenant_id=tenant,
            title=" ".join(drawn.choices(words, k=3)),
            tags=[drawn.choice(words[:8])],
        )
        for place in range(number)
    ]


def crowd() -> list[Family]:
    """The same words, each as often as makes it rare or frequent in the whole; words that nobody else has; and many
    that are nearly what the tenant writes or types."""
    drawn = random.Random(5)
    near = [stem + "".join(drawn.choices("abcdefgh", k=3)) for stem in ("calibra", "lighth", "harb") for _ in range(150)]
    return [
        *drawn_families("globex", 120, WORDS),
        *drawn_families("initech", 60, WORDS[:3]),
        *(family(f"rare{n}.md", "mosquito zeppelin", ids=f"r{n}", tenant_id="globex") for n in range(3)),
        family("near.md", " ".join(near), ids="near", tenant_id="initech"),
    ]


def together(own: list[Family], others: list[Family]) -> list[Family]:
    """As a sync writes them, in the order of their keys."""
    return sorted([*own, *others], key=lambda one: one.parent_id)


def question(drawn: random.Random, mode: Mode) -> Question:
    filters = drawn.choice([[], [], ["source_type=md"], [f"tags={drawn.choice(WORDS[:8])}"], ["size_bytes>=1"]])
    return Question(
        " ".join(drawn.choices(TYPED, k=drawn.randint(1, 5))) + drawn.choice(("", " ")),
        mode=mode,
        limit=drawn.choice((3, 10, 60)),
        offset=drawn.choice((0, 0, 5, 60)),
        filters=parse_filters(filters),
        facets=("tags", "source_type", "parent_id"),
        collapse=drawn.random() < 0.5,
        context=drawn.choice((0, 1)),
        fusion=drawn.choice(("scores", "ranks")),
    )


def answer(legs: Legs, asked: Question) -> dict[str, Any]:
    told = search(legs, asked, Access(OWN, required=True)).as_json(explain=True)
    del told["took_ms"]
    return told


def assert_same(alone: Legs, crowded: Legs, mode: Mode, *, facets: tuple[str, ...] | None = None) -> None:
    drawn = random.Random(f"questions {mode}")
    found = 0
    for _ in range(QUERIES):
        asked = question(drawn, mode)
        expected = answer(alone, asked)
        found += len(expected["hits"])
        assert json.dumps(answer(crowded, asked)) == json.dumps(expected), asked
    assert found > QUERIES


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Legs, Legs]]:
    own = drawn_families(OWN, 40, WORDS)
    with (
        legs_over(tmp_path_factory.mktemp("alone"), together(own, [])) as alone,
        legs_over(tmp_path_factory.mktemp("crowded"), together(own, crowd())) as crowded,
    ):
        yield alone, crowded


@pytest.mark.promise(11)
@pytest.mark.parametrize("mode", MODES)
def test_fts_and_chroma_answer_a_tenant_as_if_it_was_alone(embedded: tuple[Legs, Legs], mode: Mode) -> None:
    assert_same(*embedded, mode)
