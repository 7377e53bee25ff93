"""Meilisearch as the keyword leg, and as the engine of its own hybrid search."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunksink.search.errors import InvalidQuestion
from chunksink.search.fusion import PATH
from chunksink.search.legs import EngineLeg, KeywordLeg, Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Family
from chunksink.sinks.meilisearch import MeilisearchReader, MeilisearchSink
from chunksink.sinks.reader import Sort
from tests.engines.servers import MeilisearchServer
from tests.search.support import DIMENSIONS, family, legs_over, meaning

SETTINGS = json.loads((Path(__file__).parents[2] / "meilisearch-settings.json").read_text())

FAMILIES = [
    family("pets.md", *(f"a cat called number {number}" for number in range(9)), ids="a", tenant_id="acme"),
    family("sea.md", "a boat with a cat", "a boat", ids="b", tenant_id="globex"),
]


@contextmanager
def reader_of(
    server: MeilisearchServer,
    index: str,
    build_id: str,
    *,
    families: Sequence[Family] = FAMILIES,
    vectors: bool = False,
    **settings: Any,
) -> Iterator[MeilisearchReader]:
    """A reader of a build with the families."""
    sink = MeilisearchSink(server.url, server.key, index=index, settings={**SETTINGS, **settings}, vectors=vectors)
    with closing(sink):
        build = sink.create(Marker("home", build_id, 1), *([DIMENSIONS] if vectors else []))
        build.replace(families)
        build.flush()
        yield sink.reader(build_id)


@pytest.fixture(scope="module")
def legs(meilisearch_server: MeilisearchServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    with (
        legs_over(tmp_path_factory.mktemp("index"), FAMILIES) as others,
        reader_of(meilisearch_server, "leg", "words") as reader,
    ):
        yield replace(others, keyword=KeywordLeg(reader, "meilisearch", "words"))


def test_named_file_comes_first_by_its_name_or_whole_path(
    meilisearch_server: MeilisearchServer, tmp_path: Path
) -> None:
    """Meilisearch does not find the ends of paths."""
    families = [
        *(family(f"docs/{number}.md", "run src/install.py or node.js") for number in range(3)),
        family("src/install.py", "a boat"),
    ]
    with (
        legs_over(tmp_path, families) as others,
        reader_of(meilisearch_server, "named", "words", families=families) as reader,
    ):
        legs = replace(others, keyword=KeywordLeg(reader, "meilisearch", "words"))
        for mode in ("hybrid", "keyword"):
            for query in ("install.py", "src/install.py", "/home/me/src/install.py"):
                first = search(legs, Question(query, mode=mode))[0]
                assert (first.source_uri, first.ranks[PATH]) == ("src/install.py", 1)
            for query in ("node.js", "other/install.py"):
                assert all(PATH not in hit.ranks for hit in search(legs, Question(query, mode=mode)))


def test_collapse_returns_each_source_once_or_every_chunk(legs: Legs) -> None:
    once = search(legs, Question("cat", mode="keyword", limit=50))
    assert sorted(hit.source_uri or "" for hit in once.hits) == ["pets.md", "sea.md"]
    every = search(legs, Question("cat", mode="keyword", limit=50, collapse=False))
    assert len(every.hits) == 10


def test_snippet_has_no_markup(meilisearch_server: MeilisearchServer, legs: Legs) -> None:
    text = "**Walk** " + "the `dogs` " * 40 + "[a kennel](https://example.org/kennel.html) and " + "more " * 40
    dogs = family("dogs.md", text, metadata={"mime_type": "text/markdown"})
    with reader_of(meilisearch_server, "dogs", "dogs", families=[dogs]) as reader:
        walks = replace(legs, keyword=KeywordLeg(reader, "meilisearch", "dogs"))
        (hit,) = search(walks, Question("kennel", mode="keyword")).hits
    assert hit.highlights == ["kennel"]
    shown = "".join(piece.text for piece in hit.snippet)
    assert "the dogs a kennel and more more" in shown
    assert "example" not in shown


def test_sorted_answer_keeps_the_order_of_the_field_whatever_the_scores_are(legs: Legs) -> None:
    question = Question("a boat", mode="keyword", collapse=False, sort=Sort("chunk_index"))
    expected = ["a boat with a cat", "a boat"]
    assert [hit.text for hit in search(legs, question).hits] == expected
    answer = search(legs, replace(question, sort=Sort("chunk_index", descending=True)))
    assert [hit.text for hit in answer.hits] == expected[::-1]


def test_source_with_more_chunks_than_the_hit_limit_hides_no_other(
    meilisearch_server: MeilisearchServer, legs: Legs
) -> None:
    with reader_of(meilisearch_server, "many", "many", pagination={"maxTotalHits": 5}) as reader:
        many = replace(legs, keyword=KeywordLeg(reader, "meilisearch", "many"))
        answer = search(many, Question("cat", mode="keyword"))
    assert sorted(hit.source_uri or "" for hit in answer.hits) == ["pets.md", "sea.md"]


def test_engine_mode_uses_the_hybrid_search_of_meilisearch(meilisearch_server: MeilisearchServer, legs: Legs) -> None:
    with reader_of(meilisearch_server, "own-hybrid", "both", vectors=True) as reader:
        with_engine = replace(legs, engine=EngineLeg(reader, meaning, "meilisearch", "both"))
        answer = search(with_engine, Question("vessel", mode="engine", limit=1))
        assert [(hit.source_uri, hit.ranks) for hit in answer.hits] == [("sea.md", {"engine": 1})]
        answer = search(with_engine, Question("vessel", mode="engine", limit=50, facets=("schema_version",)))
        assert [value.families for value in answer.facets["schema_version"]] == [len(answer.hits)] == [2]
        every = search(with_engine, Question("cat", mode="engine", limit=50, collapse=False))
        assert len(every.hits) == 11
    with pytest.raises(InvalidQuestion, match="hybrid or keyword or semantic"):
        search(legs, Question("cat", mode="engine"))


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic", "engine"])
def test_hits_of_meilisearch_contain_the_quoted_phrase(
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
        assert hit.text == "a boat with a cat", "also if the engine reads only the first ten words"
        for typed in ('"number called"', '"boat with a" "called number"'):
            answer = search(both, Question(f"{typed} cat", mode=mode))
            assert len(answer) == 0
            assert answer.notice is not None


def test_answer_of_a_swapped_index_is_ignored(legs: Legs) -> None:
    """Its answers come from another build. The other leg answers alone until the pointer is read again."""
    assert legs.keyword is not None
    stale = replace(legs, keyword=replace(legs.keyword, build_id="before"))
    answer = search(stale, Question("cat"))
    assert answer.moved
    assert answer.unavailable.keys() == {"keyword"}
    assert answer.hits
