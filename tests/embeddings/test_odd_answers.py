"""Answers of status 200 that do not hold what was asked for, and what is told of an endpoint that gave up."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tenacity import wait_fixed

from chunksink.embeddings.answer import OddAnswer, vectors_in
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.connection import EndpointSettings
from chunksink.embeddings.endpoint import EndpointEncoder
from chunksink.embeddings.errors import EndpointDenied, EndpointUnavailable
from chunksink.embeddings.vectors import vectors_for
from tests.embeddings.endpoint import Answer, Fault, Server, good, saying, status
from tests.embeddings.helpers import HashEncoder, numbered, stream


def connect(server: Server, **settings: Any) -> EndpointEncoder:
    settings = {"deadline_seconds": 60.0, "timeout_seconds": 30.0, "concurrency": 1} | settings
    return EndpointEncoder(EndpointSettings(server.url, "hash-model", **settings))


def altered(change: Callable[[list[dict[str, Any]]], object]) -> Fault:
    """A good answer whose entries were changed."""

    def answer(body: dict[str, Any]) -> Answer:
        code, headers, content = good(body)
        told = json.loads(content)
        told["data"].sort(key=lambda entry: entry["index"])
        change(told["data"])
        return code, headers, json.dumps(told).encode()

    return answer


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([], "asked for 2 vectors, got 0"),
        ([{"index": number, "embedding": [1]} for number in range(3)], "asked for 2 vectors, got 3"),
        ([{"index": 0, "embedding": [1]}] * 2, "the indexes of its vectors are not 0 to 1, each once"),
        ([{"index": "0", "embedding": [1]}] * 2, "the indexes of its vectors are not 0 to 1, each once"),
        ([{"embedding": [1]}] * 2, "no index says which text"),
        ([{"index": 0}, {"index": 1, "embedding": [1]}], "not lists of numbers"),
        ([{"index": number, "embedding": "AAAAPw=="} for number in range(2)], "not lists of numbers"),
        ([{"index": number, "embedding": [10**400]} for number in range(2)], "not lists of numbers"),
        ([{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}], "all of one length"),
    ],
)
def test_what_does_not_hold_what_was_asked_for_is_odd(entries: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(OddAnswer, match=told):
        vectors_in(json.dumps({"data": entries}).encode(), 2)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('{"data": []}', "asked for 3 vectors, got 0"),
        ('{"error": {"message": "model is loading"}}', "model is loading"),
        ("<html>\n<title>log in</title>" + "x" * 400, "<html> <title>log in</title>x"),
        ('{"data": [{"ind', 'cannot be used: {"data": [{"ind'),
        ('{"data": ["a", "b", "c"]}', '{"data": ["a", "b", "c"]}'),
        ("", "cannot be used: it is empty"),
    ],
)
def test_an_odd_answer_is_bought_twice_and_no_oftener(server: Server, said: str, told: str) -> None:
    encoder = connect(server)
    server.next = [saying(200, said)]
    assert abs(encoder.encode(["a", "b", "c"])[2] - HashEncoder().vector("c")).max() < 1e-6
    server.requests.clear()
    server.next = [saying(200, said)] * 20
    with pytest.raises(EndpointUnavailable) as failed:
        encoder.encode(["a", "b", "c"])
    assert told in str(failed.value)
    assert "failed 2 times, at last with an answer that cannot be used" in str(failed.value)
    assert len(str(failed.value)) < 500
    assert len(server.requests) == 2


def test_odd_answers_are_counted_between_other_failures(server: Server) -> None:
    encoder = connect(server)
    server.requests.clear()
    odd = saying(200, "{}")
    server.next = [odd, status(503), odd, odd]
    with pytest.raises(EndpointUnavailable, match="failed 3 times"):
        encoder.encode(["a"])
    assert len(server.requests) == 3


def test_where_vectors_are_missing_smaller_requests_find_the_text(server: Server, cache: VectorCache) -> None:
    def leaves_out(body: dict[str, Any]) -> Answer:
        code, headers, content = good({**body, "input": [text for text in body["input"] if text != texts[7]]})
        return code, headers, content

    texts = numbered(16)
    encoder = connect(server)
    server.requests.clear()
    server.next = [leaves_out] * 40
    items = list(vectors_for(stream(texts), encoder, cache))
    missing = [item for item in items if item.vector is None]
    assert len(missing) == 1
    assert "the endpoint gave no vector: asked for 1 vector, got 0" in str(missing[0].problem)
    assert sum(len(request["input"]) for request in server.requests) <= 16 + 2 * 16 + 2


def test_an_endpoint_that_takes_fewer_texts_without_a_word_is_asked_for_fewer(server: Server) -> None:
    server.next = [good, *[altered(lambda entries: entries.__delitem__(slice(4, None)))] * 100]
    texts = numbered(16)
    vectors = connect(server).encode(texts)
    assert abs(vectors[15] - HashEncoder().vector(texts[15])).max() < 1e-6


def test_an_endpoint_that_gives_one_word_no_vector_is_denied(server: Server) -> None:
    server.next = [altered(list.clear)] * 9
    with pytest.raises(EndpointDenied, match="asked for 1 vector, got 0"):
        connect(server)
    assert len(server.requests) == 2


# -- what is told ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [429, 503])
def test_the_endpoints_own_words_are_told(server: Server, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr("chunksink.embeddings.retry._GROWING", wait_fixed(99))
    encoder = connect(server)
    server.next = [saying(code, "You exceeded your\ncurrent quota " + "x" * 400)] * 9
    with pytest.raises(EndpointUnavailable) as failed:
        encoder.encode(["a"])
    assert f"failed once, with status {code}: You exceeded your current quota xxx" in str(failed.value)
    assert len(str(failed.value)) < 450
    assert "asks to wait" not in str(failed.value)


def test_a_wait_that_is_too_long_is_told_and_not_waited(server: Server) -> None:
    encoder = connect(server)
    server.next = [saying(429, "slow down", retry_after="86400")]
    started = time.monotonic()
    with pytest.raises(EndpointUnavailable, match="status 429: slow down; it asks to wait 86,400 s"):
        encoder.encode(["a"])
    assert time.monotonic() - started < 30, "it is not waited for"


def test_a_failure_without_words_is_no_wait(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*_: object, **__: object) -> httpx.Response:
        raise httpx.ReadError("")

    encoder = connect(server)
    monkeypatch.setattr("chunksink.embeddings.retry._GROWING", wait_fixed(99))
    monkeypatch.setattr(httpx.AsyncClient, "post", breaks)
    with pytest.raises(EndpointUnavailable, match="ReadError: it broke off"):
        encoder.encode(["a"])
