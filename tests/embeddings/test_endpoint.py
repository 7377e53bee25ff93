"""The endpoint adapter against a real HTTP server on loopback: good answers, faults, refusals, and the key."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from embeddings.cache import VectorCache
from embeddings.encoder import encode_query
from embeddings.endpoint import EndpointEncoder, EndpointSettings
from embeddings.errors import EndpointDenied, EndpointUnavailable, TextRefused, WrongVectors
from embeddings.vectors import EmbedReport, vectors_for
from tests.embeddings.endpoint import KEY, Answer, Server, good, serve, status
from tests.embeddings.helpers import HashEncoder, numbered, stream


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as served:
        yield served


def connect(server: Server, **settings: Any) -> EndpointEncoder:
    settings = {"deadline_seconds": 5.0, "timeout_seconds": 2.0} | settings
    return EndpointEncoder(EndpointSettings(server.url, "hash-model", **settings))


def test_vectors_come_in_order_from_many_requests(server: Server, cache: VectorCache) -> None:
    encoder = connect(server, batch_texts=7)
    texts = [*numbered(50), "", "😀", "\ud800 alone"]
    items = list(vectors_for(stream(texts), encoder, cache))
    for text, item in zip(texts, items, strict=True):
        assert item.vector is not None
        if "\ud800" not in text:
            assert abs(item.vector - HashEncoder().vector(text)).max() < 1e-6
    assert max(len(request["input"]) for request in server.requests) == 7
    assert encoder.precision == "float32"
    done = len(server.requests)
    assert all(item.cached for item in vectors_for(stream(texts), encoder, cache))
    assert len(server.requests) == done
    encoder.close()


def test_requests_are_bounded_in_characters(server: Server) -> None:
    connect(server, batch_chars=100).encode(["x" * 40] * 10)
    assert max(sum(map(len, request["input"])) for request in server.requests) <= 100


@pytest.mark.parametrize(
    "fault",
    [
        status(429, retry_after="0"),
        status(500),
        status(503, retry_after="soon"),
        lambda body: None,
        lambda body: (200, {}, b'{"data": [{"ind'),
        lambda body: (200, {}, b"[]"),
        lambda body: (200, {}, b'{"data": []}'),
        lambda body: (200, {}, b'{"data": [{"index": 5, "embedding": [1]}]}'),
    ],
)
def test_what_may_pass_is_tried_again(server: Server, fault: Callable[[dict[str, Any]], Answer | None]) -> None:
    encoder = connect(server)
    server.next = [fault, fault]
    assert abs(encoder.encode(["a"])[0] - HashEncoder().vector("a")).max() < 1e-6


def test_a_server_that_stays_away_is_given_up_at_the_deadline(server: Server, cache: VectorCache) -> None:
    encoder = connect(server, deadline_seconds=1.0, concurrency=1, batch_texts=1)
    server.next = [good, good, *[status(503)] * 100]
    started = time.monotonic()
    with pytest.raises(EndpointUnavailable, match="503"):
        list(vectors_for(stream(numbered(10)), encoder, cache))
    assert time.monotonic() - started < 4
    server.next = []
    server.requests.clear()
    list(vectors_for(stream(numbered(10)), encoder, cache))
    assert len(server.requests) == 8, "the two that came through were committed"


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    started = time.monotonic()
    with pytest.raises(EndpointUnavailable, match="failed"):
        EndpointEncoder(EndpointSettings(url, "m", first_deadline_seconds=0.5))
    assert time.monotonic() - started < 4


def test_a_longer_wait_than_the_deadline_is_not_waited(server: Server) -> None:
    encoder = connect(server, deadline_seconds=2.0)
    server.next = [status(429, retry_after="3600")]
    started = time.monotonic()
    with pytest.raises(EndpointUnavailable):
        encoder.encode(["a"])
    assert time.monotonic() - started < 1


@pytest.mark.parametrize("code", [301, 401, 403, 404, 405])
def test_what_is_refused_for_good_is_asked_once(server: Server, code: int) -> None:
    encoder = connect(server)
    server.requests.clear()
    server.next = [status(code, location="http://127.0.0.1:9/elsewhere")]
    with pytest.raises(EndpointDenied, match=str(code)):
        encoder.encode(["a", "b"])
    assert len(server.requests) == 1


def test_a_refused_text_stands_alone(server: Server, cache: VectorCache) -> None:
    encoder = connect(server)
    texts = [*numbered(20), "refuse me", *(f"more {number}" for number in range(20))]
    items = list(vectors_for(stream(texts), encoder, cache))
    assert [item.text_hash for item in items if item.vector is None] == [items[20].text_hash]
    assert "status 400" in str(items[20].problem)
    with pytest.raises(TextRefused):
        encoder.encode(["refuse me"])


@pytest.mark.parametrize("spoilt", [b"NaN", b"null", b"1e999"])
def test_an_answer_that_is_not_finite_stands_alone(server: Server, cache: VectorCache, spoilt: bytes) -> None:
    encoder = connect(server)

    def one_is_spoilt(body: dict[str, Any]) -> Answer:
        rows = [b"[" + b",".join([spoilt if number == 1 else b"1.0"] * 16) + b"]" for number in range(3)]
        entries = [b'{"index": %d, "embedding": %s}' % (number, row) for number, row in enumerate(rows)]
        return 200, {}, b'{"data": [' + b",".join(entries) + b"]}"

    server.next = [one_is_spoilt]
    items = list(vectors_for(stream(["a", "b", "c"]), encoder, cache))
    assert [item.vector is None for item in items] == [False, True, False]
    assert "not finite" in str(items[1].problem)


def test_a_model_that_changed_its_dimension_is_stopped(server: Server, cache: VectorCache) -> None:
    encoder = connect(server)
    server.dimension = 8
    with pytest.raises(WrongVectors, match="8 dimensions instead of 16"):
        list(vectors_for(stream(["a"]), encoder, cache))


def test_shortened_vectors_are_asked_for(server: Server) -> None:
    encoder = connect(server, dimensions=4)
    assert encoder.encode(["a"]).shape == (1, 4)
    assert encoder.fingerprint != connect(server).fingerprint


def test_prompts_go_before_passages_and_queries(server: Server) -> None:
    encoder = connect(server, query_prompt="query: ", passage_prompt="passage: ")
    encoder.encode(["a"])
    encode_query(encoder, "b")
    assert [request["input"] for request in server.requests[-2:]] == [["passage: a"], ["query: b"]]


def test_long_texts_are_windows_or_cut_and_always_counted(server: Server, cache: VectorCache) -> None:
    windows = connect(server, max_chars=10, batch_texts=3)
    cut = connect(server, max_chars=10, long_texts="truncate")
    assert windows.fingerprint != cut.fingerprint
    texts = ["short", "0123456789abcdefghij0123456789", "exactly 10"]
    report = EmbedReport()
    run = vectors_for(stream(texts), windows, cache, report)
    vectors = [item.vector for item in run]
    assert report.over_length == 1
    encoder = HashEncoder()
    mean = np.sum([encoder.vector(part) for part in ("0123456789", "abcdefghij", "0123456789")], axis=0)
    mean /= np.linalg.norm(mean)
    assert vectors[1] is not None
    assert abs(vectors[1] - mean).max() < 1e-6
    assert abs(cut.encode(texts)[1] - encoder.vector("0123456789")).max() < 1e-6


def test_the_key_is_sent_and_never_told(
    server: Server, cache: VectorCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TEST_ENDPOINT_KEY", KEY)
    encoder = connect(server, key_variable="TEST_ENDPOINT_KEY", deadline_seconds=0.5)
    told = [repr(encoder), repr(encoder.info), repr(vars(encoder))]
    told += [str(item.problem) for item in vectors_for(stream(["refuse", "fine"]), encoder, cache)]
    echo = f"wrong key {KEY}".encode()
    for code in (401, 403, 404):
        server.next = [lambda _, code=code: (code, {}, echo)]  # type: ignore[misc]
        with pytest.raises(EndpointDenied) as denied:
            encoder.encode(["a"])
        told += [str(denied.value), repr(denied.value.__cause__)]
    server.next = [status(503)] * 20
    with pytest.raises(EndpointUnavailable) as away:
        encoder.encode(["a"])
    told += [str(away.value), repr(away.value.__cause__)]
    assert server.keys[0] == f"Bearer {KEY}"
    assert KEY not in "\n".join(told)
    assert KEY not in caplog.text
    assert KEY.encode() not in cache.path.read_bytes()


def test_without_the_key_nothing_is_sent(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_ENDPOINT_KEY", raising=False)
    with pytest.raises(EndpointDenied, match="TEST_ENDPOINT_KEY holds no key"):
        connect(server, key_variable="TEST_ENDPOINT_KEY")
    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    ["ftp://127.0.0.1/v1", "127.0.0.1", "http://", "http://user:secret@127.0.0.1/v1", "http://127.0.0.1/v1?key=s"],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(EndpointDenied) as refused:
        EndpointEncoder(EndpointSettings(url, "m"))
    assert "secret" not in str(refused.value)
