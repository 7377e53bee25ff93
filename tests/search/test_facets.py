"""What is counted is what is shown: sources that words find, and in hybrid those that are near."""

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
def test_hybrid_counts_what_it_shows(legs: Legs, text: str, limit: int) -> None:
    shown = Counter(hit.document.language for hit in search(legs, Question(text, limit=100)))
    assert counted(legs, text, limit=limit) == shown
    assert sum(shown.values()) == len(FAMILIES)


@pytest.mark.parametrize("text", ["cat", "feline", "*"])
def test_a_chosen_value_shows_as_many_as_were_counted(legs: Legs, text: str) -> None:
    for language, families in counted(legs, text).items():
        chosen = parse_filters([f"language={language}"])
        assert len(search(legs, Question(text, limit=100, filters=chosen))) == families


def test_a_source_that_both_find_is_counted_once(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where words find it further down than the first look."""
    monkeypatch.setattr(order, "FETCH_AT_FIRST", 3)
    found = counted(legs, "cat", limit=1)
    assert (found["en"], found["fr"]) == (6, 1)


def test_words_alone_and_meaning_alone_count_as_before(legs: Legs) -> None:
    assert counted(legs, "cat", "keyword") == {"en": 6, "fr": 1}
    assert counted(legs, "cat", "semantic") == {"en": 7, "de": 4, "fr": 1}
    assert counted(legs, "nothing", "keyword") == {}


def test_what_a_page_shows_is_counted_though_one_source_holds_the_best(tmp_path: Path) -> None:
    """Its chunks are all that the first look finds by meaning."""
    held = [
        family("long.md", *(f"a feline {n}" for n in range(150)), language="de"),
        *(family(f"cat{n}.md", f"the cat lay there, number {n}", language="en") for n in range(12)),
    ]
    with legs_over(tmp_path, held) as legs:
        shown = Counter(hit.document.language for hit in search(legs, Question("feline", limit=10)))
        assert shown["en"] == 9
        found = counted(legs, "feline", limit=10)
    assert found["en"] >= 9
    assert found["de"] == 1


def test_every_page_has_the_same_counts(legs: Legs) -> None:
    assert counted(legs, "cat", limit=2) == counted(legs, "cat", limit=2, offset=8)


def test_meaning_is_not_asked_again(legs: Legs) -> None:
    assert legs.semantic is not None
    vectors = Counted(legs.semantic.reader, "query")
    counted(with_readers(legs, semantic=vectors), "cat")
    assert vectors.depths == [100]


def test_a_source_that_words_find_far_down_is_counted_once_among_many(tmp_path: Path) -> None:
    """More sources are near than an engine counts values of by default."""
    near = (family(f"{n}.md", f"cat feline {n}", language="en") for n in range(300))
    words = (family(f"w{n}.md", f"a boat, a cat, and a cat and a cat {n}", language="en") for n in range(500))
    with legs_over(tmp_path, [*words, *near]) as legs:
        assert counted(legs, "cat", limit=100) == {"en": 800}
