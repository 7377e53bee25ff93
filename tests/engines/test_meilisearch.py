"""What this project expects from Meilisearch and `meilisearch-settings.json`, tested on a real server."""

from collections.abc import Iterator

import pytest
from meilisearch import Client
from meilisearch.index import Index

from tests.engines.servers import MeilisearchServer, get_json
from tests.support.meilisearch import SETTINGS, served
from tools.engines import MEILISEARCH_VERSION


@pytest.fixture
def index(meilisearch_server: MeilisearchServer) -> Iterator[Index]:
    """An index with the project's settings, removed afterwards."""
    for server in served(meilisearch_server):
        server.do("POST", "/indexes", json={"uid": server.index, "primaryKey": "id"})
        task = server.do("PATCH", f"/indexes/{server.index}/settings", json=SETTINGS)
        assert task["status"] == "succeeded", task
        yield Client(server.url, server.key).index(server.index)


def test_server_has_the_version_named_by_the_project(meilisearch_server: MeilisearchServer) -> None:
    version = get_json(f"{meilisearch_server.url}/version", meilisearch_server.key)
    assert version["pkgVersion"] == MEILISEARCH_VERSION


@pytest.mark.parametrize("name", ["parent_id", "tenant_key"])
def test_identities_are_filters_but_no_facets(name: str) -> None:
    """Facet search on a key with millions of values costs memory and time without any use."""
    rules = [rule for rule in SETTINGS["filterableAttributes"] if name in rule["attributePatterns"]]
    assert [rule["features"]["facetSearch"] for rule in rules] == [False]
    assert rules[0]["features"]["filter"]["equality"] is True


def test_words_forgive_a_typo_but_ids_and_numbers_do_not(index: Index) -> None:
    document = {"id": "1", "parent_id": "0" * 64, "document_id": "annualreport", "text": "harbour 123456"}
    task = index.wait_for_task(index.add_documents([document]).task_uid, timeout_in_ms=60_000)
    assert task.status == "succeeded", task.error
    found = {query: len(index.search(query)["hits"]) for query in ("harbuor", "annualreprot", "123465")}
    assert found == {"harbuor": 1, "annualreprot": 0, "123465": 0}
    assert len(index.search("annualreport")["hits"]) == 1
    assert len(index.search("123456")["hits"]) == 1
