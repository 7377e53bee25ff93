"""The endpoint encoder against a real HTTP server on loopback: good answers, faults and refusals."""

import gzip
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.errors import EndpointDenied, EndpointUnavailable, TextRefused, WrongVectors
from chunksink.embeddings.lazy import LazyEncoder
from chunksink.embeddings.probes import PROBES
from chunksink.embeddings.settings import EncoderSettings, open_encoder, settled
from chunksink.embeddings.vectors import EmbedReport, vectors_for
from tests.embeddings.endpoint import Answer, Server, broken, connect, connect_to, good, status
from tests.embeddings.helpers import HashEncoder, numbered, stream


def test_vectors_from_many_requests_come_in_order(server: Server, cache: VectorCache) -> None:
    encoder = connect(server, batch_texts=7)
    texts = [*numbered(50), "", "😀", "\ud800 alone"]
    items = list(vectors_for(stream(texts), encoder, cache))
    for text, item in zip(texts, items, strict=True):
        assert item.vector is not None
        sent = text.replace("\ud800", "?")
        assert abs(item.vector - HashEncoder().vector(sent)).max() < 1e-6
    assert max(len(request["input"]) for request in server.requests) == 7
    assert encoder.info.precision == "float32"
    done = len(server.requests)
    assert all(item.cached for item in vectors_for(stream(texts), encoder, cache))
    assert len(server.requests) == done
    encoder.close()


def test_requests_are_limited_in_characters(server: Server) -> None:
    connect(server, batch_chars=100).encode(["x" * 40] * 10)
    assert max(sum(map(len, request["input"])) for request in server.requests) <= 100


@pytest.mark.parametrize(
    "fault",
    [
        status(429, retry_after="0"),
        status(500),
        status(503, retry_after="soon"),
        status(503, retry_after="nan"),
        lambda body: None,
    ],
)
def test_transient_failure_is_retried(server: Server, fault: Callable[[dict[str, Any]], Answer | None]) -> None:
    encoder = connect(server)
    server.next = [fault, fault]
    assert abs(encoder.encode(["a"])[0] - HashEncoder().vector("a")).max() < 1e-6


def test_an_index_whose_endpoint_is_away_names_its_address_and_the_remedy(server: Server) -> None:
    with closing(connect(server)) as encoder:
        lazy = LazyEncoder(encoder.info, lambda: connect(server, first_deadline_seconds=0.1))
    server.next = [status(500)] * 99
    with pytest.raises(EndpointUnavailable) as failed:
        lazy.load()
    assert server.url in str(failed.value) and "`chunksink rebuild`" in str(failed.value)


def test_server_that_stays_away_is_abandoned_at_the_deadline(server: Server, cache: VectorCache) -> None:
    encoder = connect(server, deadline_seconds=1.0, concurrency=1, batch_texts=1)
    server.next = [good, good, good, good, *[status(503)] * 100]  # two texts after the two probes
    started = time.monotonic()
    with pytest.raises(EndpointUnavailable, match=r"503|no answer in time"):
        list(vectors_for(stream(numbered(10)), encoder, cache))
    assert time.monotonic() - started < 20
    server.next = []
    server.requests.clear()
    list(vectors_for(stream(numbered(10)), encoder, cache))
    # An abandoned request may reach the server only now, so texts are compared, not counted.
    asked = {text for request in server.requests for text in request["input"]}
    assert asked == {*PROBES.values(), *numbered(10)[2:]}, "the two that came through were committed"


def test_missing_server_is_reported_as_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    started = time.monotonic()
    with pytest.raises(EndpointUnavailable, match=r"failed.*; is it running, and is the setting `endpoint`"):
        connect_to(url, first_deadline_seconds=1.5)
    assert time.monotonic() - started < 15


def test_answer_that_is_too_large_is_not_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def padded(body: dict[str, Any]) -> Answer:
        code, _, content = good(body)
        return code, {"content-encoding": "gzip"}, gzip.compress(content + b" " * 10**7)

    encoder = connect(server)
    server.next = [padded]
    assert len(encoder.encode(["a"])) == 1
    monkeypatch.setattr("chunksink.embeddings.connection._MAX_ANSWER_BYTES", 10**6)
    server.requests.clear()
    server.next = [padded, padded]
    with pytest.raises(EndpointUnavailable, match="1,000,000 bytes"):
        encoder.encode(["a"])
    assert len(server.requests) == 2


@pytest.mark.parametrize("code", [301, 401, 403, 404, 405])
def test_permanent_refusal_is_not_retried(server: Server, code: int) -> None:
    encoder = connect(server)
    server.requests.clear()
    server.next = [status(code, location="http://127.0.0.1:9/elsewhere")]
    with pytest.raises(EndpointDenied, match=str(code)):
        encoder.encode(["a", "b"])
    assert len(server.requests) == 1


def test_refused_text_does_not_affect_others(server: Server, cache: VectorCache) -> None:
    encoder = connect(server)
    texts = [*numbered(20), "refuse me", *(f"more {number}" for number in range(20))]
    items = list(vectors_for(stream(texts), encoder, cache))
    assert [item.key for item in items if item.vector is None] == [items[20].key]
    assert "status 400" in str(items[20].problem)
    with pytest.raises(TextRefused):
        encoder.encode(["refuse me"])


@pytest.mark.parametrize("spoilt", [b"NaN", b"null", b"1e999"])
def test_non_finite_vector_does_not_affect_others(server: Server, cache: VectorCache, spoilt: bytes) -> None:
    encoder = connect(server)

    def one_is_spoilt(body: dict[str, Any]) -> Answer:
        rows = [b"[" + b",".join([spoilt if number == 1 else b"1.0"] * 16) + b"]" for number in range(3)]
        entries = [b'{"index": %d, "embedding": %s}' % (number, row) for number, row in enumerate(rows)]
        return 200, {}, b'{"data": [' + b",".join(entries) + b"]}"

    server.next = [good, one_is_spoilt]
    items = list(vectors_for(stream(["a", "b", "c"]), encoder, cache))
    assert [item.vector is None for item in items] == [False, True, False]
    assert "not finite" in str(items[1].problem)


def test_model_that_changes_its_dimension_stops_the_run(server: Server, cache: VectorCache) -> None:
    encoder = connect(server)
    server.dimension = 8
    with pytest.raises(WrongVectors, match="8 dimensions instead of 16"):
        list(vectors_for(stream(["a"]), encoder, cache))


def test_shortened_vectors_are_requested(server: Server) -> None:
    encoder = connect(server, endpoint_dimensions=4)
    assert server.requests[0]["dimensions"] == 4, "asked before anything is sent"
    assert encoder.encode(["a"]).shape == (1, 4)
    assert encoder.info.fingerprint != connect(server).info.fingerprint


@pytest.mark.parametrize("dimensions", [None, 4])
def test_endpoint_that_refuses_everything_is_asked_once(server: Server, dimensions: int | None) -> None:
    server.refuse = ""
    with pytest.raises(EndpointDenied, match=r"are model and endpoint_dimensions right\?.*status 400"):
        connect(server, endpoint_dimensions=dimensions)
    assert len(server.requests) == 1


@pytest.mark.parametrize(("dimensions", "width"), [(4, 16), (4, 0), (None, 0)])
def test_unexpected_dimension_is_refused(server: Server, dimensions: int | None, width: int) -> None:
    server.next = [broken(width=width)]
    with pytest.raises(EndpointDenied, match=f"returns {width} dimensions"):
        connect(server, endpoint_dimensions=dimensions)


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_endpoint_that_starts_to_refuse_everything_is_abandoned(
    seconds: float, server: Server, cache: VectorCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the process has no time to notice it: requests in progress end by themselves."""

    def late(running: Any, **how: Any) -> Any:
        time.sleep(seconds)
        return wait(running, **how)

    monkeypatch.setattr("chunksink.embeddings.endpoint.wait", late)
    encoder = connect(server)
    server.refuse = ""
    report = EmbedReport()
    with pytest.raises(EndpointDenied, match="refuses even a single word"):
        list(vectors_for(stream(numbered(2000)), encoder, cache, report))
    assert len(server.requests) < 400
    assert report.refused == 0, "no text is reported as refused"


@pytest.mark.promise(7)
def test_refusal_counts_only_when_a_known_good_text_is_accepted(server: Server, cache: VectorCache) -> None:
    encoder, report = connect(server), EmbedReport()
    list(vectors_for(stream(["refuse this", "fine"]), encoder, cache, report))
    assert report.refused == 1
    server.refuse = ""  # an outage that looks like invalid texts
    with pytest.raises(EndpointDenied):
        list(vectors_for(stream(["one more"]), encoder, cache, EmbedReport()))


def test_many_refused_texts_do_not_block_the_others(server: Server, cache: VectorCache) -> None:
    """Also in a later run, which finds all others in the cache and requests only these."""
    texts = [f"refuse {number}" for number in range(150)]
    for _ in range(2):
        encoder, report = connect(server), EmbedReport()
        list(vectors_for(stream([*texts, "fine"]), encoder, cache, report))
        assert (report.refused, report.texts) == (150, 151)
        encoder.close()


def test_prompts_precede_passages_and_queries(server: Server) -> None:
    encoder = connect(server, query_prompt="query: ", passage_prompt="passage: ")
    encoder.encode(["a"])
    encoder.encode_queries(["b"])
    assert [request["input"] for request in server.requests[-2:]] == [["passage: a"], ["query: b"]]


def test_contexts_are_left_out_if_the_model_embeds_none(server: Server) -> None:
    for mode, expected in (("", "a"), ("title, headings", "Title\n\na")):
        encoder = connect(server, embed_context=mode)
        encoder.encode(["a"], ["Title"])
        assert server.requests[-1]["input"] == [expected]


def test_long_texts_are_windowed_or_cut_and_always_counted(server: Server, cache: VectorCache) -> None:
    windows = connect(server, max_length=10, batch_texts=3)
    cut = connect(server, max_length=10, long_texts="truncate")
    assert windows.info.fingerprint != cut.info.fingerprint
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


def test_long_texts_are_counted_by_default(server: Server, cache: VectorCache) -> None:
    settings = EncoderSettings("hash-model", endpoint=server.url)
    with closing(open_encoder(settings)) as encoder:
        assert encoder.info.max_length == 24_000
        report = EmbedReport()
        list(vectors_for(stream(["x" * 24_000, "y" * 48_001]), encoder, cache, report))
        assert report.over_length == 1
        assert [len(text) for text in server.requests[-1]["input"]] == [24_000, 16_000, 16_000, 16_001]
        again = settled(settings, encoder)
    assert again.max_length == 24_000, "a build keeps its own despite a new default"
    with closing(open_encoder(again)) as same:
        assert same.info.fingerprint == encoder.info.fingerprint


def test_encoder_may_be_closed_twice_and_used_again(server: Server) -> None:
    before = set(threading.enumerate())
    with closing(connect(server)) as encoder:
        encoder.close()
        encoder.close()
        assert encoder.encode(["a"]).shape == (1, 16)
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "chunksink-endpoint"]


def test_probes_are_embedded_once_per_report(server: Server, cache: VectorCache) -> None:
    encoder = connect(server)
    for run in ("first", "second"):
        report = EmbedReport()
        server.requests.clear()
        for part in ("one", "two"):
            list(
                vectors_for(
                    stream(f"{run} {part} {number}" for number in range(9)), encoder, cache, report, slice_texts=3
                )
            )
        asked = [text for request in server.requests for text in request["input"]]
        assert [asked.count(probe) for probe in PROBES.values()] == [1, 1]
        assert report.encoded == 18
