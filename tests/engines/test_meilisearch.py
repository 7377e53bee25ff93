"""What this project expects from Meilisearch and `meilisearch-settings.json`, tested on a real server."""

from collections.abc import Iterator
from typing import Any

import pytest
from meilisearch import Client
from meilisearch.index import Index

from tests.engines.servers import MeilisearchServer, get_json
from tests.support.meilisearch import SETTINGS, served
from tools.engines import MEILISEARCH_VERSION

OLD, NEW = "0" * 64, "1" * 64


@pytest.fixture
def index(meilisearch_server: MeilisearchServer) -> Iterator[Index]:
    """An index with the project's settings, removed afterwards."""
    for server in served(meilisearch_server):
        server.do("POST", "/indexes", json={"uid": server.index, "primaryKey": "id"})
        task = server.do("PATCH", f"/indexes/{server.index}/settings", json=SETTINGS)
        assert task["status"] == "succeeded", task
        yield Client(server.url, server.key).index(server.index)


def add(index: Index, documents: list[dict[str, Any]]) -> None:
    task = index.wait_for_task(index.add_documents(documents).task_uid, timeout_in_ms=60_000)
    assert task.status == "succeeded", task.error


def families(count: int) -> list[str]:
    return [f"{number:064x}" for number in range(count)]


def test_server_has_the_version_named_by_the_project(meilisearch_server: MeilisearchServer) -> None:
    version = get_json(f"{meilisearch_server.url}/version", meilisearch_server.key)
    assert version["pkgVersion"] == MEILISEARCH_VERSION


@pytest.mark.parametrize("name", ["parent_id", "tenant_key"])
def test_identities_are_filters_but_no_facets(name: str) -> None:
    """Facet search on a key with millions of values costs memory and time without any use."""
    rules = [rule for rule in SETTINGS["filterableAttributes"] if name in rule["attributePatterns"]]
    assert [rule["features"]["facetSearch"] for rule in rules] == [False]
    assert rules[0]["features"]["filter"]["equality"] is True


def test_family_with_two_versions_is_one_hit(index: Index) -> None:
    family = families(1)[0]
    add(index, [document(family, version, number) for version in (OLD, NEW) for number in range(3)])
    hits = index.search("harbour")["hits"]
    assert [hit["parent_id"] for hit in hits] == [family]


def test_title_ranks_above_the_same_word_in_the_text(index: Index) -> None:
    one, two = families(2)
    add(
        index,
        [
            document(one, NEW, 0) | {"title": "Tides", "text": "The harbour at noon"},
            document(two, NEW, 0) | {"title": "Harbour", "text": "The tides at noon"},
        ],
    )
    assert [hit["parent_id"] for hit in index.search("harbour")["hits"]] == [two, one]


def test_words_forgive_a_typo_but_ids_and_numbers_do_not(index: Index) -> None:
    add(index, [document(families(1)[0], NEW, 0) | {"document_id": "annualreport", "text": "harbour 123456"}])
    found = {query: len(index.search(query)["hits"]) for query in ("harbuor", "annualreprot", "123465")}
    assert found == {"harbuor": 1, "annualreprot": 0, "123465": 0}
    assert len(index.search("annualreport")["hits"]) == 1
    assert len(index.search("123456")["hits"]) == 1


def test_projected_fields_support_ranges_facets_and_sorting(index: Index) -> None:
    years = dict(zip(families(4), (1999, 2005, 2010, 2020), strict=True))
    add(index, [document(parent, NEW, 0) | {"year": year} for parent, year in years.items()])
    found = index.search(
        "harbour", {"filter": "year >= 2005 AND tags = sea", "sort": ["year:desc"], "facets": ["tags"]}
    )
    assert [hit["year"] for hit in found["hits"]] == [2020, 2010, 2005]
    assert found["facetDistribution"] == {"tags": {"sea": 3}}


def document(parent: str, version: str, number: int) -> dict[str, Any]:
    return {
        "id": f"{parent[-8:]}-{version[:4]}-{number}",
        "parent_id": parent,
        "document_id": f"doc-{int(parent, 16)}",
        "chunk_index": number,
        "title": "Report",
        "text": f"The harbour, part {number}",
        "tags": ["sea"],
        "year": 2024,
    }
