"""Meilisearch as the keyword leg: one hit a source, or every chunk; one engine down; a name that was swapped."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunksink.search.errors import InvalidQuestion
from chunksink.search.legs import EngineLeg, KeywordLeg, Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.sinks.contract import Marker
from chunksink.sinks.meilisearch import MeilisearchReader, MeilisearchSink
from tests.engines.servers import MeilisearchServer
from tests.search.support import DIMENSIONS, family, legs_over, meaning

SETTINGS = json.loads((Path(__file__).parents[2] / "meilisearch-settings.json").read_text())

FAMILIES = [
    family("pets.md", *(f"a cat called number {number}" for number in range(9)), ids="a", tenant_id="acme"),
    family("sea.md", "a boat with a cat", "a boat", ids="b", tenant_id="globex"),
]


@contextmanager
def reader_of(
    server: MeilisearchServer, index: str, build_id: str, *, vectors: bool = False, **settings: Any
) -> Iterator[MeilisearchReader]:
    """Of a build that holds the families."""
    sink = MeilisearchSink(server.url, server.key, index=index, settings={**SETTINGS, **settings}, vectors=vectors)
    with closing(sink):
        build = sink.create(Marker("home", build_id, 1), *([DIMENSIONS] if vectors else []))
        build.replace(FAMILIES)
        build.flush()
        yield sink.reader(build_id)


@pytest.fixture(scope="module")
def legs(meilisearch_server: MeilisearchServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    with (
        legs_over(tmp_path_factory.mktemp("index"), FAMILIES) as others,
        reader_of(meilisearch_server, "leg", "words") as reader,
    ):
        yield replace(others, keyword=KeywordLeg(reader, "meilisearch", "words"))


def test_each_source_once_or_every_chunk(legs: Legs) -> None:
    once = search(legs, Question("cat", mode="keyword", limit=50))
    assert sorted(hit.source_uri or "" for hit in once.hits) == ["pets.md", "sea.md"]
    every = search(legs, Question("cat", mode="keyword", limit=50, collapse=False))
    assert len(every.hits) == 10


def test_a_source_of_more_chunks_than_the_server_finds_hides_no_other(
    meilisearch_server: MeilisearchServer, legs: Legs
) -> None:
    with reader_of(meilisearch_server, "many", "many", pagination={"maxTotalHits": 5}) as reader:
        many = replace(legs, keyword=KeywordLeg(reader, "meilisearch", "many"))
        answer = search(many, Question("cat", mode="keyword"))
    assert sorted(hit.source_uri or "" for hit in answer.hits) == ["pets.md", "sea.md"]


def test_its_own_hybrid_search(meilisearch_server: MeilisearchServer, legs: Legs) -> None:
    with reader_of(meilisearch_server, "own-hybrid", "both", vectors=True) as reader:
        own = replace(legs, engine=EngineLeg(reader, meaning, "meilisearch", "both"))
        answer = search(own, Question("vessel", mode="engine", limit=1))
        assert [(hit.source_uri, hit.ranks) for hit in answer.hits] == [("sea.md", {"engine": 1})]
        answer = search(own, Question("vessel", mode="engine", limit=50, facets=("schema_version",)))
        assert [value.families for value in answer.facets["schema_version"]] == [len(answer.hits)] == [2]
        every = search(own, Question("cat", mode="engine", limit=50, collapse=False))
        assert len(every.hits) == 11
    with pytest.raises(
        InvalidQuestion, match="no build of this index answers engine searches; ask with the mode hybrid"
    ):
        search(legs, Question("cat", mode="engine"))


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic", "engine"])
def test_what_stands_in_quotes_stands_in_every_hit(
    meilisearch_server: MeilisearchServer, legs: Legs, mode: Mode
) -> None:
    with reader_of(meilisearch_server, "quotes", "both", vectors=True) as reader:
        both = replace(
            legs,
            keyword=KeywordLeg(reader, "meilisearch", "both"),
            engine=EngineLeg(reader, meaning, "meilisearch", "both"),
        )
        for more in ("", " cat feline", " vessel"):
            answer = search(both, Question(f'"called number"{more}', mode=mode, limit=5, collapse=False))
            assert len(answer) == 5
            assert answer.more
            assert all("called number" in hit.text for hit in answer)
            [hit] = search(both, Question(f'"boat with a"{more}', mode=mode))
            assert hit.text == "a boat with a cat"
        [hit] = search(both, Question(f'{"cat called number 1 " * 4} "boat with a"', mode=mode))
        assert hit.text == "a boat with a cat", "also where the engine does not read so far"
        for typed in ('"number called"', '"boat with a" "called number"'):
            answer = search(both, Question(f"{typed} cat", mode=mode))
            assert len(answer) == 0
            assert "No text contains" in (answer.notice or "")


def test_a_swapped_name_is_noticed(legs: Legs) -> None:
    """Its answers are those of another build: the other leg answers alone until the pointer is read again."""
    assert legs.keyword is not None
    stale = replace(legs, keyword=replace(legs.keyword, build_id="before"))
    answer = search(stale, Question("cat"))
    assert answer.moved
    assert "another build than before" in answer.unavailable["keyword"]
    assert answer.hits
