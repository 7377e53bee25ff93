"""`/api/search`, `/api/chunk`, `/healthz` and `/readyz` match their OpenAPI description."""

from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from chunksink.embeddings.rerankers import open_reranker
from chunksink.search.answer import OWN_FIELDS
from chunksink.search.legs import Legs
from chunksink.search.page import workers
from chunksink.search.page.app import make_app
from chunksink.search.page.callers import Caller
from chunksink.search.page.form import PARAMETERS
from chunksink.search.rerank import Reranking
from chunksink.settings.rerank import RerankOptions
from tests.search.page.support import (
    LegAnswers,
    NotBuilt,
    assert_described,
    client_of,
    client_over,
    degraded,
    site_over,
)
from tests.search.support import family
from tests.support.rerank_server import rerank_server


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_answer_matches_the_openapi_description(client: TestClient, mode: str) -> None:
    params = {"q": "cat mat", "mode": mode, "context": 1, "explain": "true", "facet": ["language", "tags"], "limit": 3}
    answer = client.get("/api/search", params=params)
    assert answer.status_code == 200
    content = answer.json()
    assert_described(client, "/api/search", "200", content)
    assert len(content["hits"]) == 3
    best = content["hits"][0]
    assert best["explain"]["document"]["text"] == best["text"]
    assert {value["value"] for value in content["facets"]["tags"]} == {"pets", "home"}
    assert best["explain"]["rerank"] is None


def test_reranked_answer_matches_the_openapi_description(legs: Legs) -> None:
    with rerank_server() as server:
        options = RerankOptions(model="m", url=server.url)
        with (
            closing(Reranking(open_reranker(options), options.top, options.deadline)) as reranking,
            client_of(make_app(site_over(LegAnswers(replace(legs, reranking=reranking))))) as client,
        ):
            content = client.get("/api/search", params={"q": "cat mat", "explain": "true"}).json()
            assert_described(client, "/api/search", "200", content)
    assert all(hit["explain"]["rerank"]["place"] >= 1 for hit in content["hits"])


class Counted:
    """Metrics that remember what they were given."""

    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []

    def answered(self, mode: str, seconds: float, failed: Collection[str]) -> None:
        assert seconds > 0
        self.events.append((mode, *failed))

    def failed(self, reason: str) -> None:
        self.events.append((reason,))

    def exposition(self, accept: str) -> tuple[bytes, str]:
        raise NotImplementedError


def test_searches_are_counted_by_how_they_ended(legs: Legs) -> None:
    counted, answers = Counted(), LegAnswers(degraded(legs))
    failures: list[Exception] = [NotBuilt(), ValueError("a bug")]

    def before() -> None:
        if failures:
            raise failures.pop(0)

    with client_of(make_app(site_over(answers, metrics=counted))) as client:
        for path in ("/readyz", "/?q="):
            client.get(path)
        assert counted.events == []
        answers.before = before
        for path in ("/?q=cat", "/api/search?q=cat", "/api/search?q=cat", "/?q=cat&mode=semantic"):
            client.get(path)
    assert counted.events == [("unavailable",), ("bug",), ("hybrid", "semantic"), ("unavailable",)]


def test_overload_is_counted(legs: Legs) -> None:
    counted = Counted()
    site_over(LegAnswers(legs), metrics=counted).problem(workers.Overloaded(), Caller())
    assert counted.events == [("overloaded",)]


def test_sources_with_the_same_text_match_the_description(tmp_path: Path) -> None:
    with client_over(tmp_path, [family(f"v{n}/a.md", "a moored boat", ids=f"v{n}") for n in range(3)]) as client:
        content = client.get("/api/search?q=boat&explain=1").json()
        assert_described(client, "/api/search", "200", content)
        (hit,) = content["hits"]
        for other in hit["same_text"]:
            whole = client.get("/api/chunk", params={"id": other["chunk_id"]}).json()
            assert (other | {"text": hit["text"], "before": [], "after": []}).items() <= whole.items()
    assert {one["source_uri"] for one in (hit, *hit["same_text"])} == {f"v{n}/a.md" for n in range(3)}


def test_all_parameters_reach_the_search(client: TestClient) -> None:
    def texts(**params: Any) -> list[str]:
        return [
            hit["text"]
            for hit in client.get("/api/search", params={"q": "cat", "mode": "keyword", **params}).json()["hits"]
        ]

    everything = texts(limit=100)
    assert len(everything) == 25
    assert texts(limit=5, offset=5) == everything[5:10]
    assert texts(limit=100, filter=["source_type=md", "source_type=web"]) == [
        text for text in everything if text.startswith(("the cat", "a boat", "a cat", "the vet"))
    ]
    assert len(texts(limit=100, all="1")) == 27
    assert texts(filter=["source_type=md", "language=de"]) == []


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("filter=color%3Dred", "color"),
        ("filter=nothing", "nothing"),
        ("mode=best", "best"),
        ("limit=0", "limit"),
        ("limit=1e9", "limit"),
        ("offset=-1", "offset"),
        ("offset=99999", "100009"),
        ("all=perhaps", "all"),
        ("facet=color", "color"),
        ("tenant=%20", "tenant"),
        ("tenant=acme&tenant=", "tenant"),
        ("limit=5&limit=6&limit=5", "limit"),
        ("limt=3", "limt"),
        ("&".join(f"facet=f{n}" for n in range(21)), "21"),
    ],
)
def test_invalid_parameter_is_refused_and_named(client: TestClient, parameters: str, named: str) -> None:
    answer = client.get(f"/api/search?q=cat&{parameters}")
    assert answer.status_code == 400
    assert_described(client, "/api/search", "400", answer.json())
    assert named in answer.json()["error"]
    page = client.get(f"/?q=cat&{parameters}")
    api_only = ("limt", "facet", "tenant", "limit=5")  # the page ignores unknown names and repeated values
    if not parameters.startswith(api_only):
        assert page.status_code == 400
        assert "notice bad" in page.text


@pytest.mark.parametrize("value", ["", "%20"])
@pytest.mark.parametrize("name", [parameter.name for parameter in PARAMETERS if parameter.name != "q"])
def test_an_empty_value_is_refused_by_the_api_and_ignored_by_the_page(
    client: TestClient, name: str, value: str
) -> None:
    answer = client.get(f"/api/search?q=cat&{name}={value}")
    assert answer.status_code == 400
    assert_described(client, "/api/search", "400", answer.json())
    assert client.get(f"/?q=cat&{name}={value}").status_code == 200


def test_hits_and_chunks_have_the_fields_by_which_they_can_be_filtered(client: TestClient) -> None:
    (hit,) = client.get("/api/search?q=hunts&mode=keyword&context=1&filter=language%3Den").json()["hits"]
    found = client.get("/api/chunk", params={"id": hit["chunk_id"], "context": 1}).json()
    expected = {"language": "en", "tags": ["pets", "home"], "path": "docs/cats.md", "source_type": "md"}
    for one in (hit, found):
        assert expected.items() <= one.items()
        assert not {"year", "authors", "tenant_key"} & one.keys(), "no value, or not about the document"
    for neighbour in (*found["before"], *hit["context"]["after"]):
        assert not expected.keys() & neighbour.keys()
    for name in OWN_FIELDS:
        for value in hit[name] if isinstance(hit.get(name), list) else [hit[name]] if name in hit else []:
            condition = f"{name}={str(value).lower() if isinstance(value, bool) else value}"
            again = client.get("/api/search", params={"q": "hunts", "mode": "keyword", "filter": condition})
            assert [one["chunk_id"] for one in again.json()["hits"]] == [hit["chunk_id"]]


@pytest.mark.parametrize(
    "query",
    ["battery safety " * 666, "🐈‍⬛ قطة ‮cat", "cat\x00", "cat \ud800"],
    ids=["long", "signs", "nul", "half a pair"],
)
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_odd_queries_are_answered(client: TestClient, query: str, mode: str) -> None:
    written = query.encode("utf-8", "surrogatepass")
    quoted = "".join(f"%{byte:02x}" for byte in written)
    for path in ("/api/search", "/"):
        assert client.get(f"{path}?q={quoted}%ff&mode={mode}&filter=language%3D%ff").status_code == 200, path


def test_page_shows_the_first_of_very_many_conditions(client: TestClient) -> None:
    page = client.get("/?q=cat&" + "&".join(f"filter=chunk_index%3E%3D-{number}" for number in range(1100))).text
    assert page.count("Remove the filter") == 50
    assert "<li>and 1050 more</li>" in page


def test_chunk_is_returned_with_its_neighbours(client: TestClient) -> None:
    (best,) = client.get("/api/search", params={"q": "hunts at night", "limit": 1, "mode": "keyword"}).json()["hits"]
    answer = client.get("/api/chunk", params={"id": best["chunk_id"], "context": 1})
    content = answer.json()
    assert_described(client, "/api/chunk", "200", content)
    assert [one["text"] for one in content["before"]] == ["the cat sleeps on the mat"]
    assert [one["text"] for one in content["after"]] == ["the vet sees every cat once a year"]
    refused = client.get("/api/chunk", params={"id": best["chunk_id"], "tenant": ""})
    assert refused.status_code == 400
    assert_described(client, "/api/chunk", "400", refused.json())
    for name in ("limit", "filter", "q"):
        refused = client.get("/api/chunk", params={"id": best["chunk_id"], name: "5"})
        assert (refused.status_code, name in refused.json()["error"]) == (400, True)
    twice = client.get("/api/chunk", params={"id": ["nowhere", best["chunk_id"]]})
    assert twice.status_code == 400
    assert_described(client, "/api/chunk", "400", twice.json())
    assert client.get("/api/chunk").status_code == 400
    missing = client.get("/api/chunk", params={"id": "nowhere\x00"})
    assert missing.status_code == 404
    assert_described(client, "/api/chunk", "404", missing.json())


@pytest.mark.parametrize("path", ["/api/search?q=cat", "/api/chunk?id=x", "/api/openapi.json", "/healthz", "/readyz"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_unsupported_method_is_refused_as_json(client: TestClient, path: str, method: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert "GET" in answer.json()["error"]
    assert client.head(path).status_code != 405


@pytest.mark.parametrize("query", ["", "q=%20%09"])
def test_search_refuses_an_empty_query(client: TestClient, query: str) -> None:
    answer = client.get(f"/api/search?{query}")
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert_described(client, "/api/search", "400", answer.json())
