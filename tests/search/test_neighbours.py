"""Neighbours of a hit, and texts that only one place has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from chunksink.search.access import EVERYTHING
from chunksink.search.legs import Legs
from chunksink.search.neighbours import get
from chunksink.search.query import search
from chunksink.search.question import Question
from chunksink.sinks.document import Document, Family
from tests.search.support import family, legs_over

LONG = family("long.md", *(f"part {number}" for number in range(9)), "the cat")
SHORT = family("short.md", "a boat")


@pytest.fixture(scope="module")
def legs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    with legs_over(tmp_path_factory.mktemp("index"), [LONG, SHORT]) as legs:
        yield legs


def texts(documents: tuple[Document, ...]) -> list[str]:
    return [document.text for document in documents]


def test_so_many_before_and_after_in_the_order_of_the_source(legs: Legs) -> None:
    (hit,) = search(legs, Question('"part 4"', mode="keyword", context=2)).hits
    assert texts(hit.before) == ["part 2", "part 3"]
    assert texts(hit.after) == ["part 5", "part 6"]
    told = hit.as_json()["context"]
    assert [one["text"] for one in told["before"]] == ["part 2", "part 3"]


def test_a_source_ends(legs: Legs) -> None:
    (hit,) = search(legs, Question("cat", mode="keyword", context=3)).hits
    assert (texts(hit.before), texts(hit.after)) == (["part 6", "part 7", "part 8"], [])
    (alone,) = search(legs, Question("boat", mode="keyword", context=20)).hits
    assert (alone.before, alone.after) == ((), ())
    assert "context" not in alone.as_json()


def test_hits_side_by_side_have_each_its_own(legs: Legs) -> None:
    answer = search(legs, Question("part", mode="keyword", collapse=False, limit=9, context=1))
    assert len(answer.hits) == 9
    for hit in answer.hits:
        number = int(hit.text.split()[1])
        assert texts(hit.before) == ([f"part {number - 1}"] if number else [])
        assert texts(hit.after) == ([f"part {number + 1}"] if number < 8 else ["the cat"])


def test_a_chunk_by_its_id(legs: Legs) -> None:
    found = get(legs, EVERYTHING, LONG.documents[0].chunk_id, 1)
    assert found is not None
    assert (found.document.text, texts(found.before), texts(found.after)) == ("part 0", [], ["part 1"])
    for nowhere in ("", "nowhere", "h-" + "0" * 64, "\udcff", "x" * 5000):
        assert get(legs, EVERYTHING, nowhere) is None


def test_what_no_engine_holds_comes_from_the_chunks(tmp_path: Path) -> None:
    """The keyword engine refused it, the vector engine stores no texts."""
    asked: list[dict[str, str]] = []

    def from_chunks(wanted: Mapping[str, str]) -> list[Document]:
        asked.append(dict(wanted))
        return [document for document in SHORT.documents if document.id in wanted]

    with legs_over(tmp_path, [LONG, SHORT], fts_families=[LONG], store_text=False) as legs:
        found = search(replace(legs, from_chunks=from_chunks), Question("boat", mode="semantic", limit=1))
        assert texts(tuple(hit.document for hit in found.hits)) == ["a boat"]
        assert {SHORT.documents[0].id: SHORT.parent_id} in asked
        asked.clear()
        by_id = get(replace(legs, from_chunks=from_chunks), EVERYTHING, SHORT.documents[0].chunk_id)
        assert by_id is not None
        assert by_id.document.text == "a boat"
        assert asked[0][SHORT.documents[0].id] == SHORT.parent_id
        without = search(legs, Question("boat", mode="semantic", limit=1))
        assert [(hit.text, hit.source_uri) for hit in without.hits] == [("", "short.md")]


def test_an_id_that_moved_to_another_source_is_no_neighbour(tmp_path: Path) -> None:
    """The old neighbour's chunk was given to another source since."""
    other = SHORT.documents[0]
    strayed = structs.replace(LONG.documents[0], previous_id=other.id, next_id=other.id)
    assert LONG.vectors is not None
    with legs_over(tmp_path, [Family([strayed], LONG.vectors[:1]), SHORT]) as legs:
        found = get(legs, EVERYTHING, strayed.chunk_id, 2)
    assert found is not None
    assert (found.before, found.after) == ((), ())
