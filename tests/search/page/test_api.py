"""`/api/search`, `/api/chunk`, `/healthz` and `/readyz` match their OpenAPI description."""

import threading
import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient

from chunksink.embeddings.rerankers import open_reranker
from chunksink.search.answer import OWN_FIELDS
from chunksink.search.legs import Legs
from chunksink.search.page import readiness, site, workers
from chunksink.search.page.app import make_app
from chunksink.search.page.callers import Caller
from chunksink.search.page.form import PARAMETERS
from chunksink.search.page.site import HIDDEN
from chunksink.search.rerank import Reranking
from chunksink.settings.rerank import RerankOptions
from tests.search.page.support import LegAnswers, NotBuilt, client_of, client_over, degraded, site_over
from tests.search.support import family
from tests.support.rerank_server import rerank_server


def assert_described(client: TestClient, path: str, status: str, content: Any, **headers: str) -> None:
    description = client.get("/api/openapi.json", headers=headers).json()
    answer = description["paths"][path]["get"]["responses"][status]
    schema = {**answer["content"]["application/json"]["schema"], "components": description["components"]}
    jsonschema.Draft202012Validator(closed(schema)).validate(content)


def closed(schema: Any) -> Any:
    """The schema with every object limited to the described properties."""
    if not isinstance(schema, dict):
        return [closed(one) for one in schema] if isinstance(schema, list) else schema
    limits = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {name: closed(one) for name, one in schema.items()} | limits


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


def test_request_without_an_index_names_the_command_to_run(legs: Legs) -> None:
    def nothing() -> None:
        raise NotBuilt("no index in .chunksink yet; build one with `chunksink sync`")

    with client_of(make_app(site_over(LegAnswers(legs, before=nothing)))) as client:
        for path in ("/api/search?q=cat", "/api/chunk?id=x"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert "chunksink sync" in answer.json()["error"]
        page = client.get("/?q=cat")
        assert page.status_code == 503
        assert "build one with <code>chunksink sync</code>" in page.text
        assert readiness_of(client) == (503, {"status": "unavailable", "reason": "no_index", "unavailable": []})


def test_answer_with_one_engine_down_names_it(legs: Legs) -> None:
    with client_of(make_app(site_over(LegAnswers(degraded(legs))))) as client:
        content = client.get("/api/search?q=cat").json()
        assert_described(client, "/api/search", "200", content)
        assert content["hits"]
        assert content["unavailable"] == {"semantic": "chroma at http://10.0.0.7:8000 does not answer"}
        page = client.get("/?q=cat").text
        assert "Without semantic search." in page
        assert "without semantic search" in page
        assert 'class="hit"' in page
        assert readiness_of(client) == (200, {"status": "degraded", "reason": None, "unavailable": ["semantic"]})


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_request_with_all_engines_down_is_an_error(legs: Legs, mode: str) -> None:
    reason = "chroma at http://10.0.0.7:8000 does not answer"
    down = replace(degraded(legs), keyword=None)
    tokens = {"all": "*", "acme": "acme"}
    with client_of(make_app(site_over(LegAnswers(down), tokens=tokens))) as client:
        for token, shown in (("all", reason), ("acme", HIDDEN)):
            bearer = {"Authorization": f"Bearer {token}"}
            answer = client.get(f"/api/search?q=cat&mode={mode}", headers=bearer)
            assert answer.status_code == 503
            assert_described(client, "/api/search", "503", answer.json(), **bearer)
            assert answer.json() == {"error": f"no answer from semantic search: {shown}"}
            page = client.get(f"/?q=cat&mode={mode}", headers=bearer)
            assert page.status_code == 503
            assert f"no answer from semantic search: {shown}" in page.text
            assert "Nothing found" not in page.text
            assert ("10.0.0.7" in page.text) == (token == "all")
        assert readiness_of(client) == (
            503,
            {"status": "unavailable", "reason": "no_answer", "unavailable": ["semantic"]},
        )


def test_leg_that_fails_and_returns_is_logged_once_a_minute(
    legs: Legs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 1000.0
    monkeypatch.setattr(site, "monotonic", lambda: now)
    answers = LegAnswers(legs)
    with client_of(make_app(site_over(answers))) as client:

        def logged() -> list[str]:
            caplog.clear()
            for _ in range(2):
                client.get("/api/search", params={"q": "cat"})
            return [record.getMessage() for record in caplog.records]

        assert logged() == []
        answers.legs = degraded(legs)
        [line] = logged()
        assert line.startswith("semantic search is unavailable: ")
        assert "10.0.0.7" not in line, "a reason may repeat the query"
        answers.legs = legs
        assert logged() == [], "within the minute"
        now += 60
        assert logged() == ["semantic search answers again"]
        now += 60
        answers.before = not_built
        [line] = logged()
        assert line.startswith("every search is unavailable: ")


def not_built() -> None:
    raise NotBuilt("no index at /srv/search")


@pytest.mark.parametrize("path", ["/api/search?q=cat", "/api/chunk?id=x", "/api/openapi.json", "/healthz", "/readyz"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_unsupported_method_is_refused_as_json(client: TestClient, path: str, method: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert "GET" in answer.json()["error"]
    assert client.head(path).status_code != 405


def test_readyz_reports_unavailable_if_the_search_hangs(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first search succeeds, a later one does not end."""
    monkeypatch.setattr(readiness, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(readiness, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(readiness, "_LONGEST_SECONDS", 0.5)
    release = threading.Event()
    release.set()
    with client_of(make_app(site_over(LegAnswers(legs, before=lambda: release.wait(20))))) as client:
        wait_for(client, (200, {"status": "ok", "reason": None, "unavailable": []}))
        release.clear()
        wait_for(client, (503, {"status": "unavailable", "reason": "timeout", "unavailable": []}))
        release.set()
        wait_for(client, (200, {"status": "ok", "reason": None, "unavailable": []}))


def test_healthz_asks_no_engine(legs: Legs) -> None:
    """It answers while the first search hangs."""
    release = threading.Event()
    with client_of(make_app(site_over(LegAnswers(legs, before=lambda: release.wait(20))))) as client:
        answer = client.get("/healthz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert_described(client, "/healthz", "200", answer.json())
        answer = client.get("/readyz")
        expected = {"status": "starting", "reason": "starting", "unavailable": []}
        assert (answer.status_code, answer.json()) == (503, expected)
        assert_described(client, "/readyz", "503", answer.json())
        release.set()


def wait_for(client: TestClient, expected: tuple[int, Any]) -> None:
    """Ask /readyz until it answers this."""
    for _ in range(200):
        answer = client.get("/readyz")
        if (answer.status_code, answer.json()) == expected:
            return
        time.sleep(0.02)
    raise AssertionError(f"/readyz never answered {expected}")


def readiness_of(client: TestClient) -> tuple[int, Any]:
    """The first answer of /readyz after `starting`."""
    for _ in range(200):
        answer = client.get("/readyz")
        if answer.json()["status"] != "starting":
            return answer.status_code, answer.json()
        time.sleep(0.05)
    raise AssertionError("/readyz did not finish starting")


def test_too_many_requests_are_refused(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads work, and two requests may wait."""
    monkeypatch.setattr(workers.Workers.__init__, "__defaults__", (2, 2, 30.0))
    release = threading.Event()
    with client_of(make_app(site_over(LegAnswers(legs, before=lambda: release.wait(20))))) as client:
        codes: list[int] = []
        threads = [
            threading.Thread(target=lambda: codes.append(client.get("/api/search?q=cat").status_code)) for _ in range(9)
        ]
        for thread in threads:
            thread.start()
        while len(codes) < 5:
            time.sleep(0.01)
        release.set()
        for thread in threads:
            thread.join()
    assert sorted(codes) == [200] * 4 + [503] * 5


def test_slow_search_ends_with_a_timeout(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.Workers.__init__, "__defaults__", (2, 2, 0.2))
    release = threading.Event()
    with client_of(make_app(site_over(LegAnswers(legs, before=lambda: release.wait(20))))) as client:
        answer = client.get("/api/search?q=cat")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        release.set()


@pytest.mark.parametrize("query", ["", "q=%20%09"])
def test_search_refuses_an_empty_query(client: TestClient, query: str) -> None:
    answer = client.get(f"/api/search?{query}")
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert_described(client, "/api/search", "400", answer.json())
