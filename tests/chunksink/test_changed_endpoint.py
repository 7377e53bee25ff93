"""Another model behind the same name at an endpoint is detected before vectors of two models are mixed."""

from collections.abc import Iterator

import numpy as np
import pytest

from chunksink.command_line.exits import Exit
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.probes import PROBES
from chunksink.rebuild.state import cache_file
from tests.chunksink.shell import Shell
from tests.embeddings.endpoint import Server, good, serve, status
from tests.embeddings.helpers import HashEncoder, tamper
from tests.support.bus import FEBRUARY, source
from tests.support.waiting import eventually

A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a crow")
LONGER_A = source("a.md", "a cat", "a mat", "a hat", version="2")


def other_model(vector: Vectors) -> Vectors:
    return np.roll(vector, 1)


def noise(vector: Vectors) -> Vectors:
    """Noise that leaves a cosine of 0.9995."""
    across = np.roll(vector, 1)
    across = across - (across @ vector) * vector
    return vector + across * np.float32(0.0316 / np.linalg.norm(across))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    with serve() as served:
        yield served


@pytest.fixture
def server(endpoint: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with the same address in all tests, so that a prepared index names it."""
    monkeypatch.setenv("CHUNKSINK_ENDPOINT", endpoint.url)
    monkeypatch.setenv("CHUNKSINK_MODEL", "hash-model")
    refuse = endpoint.refuse
    yield endpoint
    endpoint.alter, endpoint.refuse = None, refuse
    endpoint.next.clear()
    endpoint.requests.clear()


@pytest.fixture
def synced(shell: Shell, server: Server) -> Shell:
    shell.begin("probed", "sync", p1=[A, B])
    server.requests.clear()
    return shell


def cached(shell: Shell) -> dict[bytes, bytes]:
    with VectorCache.open(cache_file(shell.home), replace_damaged=False) as cache:
        return dict(cache.read("SELECT text_hash, vector FROM vector"))


def texts_of(server: Server) -> list[str]:
    return sorted(text for request in server.requests for text in request["input"])


@pytest.mark.parametrize("command", ["sync", "rebuild"])
def test_a_run_stops_before_it_mixes_vectors_of_two_models(command: str, synced: Shell, server: Server) -> None:
    before, live, vectors = synced.digests("--deep"), synced.live(), cached(synced)
    server.alter = other_model
    synced.commit("p2", C, at=FEBRUARY)
    for _ in range(2):
        ended = synced(command, "--json")
        assert ended.code == Exit.ENDPOINT_CHANGED
        error = ended.json["sinks"]["chroma"]["error"] if command == "sync" else ended.json["error"]["message"]
        assert "`chunksink rebuild --fresh-cache`" in error
    assert "a crow" not in texts_of(server)
    assert (cached(synced), synced.live()) == (vectors, live)
    found = synced("search", "a cat", "--mode", "keyword", "--json")
    assert (found.code, found.json["hits"][0]["text"]) == (Exit.OK, "a cat")
    assert f"the last {command} failed" in synced("status").out
    synced.commit("p2", at=FEBRUARY)
    assert synced("sync").code == Exit.OK
    assert synced.digests("--deep") == before


def test_a_rebuild_with_a_fresh_cache_takes_the_new_model(synced: Shell, server: Server) -> None:
    server.alter = other_model
    synced.commit("p2", C, at=FEBRUARY)
    assert synced("sync").code == Exit.ENDPOINT_CHANGED
    ended = synced("rebuild", "--fresh-cache", "--json")
    assert (ended.code, ended.json["embeddings"]["computed"]) == (Exit.OK, 4)
    expected = [
        other_model(HashEncoder().vector(text)) for text in [*PROBES.values(), "a cat", "a mat", "a boat", "a crow"]
    ]
    assert sorted(cached(synced).values()) == sorted(vector.tobytes() for vector in expected)
    synced.digests("--deep")
    synced.commit("p3", source("d.md", "a dog"), at=FEBRUARY)
    assert synced("sync").code == Exit.OK
    server.alter = None
    synced.commit("p4", source("e.md", "an eel"), at=FEBRUARY)
    assert synced("sync").code == Exit.ENDPOINT_CHANGED


def test_a_new_name_takes_the_new_model(synced: Shell, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.alter = other_model
    synced.commit("p2", C, at=FEBRUARY)
    monkeypatch.setenv("CHUNKSINK_MODEL", "hash-model:v2")
    before = synced.live().model_fingerprint
    assert synced("rebuild").code == Exit.OK
    assert synced.live().model_fingerprint != before
    synced.digests("--deep")


def test_interrupted_rebuild_keeps_the_probes_for_later_runs(synced: Shell, server: Server) -> None:
    """By then the first vectors of the new model are in the cache."""
    server.alter = other_model
    synced.commit("p2", *(source(f"{number}.md", f"text {number}") for number in range(200)), at=FEBRUARY)
    vectors = cached(synced)

    def changed(body: dict[str, object]) -> object:
        return good(body, alter=other_model)

    def denied(body: dict[str, object]) -> object:
        eventually(lambda: cached(synced) != vectors)  # the first answer is committed
        return status(401)(body)

    server.next = [changed, changed, *[denied] * 20]
    assert synced("rebuild", "--fresh-cache").code == Exit.ENGINE
    server.next.clear()
    assert cached(synced) != vectors
    assert synced("sync").code == Exit.ENDPOINT_CHANGED
    assert synced("rebuild", "--fresh-cache").code == Exit.OK
    synced.digests("--deep")


def test_unchanged_endpoint_with_noise_costs_one_request(synced: Shell, server: Server) -> None:
    server.alter = noise
    synced.commit("p2", C, at=FEBRUARY)
    assert synced("sync").code == Exit.OK
    probed, computed = (request["input"] for request in server.requests[1:])
    assert (set(probed), computed) == (set(PROBES.values()), ["a crow"])


def test_run_without_new_texts_sends_no_request(synced: Shell, server: Server) -> None:
    server.alter = other_model
    assert synced("sync").code == Exit.OK
    synced.commit("p1", B, source("copy.md", "a cat"), at=FEBRUARY)
    assert synced("sync").code == Exit.OK
    assert server.requests == []
    assert synced("rebuild").code == Exit.OK
    assert len(server.requests) == 1, "its first question, whose answer has the dimension"


@pytest.mark.parametrize("alter", [None, other_model])
def test_a_cache_without_probes_is_compared_by_texts_of_the_run(alter: object, synced: Shell, server: Server) -> None:
    for text_hash in PROBES:
        tamper(cache_file(synced.home), "DELETE FROM vector WHERE text_hash = ?", text_hash)
    server.alter = other_model if alter else None
    synced.commit("p1", LONGER_A, B, at=FEBRUARY)
    assert synced("sync").code == (Exit.ENDPOINT_CHANGED if alter else Exit.OK)
    assert server.requests[1]["input"] == ["a cat", "a mat"]
    assert (PROBES.keys() <= cached(synced).keys()) == (alter is None)


def test_refused_texts_do_not_hide_a_changed_endpoint(shell: Shell, server: Server) -> None:
    shell.commit("p1", A, source("refused.md", "refuse me"))
    assert shell("sync").code == Exit.REFUSED
    vectors, server.alter, server.refuse = cached(shell), other_model, "nothing"
    assert shell("sync").code == Exit.ENDPOINT_CHANGED
    assert cached(shell) == vectors


def test_gc_keeps_the_probes(synced: Shell) -> None:
    synced.commit("p1", B, at=FEBRUARY)
    ended = synced("cache", "gc", "--json")
    assert (ended.json["rows"], ended.json["kept_rows"]) == (2, 1)
    assert PROBES.keys() < cached(synced).keys()
    synced.commit("p1", C, at="2026-03-01T00:00:00Z")
    assert synced("cache", "gc").code == Exit.USAGE, "no chunk uses any vector: is it the right folder?"
