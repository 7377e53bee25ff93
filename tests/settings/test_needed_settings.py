"""What we need is in force whatever the file says; what the file allows already stays as it says."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from chunksink.settings.index_settings import load_index_settings, with_needed
from tests.conftest import ROOT, sampled
from tests.engines.servers import MeilisearchServer

OURS = json.loads((ROOT / "meilisearch-settings.json").read_text(encoding="utf-8"))
NEEDED = {
    name: rule["features"]["filter"]["comparison"]
    for rule in OURS["filterableAttributes"]
    for name in rule["attributePatterns"]
}


def rule(*patterns: str, equality: Any = True, comparison: Any = False) -> dict[str, Any]:
    allowed = {"equality": equality, "comparison": comparison}
    return {"attributePatterns": list(patterns), "features": {"facetSearch": False, "filter": allowed}}


ALL = rule("*", comparison=True)
RULES: dict[str, list[Any]] = {
    "none": [],
    "names": ["parent_id", "year"],
    "a star is no pattern as a name": ["*", "year*"],
    "all": [ALL],
    "patterns": [rule("*_id", "fam*", "*ana*", "*year", comparison=True)],
    "a star inside is none": [rule("par*id", "y*ar", comparison=True)],
    "defaults": [{"attributePatterns": ["*"]}],
    "some defaults": [
        {"attributePatterns": ["t*"], "features": {}},
        {"attributePatterns": ["*"], "features": {"filter": {}}},
    ],
    "the first one counts": [rule("*", equality=False), "parent_id", "year"],
    "in the other order": ["parent_id", rule("year", comparison=True), rule("*", equality=False)],
    "no equality": [rule("*", equality=False, comparison=True)],
    "without fields": [rule(), "year"],
}


def allowed_by(rules: list[Any]) -> set[str]:
    """What our own rules need not allow."""
    added = with_needed({"filterableAttributes": rules}, OURS)["filterableAttributes"]
    assert rules == [] or added[-len(rules) :] == rules, "the own rules are as they were"
    lacking = {name for one in added[: len(added) - len(rules)] for name in one["attributePatterns"]}
    return set(NEEDED) - lacking


@pytest.fixture(scope="module")
def index(meilisearch_server: MeilisearchServer) -> Iterator[httpx.Client]:
    server, name = meilisearch_server, f"n{uuid.uuid4().hex[:10]}"
    headers = {"Authorization": f"Bearer {server.key}"}
    with httpx.Client(base_url=f"{server.url}/indexes/{name}/", headers=headers, timeout=30) as client:
        document = [{"id": "1", **dict.fromkeys(NEEDED, 1)}]
        done(client, client.post("documents", params={"primaryKey": "id"}, json=document))
        yield client
        done(client, client.delete(str(client.base_url).rstrip("/")))


def done(client: httpx.Client, answer: httpx.Response) -> None:
    number = answer.json()["taskUid"]
    while (task := client.get(client.base_url.copy_with(path=f"/tasks/{number}")).json())["status"] != "succeeded":
        assert task["status"] in ("enqueued", "processing"), task


def taken(index: httpx.Client, name: str) -> bool:
    """Whether the server lets us filter as we do."""
    asked = [f"{name} = 1", *([f"{name} > 0"] if NEEDED[name] else [])]
    return all(index.post("search", json={"filter": one}).status_code == 200 for one in asked)


@pytest.mark.parametrize("name", sampled(RULES))
def test_rules_are_read_as_the_server_reads_them(name: str, index: httpx.Client) -> None:
    done(index, index.patch("settings", json={"filterableAttributes": RULES[name]}))
    assert {field for field in NEEDED if taken(index, field)} == allowed_by(RULES[name])
    done(index, index.patch("settings", json=with_needed({"filterableAttributes": RULES[name]}, OURS)))
    assert all(taken(index, field) for field in NEEDED)
    assert index.post("search", json={"distinct": "id"}).status_code == 200


@pytest.mark.parametrize(
    "rules", [5, "tags", {}, [1], [[]], [{}], [{"attributePatterns": "tags"}], [rule("*", equality=1)]]
)
def test_what_is_malformed_is_the_servers_to_refuse(rules: Any, index: httpx.Client) -> None:
    wanted = with_needed({"filterableAttributes": rules}, OURS)
    assert wanted["filterableAttributes"] == rules
    assert index.patch("settings", json=wanted).status_code == 400


def test_our_own_file_lacks_nothing() -> None:
    assert with_needed(OURS, OURS) == OURS == load_index_settings(ROOT / "meilisearch-settings.json")


def test_a_file_that_says_little_gets_it_all() -> None:
    needed = {name: OURS[name] for name in ("distinctAttribute", "filterableAttributes")}
    assert with_needed({"stopWords": ["the"]}, OURS) == {"stopWords": ["the"], **needed}


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        (["text"], ["text", "id", "parent_id"]),
        (["parent_id", "text"], ["parent_id", "text", "id"]),
        (["text", "*"], ["text", "*"]),
        ([], ["id", "parent_id"]),
    ],
)
def test_hits_say_whose_they_are(own: list[str], wanted: list[str]) -> None:
    assert with_needed({"displayedAttributes": own}, OURS)["displayedAttributes"] == wanted
