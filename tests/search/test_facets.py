"""Facets count the sources that a search finds: by words, and in hybrid mode also by meaning."""

from collections import Counter
from pathlib import Path

import pytest

from chunksink.search import order
from chunksink.search.filters import parse_filters
from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from tests.search.support import Counted, family, legs_over, with_readers

FAMILIES = [
    *(family(f"cat{n}.md", f"the cat {n}", f"a cat again {n}", language="en", tenant_id="acme") for n in range(6)),
    *(family(f"cosy{n}.md", f"a feline {n}", language="de", tenant_id="acme") for n in range(4)),
    family("mixed.md", "one kitten", "one cat", language="fr", tenant_id="acme"),
    family("sea.md", "a boat", language="en", tenant_id="globex"),
]


def counted(legs: Legs, text: str, mode: Mode = "hybrid", limit: int = 100, **more: object) -> dict[object, int]:
    question = Question(text, mode=mode, limit=limit, facets=("language",), **more)  # type: ignore[arg-type]
    return {one.value: one.families for one in search(legs, question).facets["language"]}


@pytest.mark.parametrize("text", ["cat", "feline", "*", "🐈", "boat kitten"])
@pytest.mark.parametrize("limit", [1, 100])
def test_hybrid_facets_count_all_hits(legs: Legs, text: str, limit: int) -> None:
    shown = Counter(hit.document.language for hit in search(legs, Question(text, limit=100)))
    assert counted(legs, text, limit=limit) == shown
    assert sum(shown.values()) == len(FAMILIES)


@pytest.mark.parametrize("text", ["cat", "feline", "*"])
def test_filter_on_a_value_finds_as_many_as_were_counted(legs: Legs, text: str) -> None:
    for language, families in counted(legs, text).items():
        chosen = parse_filters([f"language={language}"])
        assert len(search(legs, Question(text, limit=100, filters=chosen))) == families


def test_source_that_both_legs_find_is_counted_once(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if keyword search finds it below the depth of the first step."""
    monkeypatch.setattr(order, "FETCH_AT_FIRST", 3)
    found = counted(legs, "cat", limit=1)
    assert (found["en"], found["fr"]) == (6, 1)


def test_facets_of_one_leg_count_its_hits(legs: Legs) -> None:
    assert counted(legs, "cat", "keyword") == {"en": 6, "fr": 1}
    assert counted(legs, "cat", "semantic") == {"en": 7, "de": 4, "fr": 1}
    assert counted(legs, "nothing", "keyword") == {}


def test_facets_count_later_steps_if_one_source_fills_the_first(tmp_path: Path) -> None:
    """Its chunks fill the first step of semantic search."""
    families = [
        family("long.md", *(f"a feline {n}" for n in range(150)), language="de"),
        *(family(f"cat{n}.md", f"the cat lay there, number {n}", language="en") for n in range(12)),
    ]
    with legs_over(tmp_path, families) as legs:
        shown = Counter(hit.document.language for hit in search(legs, Question("feline", limit=10)))
        assert shown["en"] == 9
        found = counted(legs, "feline", limit=10)
    assert found["en"] >= 9
    assert found["de"] == 1


def test_pages_have_the_same_counts(legs: Legs) -> None:
    assert counted(legs, "cat", limit=2) == counted(legs, "cat", limit=2, offset=8)


def test_facets_need_no_second_vector_search(legs: Legs) -> None:
    assert legs.semantic is not None
    vectors = Counted(legs.semantic.reader, "query")
    counted(with_readers(legs, semantic=vectors), "cat")
    assert vectors.depths == [100]


def test_source_found_by_words_far_down_is_counted_once(tmp_path: Path) -> None:
    """Semantic search finds more sources than an engine counts values by default."""
    near = (family(f"{n}.md", f"cat feline {n}", language="en") for n in range(300))
    words = (family(f"w{n}.md", f"a boat, a cat, and a cat and a cat {n}", language="en") for n in range(500))
    with legs_over(tmp_path, [*words, *near]) as legs:
        assert counted(legs, "cat", limit=100) == {"en": 800}
