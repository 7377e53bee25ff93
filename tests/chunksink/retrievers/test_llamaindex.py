"""The LlamaIndex retriever over real engines."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chunksink.search.errors import InvalidQuestion, NothingAnswered
from chunksink.search.legs import Legs
from tests.chunksink.retrievers.support import CUSTOM, TICKETS, LegsIndex
from tests.search.support import family, legs_over
from tests.support.bus import parent_of

if TYPE_CHECKING:
    from llama_index.core.vector_stores import MetadataFilters

    from chunksink.retrievers.llamaindex import ChunksinkRetriever

HEADED = {"metadata": {"headings": ["Guide", "Part"]}}
FAMILIES = [
    family(f"{number}.md", f"A cat that has number {number}", "And more of it", **HEADED) for number in range(6)
]


@pytest.fixture(scope="module")
def legs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    with legs_over(tmp_path_factory.mktemp("index"), FAMILIES) as legs:
        yield legs


def retriever(legs: Legs, **chosen: Any) -> ChunksinkRetriever:
    # Slow to import; every process of the suite reads this file.
    from chunksink.retrievers.llamaindex import ChunksinkRetriever

    return ChunksinkRetriever(LegsIndex(legs), **chosen)


@pytest.fixture(scope="module")
def legs_of_tickets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    with legs_over(tmp_path_factory.mktemp("tickets"), TICKETS) as legs:
        yield replace(legs, fields=CUSTOM)


def filters_of(*conditions: tuple[str, Any, Any]) -> MetadataFilters:
    """LlamaIndex's filters from keys, operators and values."""
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

    names = ("key", "operator", "value")
    return MetadataFilters(filters=[MetadataFilter(**dict(zip(names, one, strict=True))) for one in conditions])


def test_nodes_are_ordered_by_score(legs: Legs) -> None:
    found = retriever(legs, similarity_top_k=3).retrieve("cat number 4")
    assert len(found) == 3
    assert found[0].node.metadata["source_uri"] == "4.md"
    scores = [one.score or 0 for one in found]
    assert scores == sorted(scores, reverse=True)


def test_top_k_counts_chunks_unless_sources_are_collapsed(tmp_path: Path) -> None:
    with legs_over(tmp_path, [family("a.md", "a cat", "a cat and a mat", "the cat")]) as legs:
        assert len(retriever(legs, similarity_top_k=3).retrieve("cat")) == 3
        assert len(retriever(legs, similarity_top_k=3, collapse=True).retrieve("cat")) == 1


def test_node_has_its_source_by_the_names_that_llamaindex_uses(tmp_path: Path) -> None:
    sources = [family("docs/a.md", "a cat"), family("b.md", "a boat", metadata={"file_path": "their own", "path": "c"})]
    with legs_over(tmp_path, sources) as legs:
        nodes = [retriever(legs, mode="keyword").retrieve(word)[0].node for word in ("cat", "boat")]
    names = [(node.metadata["file_path"], node.metadata["file_name"]) for node in nodes]
    assert names[0] == ("docs/a.md", "a.md")
    assert names[1] == ("their own", "c")


def test_node_has_relations_and_shows_no_hashes(legs: Legs) -> None:
    from llama_index.core.schema import MetadataMode, NodeRelationship, QueryBundle

    (found,) = retriever(legs, mode="keyword", similarity_top_k=1).retrieve(QueryBundle('"number 2"'))
    relations = found.node.relationships
    assert relations[NodeRelationship.SOURCE].node_id == parent_of("2.md")  # type: ignore[union-attr]
    assert relations[NodeRelationship.NEXT].node_id == FAMILIES[2].documents[1].id  # type: ignore[union-attr]
    assert NodeRelationship.PREVIOUS not in relations
    shown = found.node.get_content(MetadataMode.LLM)
    assert "source_uri: 2.md" in shown
    assert "headings: Guide > Part\n" in shown
    assert "hash" not in shown


@pytest.mark.promise(11)
def test_misspelt_tenant_is_an_error(legs: Legs) -> None:
    with pytest.raises(TypeError, match="tenant_id"):
        retriever(legs, tenant_id="acme")
    with pytest.raises(TypeError, match="tenant"):
        retriever(legs).retrieve("cat", tenant="acme")  # type: ignore[call-arg]
    with pytest.raises(InvalidQuestion, match="there is no mode 'zz'"):
        retriever(legs, mode="zz").retrieve("cat")


def test_outage_is_an_error(legs: Legs, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "chunksink.retrievers")
    down = {"keyword": "fts is out of reach"}
    nobody = replace(legs, keyword=None, semantic=None, unavailable=down | {"semantic": "chroma is out of reach"})
    for mode in ("hybrid", "keyword"):
        with pytest.raises(NothingAnswered, match="no answer from keyword search: fts is out of reach"):
            retriever(nobody, mode=mode).retrieve("cat")
    assert retriever(replace(legs, keyword=None, unavailable=down)).retrieve("cat")
    assert retriever(legs).retrieve("zebra")
    messages = [record.getMessage() for record in caplog.records if record.name == "chunksink.retrievers"]
    assert messages[0] == "no answer from keyword search: fts is out of reach"
    assert len(messages) > 1


def test_nodes_have_custom_fields_and_metadata_and_filters_use_them(tmp_path: Path) -> None:
    with legs_over(tmp_path, TICKETS) as legs:
        (found,) = retriever(replace(legs, fields=CUSTOM), filters={"priority": 2}).retrieve("cat")
    metadata = {name: found.node.metadata[name] for name in ("priority", "due", "note")}
    assert metadata == {"priority": 2, "due": "2026-01-31T00:00:00Z", "note": "kept"}


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ([("priority", "==", 2)], ["b.md"]),
        ([("priority", "in", [1, 2])], ["a.md", "b.md"]),
        ([("priority", ">", 1), ("priority", "<=", 2.5)], ["b.md"]),
        ([("priority", ">=", 1), ("due", "<", "2026-03")], ["b.md"]),
        ([("priority", "==", 1), ("due", "==", "2026-01")], []),
        ([("filename", "in", ["a.md"]), ("priority", "<", 2)], ["a.md"]),
    ],
)
def test_filters_of_llamaindex_are_conditions(
    conditions: list[tuple[str, Any, Any]], found: list[str], legs_of_tickets: Legs
) -> None:
    nodes = retriever(legs_of_tickets, filters=filters_of(*conditions)).retrieve("cat")
    assert sorted(node.node.metadata["source_uri"] for node in nodes) == found


@pytest.mark.parametrize(
    "conditions",
    [
        [("priority", "!=", 2)],
        [("priority", "==", None)],
        [("tags", "==", ["a", "b"])],
        [("tags", "in", [])],
        [("tags", "in", "a")],
        [("tags", "==", "a"), ("tags", "==", "b")],
    ],
)
def test_filter_of_llamaindex_without_equivalent_is_refused(
    conditions: list[tuple[str, Any, Any]], legs_of_tickets: Legs
) -> None:
    with pytest.raises(InvalidQuestion, match="==, in, >=, <=, >, <"):
        retriever(legs_of_tickets, filters=filters_of(*conditions))


def test_filters_of_llamaindex_are_joined_by_and_only(legs_of_tickets: Legs) -> None:
    from llama_index.core.vector_stores import FilterCondition, MetadataFilters

    one = filters_of(("priority", "==", 1))
    for filters in (
        MetadataFilters(filters=one.filters, condition=FilterCondition.OR),
        MetadataFilters(filters=one.filters, condition=FilterCondition.NOT),
        MetadataFilters(filters=[one]),
    ):
        with pytest.raises(InvalidQuestion, match="AND"):
            retriever(legs_of_tickets, filters=filters)
