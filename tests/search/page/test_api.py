"""`/api/search`, `/api/chunk` and `/healthz`: what they answer is what their description says."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient

from chunksink.search.legs import Legs
from chunksink.search.page import health, workers
from chunksink.search.page.app import make_app
from chunksink.search.page.site import HIDDEN
from tests.search.page.support import Held, NotBuilt, asked, client_of, degraded, site_over
from tests.search.support import family


def by_description(client: TestClient, path: str, status: str, told: Any, **headers: str) -> None:
    description = client.get("/api/openapi.json", headers=headers).json()
    answer = description["paths"][path]["get"]["responses"][status]
    schema = answer["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator({**schema, "components": description["components"]}).validate(told)


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_an_answer_is_as_described(client: TestClient, mode: str) -> None:
    given = {"q": "cat mat", "mode": mode, "context": 1, "explain": "true", "facet": ["language", "tags"], "limit": 3}
    answer = client.get("/api/search", params=given)
    assert answer.status_code == 200
    told = answer.json()
    by_description(client, "/api/search", "200", told)
    assert len(told["hits"]) == 3
    best = told["hits"][0]
    assert best["explain"]["document"]["text"] == best["text"]
    assert {value["value"] for value in told["facets"]["tags"]} == {"pets", "home"}


def test_sources_of_the_same_text_are_told_as_described(tmp_path: Path) -> None:
    with asked(tmp_path, [family(f"v{n}/a.md", "a moored boat", ids=f"v{n}") for n in range(3)]) as client:
        told = client.get("/api/search?q=boat&explain=1").json()
        by_description(client, "/api/search", "200", told)
        (hit,) = told["hits"]
        for other in hit["same_text"]:
            whole = client.get("/api/chunk", params={"id": other["chunk_id"]}).json()
            assert whole == other | {"text": hit["text"], "before": [], "after": []}
    assert {one["source_uri"] for one in (hit, *hit["same_text"])} == {f"v{n}/a.md" for n in range(3)}


def test_every_parameter_reaches_the_search(client: TestClient) -> None:
    def texts(**given: Any) -> list[str]:
        return [
            hit["text"]
            for hit in client.get("/api/search", params={"q": "cat", "mode": "keyword", **given}).json()["hits"]
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
    ("given", "says"),
    [
        ("filter=color%3Dred", "'color' cannot be filtered. Fields to filter by: authors,"),
        ("filter=nothing", "is not a filter"),
        ("mode=best", "there is no mode 'best'. Choose one of: hybrid"),
        ("limit=0", "limit must be a whole number, 1 to 100"),
        ("limit=1e9", "limit must be a whole number"),
        ("offset=-1", "offset must be a whole number, 0 or more"),
        ("offset=99999", "only the first 10000 can be"),
        ("all=perhaps", "all must be true or false"),
        ("facet=color", "no facets for color"),
        ("tenant=%20", "the tenant is empty: name a tenant, or leave it out"),
        ("tenant=acme&tenant=", "tenant occurs 2 times; it may occur only once"),
        ("limit=5&limit=6&limit=5", "limit occurs 3 times; it may occur only once"),
        ("limt=3", "there is no parameter 'limt'. Parameters: q, mode"),
        ("&".join(f"facet=f{n}" for n in range(21)), "at most 20"),
    ],
)
def test_what_cannot_be_asked_is_told_with_what_can(client: TestClient, given: str, says: str) -> None:
    answer = client.get(f"/api/search?q=cat&{given}")
    assert answer.status_code == 400
    by_description(client, "/api/search", "400", answer.json())
    assert says in answer.json()["error"]
    page = client.get(f"/?q=cat&{given}")
    of_programs = ("limt", "facet", "tenant")  # the page counts its own facets, and its form leaves fields empty
    if not given.startswith(of_programs) and "times" not in says:
        assert page.status_code == 400
        assert "notice bad" in page.text


@pytest.mark.parametrize(
    "query",
    ["battery safety " * 666, "🐈‍⬛ قطة ‮cat", "cat\x00", "cat \ud800"],
    ids=["long", "signs", "nul", "half a pair"],
)
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_no_query_is_too_odd(client: TestClient, query: str, mode: str) -> None:
    written = query.encode("utf-8", "surrogatepass")
    quoted = "".join(f"%{byte:02x}" for byte in written)
    for path in ("/api/search", "/"):
        assert client.get(f"{path}?q={quoted}%ff&mode={mode}&filter=language%3D%ff").status_code == 200, path


def test_of_very_many_conditions_some_are_shown(client: TestClient) -> None:
    page = client.get("/?q=cat&" + "&".join(f"filter=chunk_index%3E%3D-{number}" for number in range(1100))).text
    assert page.count("Remove the filter") == 50
    assert "<li>and 1050 more</li>" in page


def test_one_chunk_and_its_neighbours(client: TestClient) -> None:
    (best,) = client.get("/api/search", params={"q": "hunts at night", "limit": 1, "mode": "keyword"}).json()["hits"]
    answer = client.get("/api/chunk", params={"id": best["chunk_id"], "context": 1})
    told = answer.json()
    by_description(client, "/api/chunk", "200", told)
    assert [one["text"] for one in told["before"]] == ["the cat sleeps on the mat"]
    assert [one["text"] for one in told["after"]] == ["the vet sees every cat once a year"]
    refused = client.get("/api/chunk", params={"id": best["chunk_id"], "tenant": ""})
    assert refused.status_code == 400
    by_description(client, "/api/chunk", "400", refused.json())
    twice = client.get("/api/chunk", params={"id": ["nowhere", best["chunk_id"]]})
    assert (twice.status_code, twice.json()) == (400, {"error": "id occurs 2 times; it may occur only once"})
    gone = client.get("/api/chunk", params={"id": "nowhere\x00"})
    assert gone.status_code == 404
    by_description(client, "/api/chunk", "404", gone.json())


def test_without_an_index_it_says_what_to_run(legs: Legs) -> None:
    def nothing() -> None:
        raise NotBuilt("no index in .chunksink yet; build one with `chunksink sync`")

    with client_of(make_app(site_over(Held(legs, before=nothing)))) as client:
        for path in ("/api/search?q=cat", "/api/chunk?id=x"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert "chunksink sync" in answer.json()["error"]
        page = client.get("/?q=cat")
        assert page.status_code == 503
        assert "build one with <code>chunksink sync</code>" in page.text
        assert settled(client) == (503, {"status": "unavailable", "unavailable": []})


def test_with_one_engine_down_the_other_one_answers_and_it_is_said(legs: Legs) -> None:
    with client_of(make_app(site_over(Held(degraded(legs))))) as client:
        told = client.get("/api/search?q=cat").json()
        by_description(client, "/api/search", "200", told)
        assert told["hits"]
        assert told["unavailable"] == {"semantic": "chroma at http://10.0.0.7:8000 does not answer"}
        page = client.get("/?q=cat").text
        assert "Without semantic search." in page
        assert "without semantic search" in page
        assert 'class="hit"' in page
        assert settled(client) == (200, {"status": "degraded", "unavailable": ["semantic"]})


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_where_no_engine_can_be_asked_nothing_is_said_to_be_found(legs: Legs, mode: str) -> None:
    reason = "chroma at http://10.0.0.7:8000 does not answer"
    gone = replace(degraded(legs), keyword=None)
    tokens = {"all": "*", "acme": "acme"}
    with client_of(make_app(site_over(Held(gone), tokens=tokens))) as client:
        for token, shown in (("all", reason), ("acme", HIDDEN)):
            bearer = {"Authorization": f"Bearer {token}"}
            answer = client.get(f"/api/search?q=cat&mode={mode}", headers=bearer)
            assert answer.status_code == 503
            by_description(client, "/api/search", "503", answer.json(), **bearer)
            assert answer.json() == {"error": f"no answer of semantic search: {shown}"}
            page = client.get(f"/?q=cat&mode={mode}", headers=bearer)
            assert page.status_code == 503
            assert f"no answer of semantic search: {shown}" in page.text
            assert "Nothing found" not in page.text
            assert ("10.0.0.7" in page.text) == (token == "all")
        assert settled(client) == (503, {"status": "unavailable", "unavailable": ["semantic"]})


@pytest.mark.parametrize("path", ["/api/search?q=cat", "/api/chunk?id=x", "/api/openapi.json", "/healthz"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_another_method_is_refused_as_every_error_is(client: TestClient, path: str, method: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert "GET" in answer.json()["error"]
    assert client.head(path).status_code != 405


def test_healthz_does_not_repeat_for_long_what_it_knew(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    """All was well; now a look at the index does not come to an end."""
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(health, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(health, "_LONGEST_SECONDS", 0.5)
    go_on = threading.Event()
    go_on.set()
    with client_of(make_app(site_over(Held(legs, before=lambda: go_on.wait(20))))) as client:
        until(client, (200, {"status": "ok", "unavailable": []}))
        go_on.clear()
        until(client, (503, {"status": "unavailable", "unavailable": []}))
        go_on.set()
        until(client, (200, {"status": "ok", "unavailable": []}))


def until(client: TestClient, wanted: tuple[int, Any]) -> None:
    """Asks /healthz until it says so."""
    for _ in range(200):
        answer = client.get("/healthz")
        if (answer.status_code, answer.json()) == wanted:
            return
        time.sleep(0.02)
    raise AssertionError(f"it never said {wanted}")


def settled(client: TestClient) -> tuple[int, Any]:
    """What /healthz says once it has looked."""
    for _ in range(200):
        answer = client.get("/healthz")
        if answer.json()["status"] != "starting":
            return answer.status_code, answer.json()
        time.sleep(0.05)
    raise AssertionError("it never settled")


def test_too_much_at_once_is_refused_and_said(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, two more may wait."""
    monkeypatch.setattr(workers.Workers.__init__, "__defaults__", (2, 2, 30.0))
    go_on = threading.Event()
    with client_of(make_app(site_over(Held(legs, before=lambda: go_on.wait(20))))) as client:
        codes: list[int] = []
        threads = [
            threading.Thread(target=lambda: codes.append(client.get("/api/search?q=cat").status_code)) for _ in range(9)
        ]
        for thread in threads:
            thread.start()
        while len(codes) < 5:
            time.sleep(0.01)
        go_on.set()
        for thread in threads:
            thread.join()
    assert sorted(codes) == [200] * 4 + [503] * 5


def test_an_answer_that_takes_too_long_is_given_up(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.Workers.__init__, "__defaults__", (2, 2, 0.2))
    go_on = threading.Event()
    with client_of(make_app(site_over(Held(legs, before=lambda: go_on.wait(20))))) as client:
        answer = client.get("/api/search?q=cat")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "No answer within" in answer.json()["error"]
        go_on.set()


@pytest.mark.parametrize("asked", ["", "q=%20%09"])
def test_search_refuses_an_empty_query(client: TestClient, asked: str) -> None:
    answer = client.get(f"/api/search?{asked}")
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    by_description(client, "/api/search", "400", answer.json())
