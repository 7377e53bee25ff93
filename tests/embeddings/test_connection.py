"""A connection to an endpoint: deadlines, a key that stays secret, and malformed answers."""

import asyncio
import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import wait as wait_for
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tenacity import wait_fixed

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.connection import EndpointConnection, RequestLimits, vectors_in
from chunksink.embeddings.endpoint import EndpointEncoder
from chunksink.embeddings.errors import EndpointDenied, EndpointError, EndpointUnavailable
from chunksink.embeddings.settings import EncoderSettings
from chunksink.embeddings.vectors import vectors_for
from tests.embeddings.endpoint import KEY, Answer, Fault, Server, connect, connect_to, good, hang, saying, status
from tests.embeddings.helpers import HashEncoder, numbered, stream

# -- deadlines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("timeout", "tries"), [(30.0, 1), (0.4, 2)])
def test_server_that_drips_is_abandoned_at_the_deadline(server: Server, timeout: float, tries: int) -> None:
    encoder = connect(server, deadline_seconds=1.5, timeout_seconds=timeout)
    server.requests.clear()
    server.drip = 0.05
    started = time.monotonic()
    with pytest.raises(EndpointUnavailable, match="TimeoutError: no answer in time"):
        encoder.encode(["a"])
    assert time.monotonic() - started < 10
    assert len(server.requests) >= tries


def test_failure_of_one_request_stops_the_others(server: Server) -> None:
    encoder = connect(server, concurrency=3, batch_texts=1, deadline_seconds=60.0, timeout_seconds=60.0)
    server.next = [hang(server), hang(server), status(401)]
    started = time.monotonic()
    with pytest.raises(EndpointDenied, match="401"):
        encoder.encode(numbered(20))
    encoder.close()
    assert time.monotonic() - started < 20


def test_reader_that_stops_waits_for_no_request(server: Server) -> None:
    encoder = connect(server, concurrency=3, batch_texts=1, deadline_seconds=60.0, timeout_seconds=60.0)
    server.next = [good, hang(server), status(503, retry_after="50"), *[hang(server)] * 20]
    started = time.monotonic()
    run = encoder.encode_batches(numbered(20))
    next(run)
    run.close()  # type: ignore[attr-defined]
    encoder.close()
    assert time.monotonic() - started < 20


def test_server_that_missed_the_end_is_notified_again(server: Server) -> None:
    connection = EndpointConnection(server.url, EncoderSettings("hash-model"), RequestLimits(), int)
    begun = threading.Event()

    async def deaf() -> None:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    connection.start(deaf())
    assert begun.wait(30)
    started = time.monotonic()
    connection.close()
    assert time.monotonic() - started < 20


def test_vectors_ready_at_a_failure_are_returned(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = connect(server, concurrency=1, batch_texts=1)
    server.next = [good, status(401), good]

    def all_ready(running: Any, return_when: str) -> Any:
        return wait_for(running)

    monkeypatch.setattr("chunksink.embeddings.endpoint.wait", all_ready)
    ready: list[int] = []
    with pytest.raises(EndpointDenied):
        for batch in encoder.encode_batches(["a", "b"]):
            ready += batch.positions
    assert ready == [0]


# -- the key stays secret ----------------------------------------------------------------------------------------------


def test_key_is_sent_and_never_shown(
    server: Server, cache: VectorCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TEST_ENDPOINT_KEY", KEY)
    encoder = connect(server, endpoint_key_variable="TEST_ENDPOINT_KEY", deadline_seconds=0.5)
    shown = [repr(encoder), repr(encoder.info), repr(vars(encoder))]
    shown += [str(item.problem) for item in vectors_for(stream(["refuse", "fine"]), encoder, cache)]
    for code in (401, 403, 404):
        server.next = [saying(code, f"wrong key {KEY}")]
        with pytest.raises(EndpointDenied) as denied:
            encoder.encode(["a"])
        shown += chain_of(denied.value)
    server.next = [status(503)] * 20
    with pytest.raises(EndpointUnavailable) as away:
        encoder.encode(["a"])
    shown += chain_of(away.value)
    assert server.keys[0] == f"Bearer {KEY}"
    assert KEY not in "\n".join(shown)
    assert KEY not in caplog.text
    assert KEY.encode() not in cache.path.read_bytes()


def chain_of(error: BaseException | None) -> list[str]:
    """Everything that a traceback or a careless log could show of an error."""
    shown = []
    while error is not None:
        shown += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    return shown


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (saying(401, "." * 270 + KEY), "answered 401"),
        (saying(401, "." * 291 + KEY), "answered 401"),
        (saying(200, "." * 280 + KEY), "unusable answer"),
        (saying(503, "." * 280 + KEY), "status 503"),
        (saying(429, f"no quota for {KEY}", retry_after="9999"), "status 429"),
        (
            saying(302, "", location=f"https://login.example/?key={KEY}"),
            r"answered 302 .*: https://login\.example/\?key=\[",
        ),
        (saying(200, "{}", **{"not a header": KEY}), r"illegal header line.*\[key\]"),
    ],
)
def test_no_part_of_the_key_is_shown(
    server: Server, monkeypatch: pytest.MonkeyPatch, fault: Fault, message: str
) -> None:
    """Also if an answer is cut, and if the client's own error repeats it."""
    monkeypatch.setenv("TEST_ENDPOINT_KEY", KEY)
    encoder = connect(server, endpoint_key_variable="TEST_ENDPOINT_KEY", deadline_seconds=2)
    server.next = [fault] * 50
    with pytest.raises(EndpointError, match=message) as failed:
        encoder.encode(["a"])
    assert KEY[:4] not in "\n".join(chain_of(failed.value))


def test_key_in_quotes_is_hidden(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "can/ary\\2'f\"9c"
    monkeypatch.setenv("TEST_ENDPOINT_KEY", key)
    encoder = connect(server, endpoint_key_variable="TEST_ENDPOINT_KEY")
    for form in (key, repr(key), json.dumps(key), json.dumps(key).replace("/", "\\/")):
        server.next = [saying(403, f"no: {form}")]
        with pytest.raises(EndpointDenied) as denied:
            encoder.encode(["a"])
        assert "9c" not in str(denied.value)
        assert "[key]" in str(denied.value)


@pytest.mark.parametrize("key", ["canary key", "canary\u00e9", "canary\r\nx: y"])
def test_invalid_key_is_neither_sent_nor_shown(server: Server, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("TEST_ENDPOINT_KEY", key)
    started = time.monotonic()
    message = "option endpoint_key_variable: the environment variable TEST_ENDPOINT_KEY "
    with pytest.raises(EndpointDenied, match=message) as denied:
        connect(server, endpoint_key_variable="TEST_ENDPOINT_KEY")
    assert "canary" not in "\n".join(chain_of(denied.value))
    assert server.requests == []
    assert time.monotonic() - started < 2, "and not tried again"


def test_request_without_a_key_sends_none(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_ENDPOINT_KEY", raising=False)
    with pytest.raises(EndpointDenied, match="TEST_ENDPOINT_KEY"):
        connect(server, endpoint_key_variable="TEST_ENDPOINT_KEY")
    assert server.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/v1",
        "http://",
        "http://user:secret@127.0.0.1/v1",
        "http://127.0.0.1/v1?key=s",
        "http://[::1/v1",
        "http://x:secret/v1",
        "http://exa mple/v1",
        "http://x\x00/v1",
    ],
)
def test_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(EndpointDenied) as refused:
        connect_to(url, first_deadline_seconds=0.1)
    assert "secret" not in str(refused.value)


# -- variables in the environment --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("SSL_CERT_FILE", "nowhere.pem", r"No such file or directory\): check SSL_CERT_FILE"),
        ("SSL_CERT_FILE", "no.pem", "check SSL_CERT_FILE"),
        ("ALL_PROXY", "socks5://127.0.0.1:1", r"(?s)socks.*check .*HTTP_PROXY, HTTPS_PROXY, ALL_PROXY"),
        ("ALL_PROXY", "strange://user:p-secret@127.0.0.1:1", "check .*HTTP_PROXY"),
        ("ALL_PROXY", "http://user:p-secret/x@127.0.0.1:1", "check .*HTTP_PROXY"),
    ],
)
def test_invalid_environment_is_named(
    variable: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "no.pem").write_text("no certificate")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv(variable, value)
    with pytest.raises(EndpointDenied, match=message) as denied:
        connect_to("https://192.0.2.1/v1")
    assert "secret" not in str(denied.value)


# -- answers of status 200 with the wrong content ----------------------------------------------------------------------


def patient(server: Server) -> EndpointEncoder:
    return connect(server, deadline_seconds=60.0, timeout_seconds=30.0, concurrency=1)


def altered(change: Callable[[list[dict[str, Any]]], object]) -> Fault:
    """A valid answer with changed entries."""

    def answer(body: dict[str, Any]) -> Answer:
        code, headers, content = good(body)
        answer = json.loads(content)
        answer["data"].sort(key=lambda entry: entry["index"])
        change(answer["data"])
        return code, headers, json.dumps(answer).encode()

    return answer


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "asked for 2 vectors, got 0"),
        ([{"index": number, "embedding": [1]} for number in range(3)], "asked for 2 vectors, got 3"),
        ([{"index": 0, "embedding": [1]}] * 2, "expected the indexes 0 to 1, each exactly once"),
        ([{"index": "0", "embedding": [1]}] * 2, "Expected `int`, got `str`"),
        ([{"embedding": [1]}] * 2, "missing required field `index`"),
        ([{"index": 0}, {"index": 1, "embedding": [1]}], "missing required field `embedding`"),
        ([{"index": number, "embedding": "AAAAPw=="} for number in range(2)], "Expected `array`, got `str`"),
        ([{"index": number, "embedding": [10**400]} for number in range(2)], "Number out of range"),
        ([{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}], "inhomogeneous"),
    ],
)
def test_answer_without_the_requested_vectors_is_malformed(entries: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vectors_in(json.dumps({"data": entries}).encode(), 2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"data": []}', "asked for 3 vectors, got 0"),
        ('{"error": {"message": "model is loading"}}', "model is loading"),
        ("<html>\n<title>log in</title>" + "x" * 400, "<html> <title>log in</title>x"),
        ('{"data": [{"ind', '{"data": [{"ind'),
        ('{"data": ["a", "b", "c"]}', '{"data": ["a", "b", "c"]}'),
        ("", "it is empty"),
    ],
)
def test_malformed_answer_is_requested_only_twice(server: Server, body: str, message: str) -> None:
    encoder = patient(server)
    server.next = [saying(200, body)]
    assert abs(encoder.encode(["a", "b", "c"])[2] - HashEncoder().vector("c")).max() < 1e-6
    server.requests.clear()
    server.next = [saying(200, body)] * 20
    with pytest.raises(EndpointUnavailable) as failed:
        encoder.encode(["a", "b", "c"])
    assert message in str(failed.value)
    assert "failed 2 times. The last failure: unusable answer" in str(failed.value)
    assert len(str(failed.value)) < 500
    assert len(server.requests) == 2


def test_malformed_answers_are_counted_between_other_failures(server: Server) -> None:
    encoder = patient(server)
    server.requests.clear()
    odd = saying(200, "{}")
    server.next = [odd, status(503), odd, odd]
    with pytest.raises(EndpointUnavailable, match="failed 3 times"):
        encoder.encode(["a"])
    assert len(server.requests) == 3


def test_missing_vectors_are_traced_to_a_text_by_smaller_requests(server: Server, cache: VectorCache) -> None:
    def leaves_out(body: dict[str, Any]) -> Answer:
        code, headers, content = good({**body, "input": [text for text in body["input"] if text != texts[7]]})
        return code, headers, content

    texts = numbered(16)
    encoder = patient(server)
    server.requests.clear()
    server.next = [leaves_out] * 40
    items = list(vectors_for(stream(texts), encoder, cache))
    missing = [item for item in items if item.vector is None]
    assert len(missing) == 1
    assert "the endpoint left texts out: asked for 1 vector, got 0" in str(missing[0].problem)
    assert sum(len(request["input"]) for request in server.requests) <= 16 + 2 * 16 + 2


def test_endpoint_that_silently_takes_fewer_texts_gets_smaller_requests(server: Server) -> None:
    server.next = [good, *[altered(lambda entries: entries.__delitem__(slice(4, None)))] * 100]
    texts = numbered(16)
    vectors = patient(server).encode(texts)
    assert abs(vectors[15] - HashEncoder().vector(texts[15])).max() < 1e-6


def test_endpoint_without_a_vector_for_one_word_is_refused(server: Server) -> None:
    server.next = [altered(list.clear)] * 9
    with pytest.raises(EndpointDenied, match="asked for 1 vector, got 0"):
        patient(server)


# -- error messages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [429, 503])
def test_error_of_the_endpoint_is_quoted(server: Server, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr("chunksink.embeddings.connection._BACKOFF", wait_fixed(99))
    encoder = patient(server)
    server.next = [saying(code, "You exceeded your\ncurrent quota " + "x" * 400)] * 9
    with pytest.raises(EndpointUnavailable) as failed:
        encoder.encode(["a"])
    assert f"failed: status {code}: You exceeded your current quota xxx" in str(failed.value)
    assert len(str(failed.value)) < 450
    assert "asks to wait" not in str(failed.value)


def test_too_long_retry_after_is_reported_and_not_waited_for(server: Server) -> None:
    encoder = patient(server)
    server.next = [saying(429, "slow down", retry_after="86400")]
    started = time.monotonic()
    with pytest.raises(EndpointUnavailable, match="status 429: slow down; it asks to wait 86,400 s"):
        encoder.encode(["a"])
    assert time.monotonic() - started < 30, "it is not waited for"


def test_failure_without_retry_after_is_no_wait(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*_: object, **__: object) -> httpx.Response:
        raise httpx.ReadError("")

    encoder = patient(server)
    monkeypatch.setattr("chunksink.embeddings.connection._BACKOFF", wait_fixed(99))
    monkeypatch.setattr(httpx.AsyncClient, "send", breaks)
    with pytest.raises(EndpointUnavailable, match="ReadError: no complete answer"):
        encoder.encode(["a"])
