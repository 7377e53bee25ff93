"""Sources with equal texts are one hit, which lists the others."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunksink.search.access import Access
from chunksink.search.answer import SearchHit
from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.sinks.reader import Filter, Sort
from tests.search.page.support import LegAnswers
from tests.search.support import MODES, family, legs_over
from tests.support.bus import parent_of

VERSIONS = ("v1", "v2", "v3")

MOORING = "A boat is moored with two lines"
PAINTING = "Paint the boat in spring"
NEWEST = "Paint the boat in autumn"

FAMILIES = [
    *(
        family(
            f"{version}/boats.md", MOORING, "Anchors hold in sand", source_type=version, tenant_id="acme", ids="acme"
        )
        for version in VERSIONS
    ),
    *(
        family(f"{version}/paint.md", text, source_type=version, tenant_id="acme", ids="acme")
        for version, text in zip(VERSIONS, (PAINTING, PAINTING, NEWEST), strict=True)
    ),
    family("secret/boats.md", MOORING, source_type="v1", tenant_id="globex", ids="globex"),
]


def sources_by_text(hits: Any) -> dict[str, list[str]]:
    """Maps the text of each hit to all its sources."""
    found = {hit.text: sorted(str(one.source_uri) for one in (hit.document, *hit.same_text)) for hit in hits}
    assert len(found) == len(hits), "no text twice"
    return found


@pytest.mark.parametrize("mode", MODES)
def test_equal_texts_are_one_hit_that_lists_their_sources(legs: Legs, mode: Mode) -> None:
    answer = search(legs, Question("boat", mode=mode), Access("acme"))
    assert sources_by_text(answer.hits) == {
        MOORING: ["v1/boats.md", "v2/boats.md", "v3/boats.md"],
        PAINTING: ["v1/paint.md", "v2/paint.md"],
        NEWEST: ["v3/paint.md"],
    }
    for hit in answer:
        assert [one["source_uri"] for one in hit.as_json()["same_text"]] == [one.source_uri for one in hit.same_text]


def test_hit_of_equal_texts_takes_the_place_of_the_best(legs: Legs) -> None:
    """With its chunk and its shares."""
    question = Question("boat", mode="hybrid", limit=3)
    every = search(legs, replace(question, collapse=False, limit=100), Access("acme"))
    first: dict[str, SearchHit] = {}
    for hit in every:
        first.setdefault(hit.text, hit)
    for hit in search(legs, question, Access("acme")):
        assert (hit.chunk_id, hit.shares) == (first[hit.text].chunk_id, first[hit.text].shares)


def test_sorted_list_shows_every_source(legs: Legs) -> None:
    hits = search(legs, Question("", mode="keyword", sort=Sort("path"), limit=100), Access("acme")).hits
    assert [hit.source_uri for hit in hits] == sorted(
        f"{one}/{name}.md" for one in VERSIONS for name in ("boats", "paint")
    )


@pytest.mark.parametrize("mode", MODES)
def test_same_text_lists_only_sources_that_pass_the_filters(legs: Legs, mode: Mode) -> None:
    question = Question("boat", mode=mode, filters=(Filter("source_type", any_of=("v1", "v3")),))
    assert sources_by_text(search(legs, question, Access("acme")).hits) == {
        MOORING: ["v1/boats.md", "v3/boats.md"],
        PAINTING: ["v1/paint.md"],
        NEWEST: ["v3/paint.md"],
    }


@pytest.mark.promise(11)
@pytest.mark.parametrize("mode", MODES)
def test_same_text_lists_only_sources_of_the_tenant(legs: Legs, mode: Mode) -> None:
    assert "secret/boats.md" not in str(search(legs, Question("boat", mode=mode), Access("acme")).as_json())
    theirs = search(legs, Question("boat", mode=mode), Access("globex"))
    assert sources_by_text(theirs.hits) == {MOORING: ["secret/boats.md"]}
    everybody = [hit for hit in search(legs, Question("boat", mode=mode)) if hit.text == MOORING]
    assert sorted(len(hit.same_text) for hit in everybody) == [0, 2], "texts of different tenants are separate hits"


def test_same_text_works_without_a_keyword_sink(legs: Legs) -> None:
    answer = search(replace(legs, keyword=None), Question("boat", mode="semantic"), Access("acme"))
    assert sources_by_text(answer.hits)[MOORING] == ["v1/boats.md", "v2/boats.md", "v3/boats.md"]


def test_documents_without_text_are_separate_hits(tmp_path: Path) -> None:
    families = [family(f"{n}.md", "", " \n ", metadata={"title": f"Almanac {n}"}) for n in range(3)]
    with legs_over(tmp_path, families) as legs:
        assert len(search(legs, Question("almanac", mode="keyword"))) == 3


def test_short_texts_are_copies_only_with_the_same_title(tmp_path: Path) -> None:
    thanks = "Thanks for the boat!"
    long = f"{thanks} It came with two lines, an anchor, and all of the paint that we need."
    titles = ("Order", "Order", "Repair")
    families = [
        family(f"{name}{number}", text, metadata={"title": title})
        for name, text in (("short", thanks), ("long", long))
        for number, title in enumerate(titles)
    ]
    with legs_over(tmp_path, families) as legs:
        hits = search(legs, Question("boat", mode="keyword")).hits
    sources = {tuple(sorted(str(one.source_uri) for one in (hit.document, *hit.same_text))) for hit in hits}
    assert sources == {("short0", "short1"), ("short2",), ("long0", "long1", "long2")}


def test_equal_headings_before_different_texts_are_separate_hits(tmp_path: Path) -> None:
    """The shown texts are compared."""
    families = [family(f"{n}.md", "# Usage", f"like {n}", metadata={"headings": ["Usage"]}) for n in range(3)]
    with legs_over(tmp_path, families) as legs:
        answer = search(legs, Question("usage", mode="keyword"))
    assert sorted(hit.text for hit in answer) == ["like 0", "like 1", "like 2"]
    assert not any(hit.same_text for hit in answer)


def test_many_copies_are_one_hit(tmp_path: Path) -> None:
    """More copies than one step makes final, then another text."""
    crowd = [family(f"{n}.md", "a cat and a cat") for n in range(150)]
    with legs_over(tmp_path, [*crowd, family("other.md", "one cat among many words")]) as legs:
        for mode in MODES:
            first, second = search(legs, Question("cat", mode=mode, limit=10))
            assert (len(first.same_text), second.parent_id) == (149, parent_of("other.md"))
            (alone,) = search(legs, Question("cat", mode=mode, limit=1))
            assert alone.as_json() == first.as_json()


def assistant(legs: Legs, access: Access) -> Any:
    from chunksink.search.mcp import mcp_server  # slow to import; few tests need it

    return mcp_server(LegAnswers(legs), access, (), "1.2.3")


async def test_mcp_search_lists_sources_with_the_same_text(legs: Legs) -> None:
    server = assistant(legs, Access("acme"))
    answer: Any = await server.call_tool("search", {"query": "boat", "mode": "keyword", "context": 1})
    hits = {hit["text"]: hit for hit in json.loads(answer.content[0].text)["hits"]}
    assert {one["source_uri"] for one in (hits[MOORING], *hits[MOORING]["same_text"])} == {
        f"{version}/boats.md" for version in VERSIONS
    }
    assert "same_text" not in hits[NEWEST]
