"""Answers, `/readyz` and the log while the index is missing, an engine is down, or too many requests wait."""

import asyncio
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from chunksink.search.legs import Legs
from chunksink.search.page import api, pages, readiness, site, workers
from chunksink.search.page.app import make_app
from chunksink.search.page.report import Report
from chunksink.search.page.site import HIDDEN
from tests.search.page.support import (
    LegAnswers,
    NotBuilt,
    assert_described,
    client_of,
    degraded,
    report,
    site_over,
)
from tests.support.waiting import eventually


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
        assert logged() == ["semantic search is available again"]
        now += 60
        answers.before = not_built
        [line] = logged()
        assert line.startswith("every search is unavailable: ")


def not_built() -> None:
    raise NotBuilt("no index at /srv/search")


def test_readyz_reports_unavailable_if_the_search_hangs(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first search succeeds, a later one does not end."""
    monkeypatch.setattr(readiness, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(readiness, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(readiness, "_MAX_SECONDS", 0.5)
    release = threading.Event()
    release.set()
    with client_of(make_app(site_over(LegAnswers(legs, before=lambda: release.wait(20))))) as client:
        eventually(lambda: ready(client) == (200, {"status": "ok", "reason": None, "unavailable": []}))
        release.clear()
        eventually(lambda: ready(client) == (503, {"status": "unavailable", "reason": "timeout", "unavailable": []}))
        release.set()
        eventually(lambda: ready(client) == (200, {"status": "ok", "reason": None, "unavailable": []}))


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


def ready(client: TestClient) -> tuple[int, Any]:
    answer = client.get("/readyz")
    return answer.status_code, answer.json()


def readiness_of(client: TestClient) -> tuple[int, Any]:
    """The first answer of /readyz after `starting`."""
    eventually(lambda: ready(client)[1]["status"] != "starting")
    return ready(client)


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


class Stuck:
    """Metrics and a report that wait. Remembers whether each call came in a daemon thread."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.daemons: list[bool] = []

    def answered(self, *_: object) -> None: ...

    def failed(self, _reason: str) -> None: ...

    def exposition(self, _accept: str) -> tuple[bytes, str]:
        self.report()
        return b"", "text/plain"

    def report(self) -> Report:
        self.daemons.append(threading.current_thread().daemon)
        self.release.wait(20)
        return report()


@pytest.mark.parametrize("path", ["/metrics", "/status"])
def test_scrape_or_status_that_hangs_delays_no_search(legs: Legs, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(api, "SCRAPE_SECONDS", 0.2)
    monkeypatch.setattr(pages, "SECONDS", 0.2)
    stuck = Stuck()
    with client_of(make_app(site_over(LegAnswers(legs), metrics=stuck, report=stuck.report))) as client:
        for _ in range(workers.THREADS + 1):
            assert client.get(path).status_code == 503
        assert stuck.daemons == [True], "one at a time, in a thread that the end of the process does not wait for"
        assert client.get("/api/search?q=cat").status_code == 200
        stuck.release.set()
        eventually(lambda: client.get(path).status_code == 200)


def test_thread_that_cannot_be_started_blocks_no_later_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def ask() -> str:
        side = workers.SideWorker(5.0)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fail)
            with pytest.raises(RuntimeError, match="thread"):
                await side.do(lambda: "")
        return await side.do(lambda: "answer")

    assert asyncio.run(ask()) == "answer"
