"""Network faults before real engines: one that passes changes nothing in the end, one that stays is left by the
deadline with the old families complete, and the plain next run mends what it left.

An engine is one parameter of the fixture `engine`.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from chunksink.sinks.chroma import ChromaSink
from chunksink.sinks.conformance.samples import DIMENSIONS, family, marker
from chunksink.sinks.contract import Build, Sink
from chunksink.sinks.document import Family
from chunksink.sinks.errors import Refused, Transient, Unreachable
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.retry import Fault, RetryingSink, RetryPolicy
from tests.engines.servers import run_chroma, run_meilisearch
from tests.faults import proxy as p
from tests.faults.proxy import Proxy
from tests.support.meilisearch import SETTINGS

ALL = bool(os.environ.get("CHUNKSINK_SOAK_FAULTS"))
TIMEOUT = 0.25  # of a request; one that takes longer on a busy machine is one more fault that passes
DEADLINE = 0.2  # where a fault stays

OLD = [family(name, [f"{name} one", f"{name} two", f"{name} three"], version="1") for name in ("a", "b", "c", "d")]
NEW = [
    family("a", ["a one", "a edited"], version="2"),
    family("b", [f"b {number}" for number in range(6)], version="1"),
    family("e", ["e one"], version="1"),
]
GONE = OLD[3]

Content = dict[str, Any]


@dataclass(frozen=True)
class Engine:
    """A real server for all tests here, and what they need to know about its kind."""

    url: str
    connect: Callable[[str], Sink]
    """A sink on the server at this address, whose requests last `TIMEOUT` at most."""
    run: Callable[..., AbstractContextManager[Any]]
    """Another server, by `data` and `port`."""
    write: str
    """In the first line of the request that carries documents."""
    last: str
    """In the first line of the last request of an edit that changes anything; some engines are polled after it."""


@pytest.fixture(scope="module", params=["chroma", "meilisearch"])
def engine(request: pytest.FixtureRequest) -> Engine:
    server = request.getfixturevalue(f"{request.param}_server")
    if request.param == "chroma":
        return Engine(server.url, chroma, run_chroma, "/upsert ", "/delete ")
    return Engine(
        server.url,
        partial(meilisearch, server.key),
        partial(run_meilisearch, key=server.key),
        "/documents ",
        "/documents/delete ",
    )


def chroma(url: str) -> Sink:
    return ChromaSink.server(url, prefix="faults", timeout=TIMEOUT)


def meilisearch(key: str, url: str) -> Sink:
    return MeilisearchSink(url, key, settings=SETTINGS, index="faults", timeout=TIMEOUT)


@pytest.fixture(scope="module")
def proxy(engine: Engine) -> Iterator[Proxy]:
    with Proxy(engine.url) as proxy:
        yield proxy


@dataclass(frozen=True)
class Setting:
    """A build that is looked at past the proxy, and what comes of editing it without any fault."""

    build_id: str
    build: Build
    old: Content
    new: Content
    requests: list[str]


@pytest.fixture(scope="module")
def setting(engine: Engine, proxy: Proxy) -> Iterator[Setting]:
    signed = marker()
    with closing(patient(engine.connect(engine.url))) as sink, closing(sink.create(signed, DIMENSIONS)) as build:
        old = restore(build)
        proxy.heal()
        edit(engine.connect(proxy.url), signed.build_id)
        yield Setting(signed.build_id, build, old, content(build), proxy.requests)
        sink.drop(signed.build_id)


@pytest.fixture(autouse=True)
def restored(setting: Setting, proxy: Proxy) -> Iterator[None]:
    assert restore(setting.build) == setting.old
    yield
    proxy.heal()


def restore(build: Build) -> Content:
    build.replace(OLD)
    build.delete([NEW[2].parent_id])
    assert build.flush() == []
    return content(build)


def edit(sink: Sink, build_id: str) -> None:
    """The run that is disturbed."""
    with closing(sink), closing(sink.open(build_id)) as build:
        assert build.marker()
        build.replace(NEW)
        build.delete([GONE.parent_id])
        assert build.flush() == []


def content(build: Build) -> Content:
    found = list(build.scan(content=True, vectors=True))
    vectors = {one.id: None if one.vector is None else one.vector.tobytes() for one in found}
    assert len(vectors) == len(found)
    return {one.id: (one.hashes(), one.document, vectors[one.id]) for one in found}


def patient(
    sink: Sink,
    told: list[Fault] | None = None,
    *,
    deadline: float = 60,
    sleep: Callable[[float], None] = time.sleep,
) -> RetryingSink:
    patience = RetryPolicy(deadline, first_wait_seconds=0.01, longest_wait_seconds=0.1)
    return RetryingSink(sink, patience, on_fault=([] if told is None else told).append, sleep=sleep)


# --- faults that pass -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["first", "middle", "last", "each once"] if ALL else ["each once"])
@pytest.mark.parametrize("fault", [p.LATENCY, *p.BROKEN][:: 1 if ALL else 2], ids=p.named)
def test_a_fault_that_passes_changes_nothing(
    engine: Engine, proxy: Proxy, setting: Setting, fault: p.Fault, place: str
) -> None:
    whole = len(setting.requests)
    last = sum(engine.last in line for line in setting.requests)
    when = {
        "first": p.only(1),
        "middle": p.only(whole // 2),
        "last": occurrence(engine.last, last),
        "each once": p.each_once(),
    }
    told: list[Fault] = []
    proxy.inject(fault, when[place])
    started = time.monotonic()
    edit(patient(engine.connect(proxy.url), told), setting.build_id)
    assert time.monotonic() - started < p.LONGEST_SILENCE, "some request has no timeout"
    assert proxy.faulted
    assert told or fault is p.LATENCY
    assert content(setting.build) == setting.new


def test_latency_at_every_request_only_takes_longer(engine: Engine, proxy: Proxy, setting: Setting) -> None:
    proxy.inject(p.LATENCY)
    edit(patient(engine.connect(proxy.url)), setting.build_id)
    assert len(proxy.faulted) >= len({line for line in setting.requests if "/tasks" not in line})
    assert content(setting.build) == setting.new


@pytest.mark.parametrize("fault", [p.RESET, p.ANSWER_LOST, p.UNAVAILABLE], ids=p.named)
def test_every_call_of_a_sink_outlives_every_request_failing_once(engine: Engine, proxy: Proxy, fault: p.Fault) -> None:
    told: list[Fault] = []
    signed = marker()
    adopted = replace(signed, home_id="home-b")
    proxy.inject(fault, p.each_once())
    with closing(patient(engine.connect(proxy.url), told)) as sink:
        with closing(sink.create(signed, DIMENSIONS)) as build:
            assert build.marker() == signed
            build.replace(OLD)
            assert build.flush() == []
            build.replace(NEW)
            build.delete([GONE.parent_id])
            assert build.flush() == []
            assert set(content(build)) == {d.id for one in (*NEW, OLD[2]) for d in one.documents}
            build.sign(adopted)
        with closing(sink.open(signed.build_id)) as build:
            assert (build.marker(), build.count()) == (adopted, 12)
        assert signed.build_id in sink.builds()
        sink.flip(None, signed.build_id)
        sink.drop(signed.build_id)
        assert signed.build_id not in sink.builds()
    # A connection that was reset may be taken for one call more before that is seen.
    assert len(told) >= len(proxy.faulted)


# --- faults that stay -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "place"),
    [(fault, "always") for fault in p.BROKEN[:: 1 if ALL else 2]]
    + [(fault, "since the write") for fault in (p.RESET, p.CUT_REQUEST, p.ANSWER_LOST, p.ANSWER_LATE, p.FAILED)],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_fault_that_stays_is_left_by_the_deadline(
    engine: Engine, proxy: Proxy, setting: Setting, fault: p.Fault, place: str
) -> None:
    told: list[Fault] = []
    proxy.inject(fault, p.always if place == "always" else p.since(number(setting.requests, engine.write)))
    started = time.monotonic()
    with pytest.raises(Transient, match=r"tried .* run again") as error:
        edit(patient(engine.connect(proxy.url), told, deadline=DEADLINE), setting.build_id)
    assert time.monotonic() - started < DEADLINE + TIMEOUT + 2
    assert told
    assert told[-1].error in f"{type(error.value).__name__}: {error.value}"
    found = content(setting.build)
    if place == "always":
        assert found == setting.old
    assert_complete(found)
    proxy.heal()
    edit(patient(engine.connect(proxy.url), deadline=60), setting.build_id)
    assert content(setting.build) == setting.new


def occurrence(mark: str, wanted: int) -> p.When:
    """The so-manieth request with this mark."""
    seen = 0

    def when(_: int, request: bytes) -> bool:
        nonlocal seen
        seen += mark.encode() in request.partition(b"\r\n")[0]
        return seen == wanted and mark.encode() in request.partition(b"\r\n")[0]

    return when


def number(requests: list[str], mark: str) -> int:
    return next(number for number, line in enumerate(requests, start=1) if mark in line)


def assert_complete(found: Content) -> None:
    """Every family that is to be there is there, in its old version or in its new one."""
    new = {one.parent_id: one for one in NEW}
    for one in OLD[:3]:
        versions: list[Family] = [one, new.get(one.parent_id, one)]
        assert any(all(document.id in found for document in version.documents) for version in versions)


def test_nobody_at_the_address(engine: Engine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        sink = patient(engine.connect(f"http://127.0.0.1:{taken.getsockname()[1]}"), deadline=2)
        started = time.monotonic()
        for call in (sink.builds, lambda: sink.open("b1")):
            with pytest.raises(Unreachable, match=r"start it, or correct the address.* tried \d+ times"):
                call()
        assert time.monotonic() - started < 2 * 2 + 4


class Stranger(BaseHTTPRequestHandler):
    """A web server that knows nothing of any engine."""

    status = 404

    def do_GET(self) -> None:
        body = b"<html>Hello!</html>"
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.parametrize("status", [404, 200, 301])
def test_somebody_else_at_the_address(engine: Engine, status: int) -> None:
    handler = type("Answering", (Stranger,), {"status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        told: list[Fault] = []
        try:
            sink = patient(engine.connect(f"http://127.0.0.1:{server.server_address[1]}"), told, deadline=DEADLINE)
            with pytest.raises(Refused, match="correct the address"):
                sink.open("b1")
        finally:
            server.shutdown()
            thread.join()
    assert told == []


# --- a server that dies ---------------------------------------------------------------------------------------


def test_a_server_that_is_killed_and_started_again(engine: Engine, setting: Setting, tmp_path: Path) -> None:
    """Before it did what it was asked, and when it has done it but not yet said so."""
    signed = marker()
    with ExitStack() as servers:
        running = servers.enter_context(engine.run(data=tmp_path / "data"))
        killed: list[int] = []

        def kill() -> None:
            killed.append(running.pid)
            os.kill(running.pid, signal.SIGKILL)

        def start_again(seconds: float) -> None:
            nonlocal running
            if running.pid in killed:
                running = servers.enter_context(engine.run(data=tmp_path / "data", port=running.port))
            time.sleep(seconds)

        with closing(patient(engine.connect(running.url))) as sink, closing(sink.create(signed, DIMENSIONS)) as build:
            assert restore(build) == setting.old
        before = p.Fault("killed before", request_bytes=0, act=kill)
        after = p.Fault("killed after", answer_bytes=0, act=kill)
        with Proxy(running.url) as proxy:
            last = sum(engine.last in line for line in setting.requests)
            for fault, when in ((before, occurrence(engine.write, 1)), (after, occurrence(engine.last, last))):
                told: list[Fault] = []
                proxy.inject(fault, when)
                edit(patient(engine.connect(proxy.url), told, sleep=start_again), signed.build_id)
                assert told
                with closing(sink.open(signed.build_id)) as build:
                    assert content(build) == setting.new
                    assert restore(build) == setting.old
        assert len(killed) == 2
