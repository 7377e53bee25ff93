"""Missing builds, lost answers, and the options and tokens of a server."""

import gc
import warnings
from pathlib import Path
from typing import Any

import httpx
import pytest
from chromadb.api.models.Collection import Collection

import chunksink.sinks.chroma.build as chroma_build
from chunksink.settings.errors import ConfigError
from chunksink.sinks.chroma import ChromaBuild, ChromaSink, Server, open_sink
from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of, marker
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing, NotConfirmed, Transient
from tests.engines.servers import ChromaServer


def test_dropped_build_is_reported_as_missing(chroma_server: ChromaServer, signed: Marker) -> None:
    sink = ChromaSink(Server(chroma_server.url, prefix="dropped"))
    build = sink.create(signed, DIMENSIONS)
    sink.drop(signed.build_id)
    for call in (build.marker, build.count, lambda: build.replace([family("a", ["x"])])):
        with pytest.raises(BuildMissing):
            call()
    build.close()


def test_failed_removal_is_done_by_the_next_flush(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    build.replace([family("a", ["old", "older"], version="1")])
    build.flush()
    new = family("a", ["new"], version="2")
    build.replace([new])
    with monkeypatch.context() as patch:
        patch.setattr(Collection, "delete", fail)
        with pytest.raises(Transient):
            build.flush()
    assert len(hashes_in(build)) == 3, "both versions are there, none is missing"
    build.flush()
    assert hashes_in(build) == hashes_of([new])
    monkeypatch.setattr(Collection, "delete", fail)
    assert build.flush() == [], "what is done is not done again"


def fail(*_: Any, **__: Any) -> None:
    raise Transient("not now")


def test_replacement_with_a_lost_answer_leaves_nothing_behind(
    build: ChromaBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a build that was empty, the content of the build shows what was written."""
    lost, new, other = (
        family("a", ["1", "2", "3", "4"], version="1"),
        family("a", ["new"], version="2"),
        family("b", ["b"]),
    )
    with monkeypatch.context() as patch:
        lose_the_second_answer(build, patch)
        with pytest.raises(NotConfirmed):
            build.replace([lost])
    assert build.count() == 4
    build.replace([new, other])
    build.flush()
    assert hashes_in(build) == hashes_of([new, other])


def test_flush_after_a_failed_replacement_removes_nothing(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (family("a", [f"{v} {n}" for n in range(4)], version=v) for v in "123")
    build.replace([first])
    build.flush()
    build.replace([second])
    with monkeypatch.context() as patch:
        lose_the_second_answer(build, patch)
        with pytest.raises(NotConfirmed):
            build.replace([third])
    build.flush()
    assert set(hashes_of([first, second])) <= set(hashes_in(build))
    build.replace([third])
    build.flush()
    assert hashes_in(build) == hashes_of([third])


def lose_the_second_answer(build: ChromaBuild, patch: pytest.MonkeyPatch) -> None:
    """Requests have two documents. The second request is executed, but its answer is lost."""
    upsert, calls = build._handle.opened().collection.upsert, []

    def losing(**arguments: Any) -> None:
        upsert(**arguments)
        calls.append(arguments)
        if len(calls) == 2:
            raise httpx.ReadTimeout("lost")

    patch.setattr(chroma_build, "PAGE", 2)
    patch.setattr(build._handle.opened().collection, "upsert", losing)


# --- options and tokens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["timeout", "search_timeout", "prefix"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "a b/ü", "", "-x"])
def test_invalid_options_are_refused_at_once(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        open_sink(tmp_path, {"url": "http://127.0.0.1:1", name: value})


def test_connections_are_closed(chroma_server: ChromaServer) -> None:
    def unclosed() -> list[str]:
        return [message for one in seen if "unclosed <socket" in (message := str(one.message)) and port in message]

    port = str(httpx.URL(chroma_server.url).port)
    gc.collect()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        sink = ChromaSink(Server(chroma_server.url, prefix="hung-up"))
        signed = marker()
        sink.create(signed, 8).close()
        sink.open(signed.build_id).close()
        with pytest.raises(BuildMissing):
            sink.open("nobody")
        sink.drop(signed.build_id)
        sink.close()
        gc.collect()
    assert unclosed() == []


def test_credentials_are_in_no_message(chroma_server: ChromaServer) -> None:
    sink = ChromaSink(Server(chroma_server.url, token="hunter2"))
    with pytest.raises(BuildMissing) as missing:
        sink.open("nobody")
    assert "hunter2" not in repr(missing.value) + repr(sink) + repr(vars(sink))
