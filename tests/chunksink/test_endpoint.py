"""Endpoints that fail, that require another key, or that have moved."""

from collections.abc import Iterator

import pytest

from chunksink.command_line.exits import Exit
from chunksink.embeddings.connection import RequestLimits
from chunksink.rebuild.executor import EMBEDDED_AT_ONCE
from tests.chunksink.shell import Shell
from tests.embeddings.endpoint import Server, good, serve, status
from tests.support.bus import FEBRUARY, source

A, B, C = source("a.md", "a cat"), source("b.md", "a boat"), source("c.md", "a crow")


@pytest.fixture
def server(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The endpoint of an index in fts and Chroma."""
    with serve() as served:
        monkeypatch.setenv("CHUNKSINK_ENDPOINT", served.url)
        monkeypatch.setenv("CHUNKSINK_MODEL", "hash-model")
        monkeypatch.setenv("KEY_ONE", "one")
        monkeypatch.setenv("KEY_TWO", "two")
        shell.synced(p1=[A])
        yield served


def test_a_failing_endpoint_does_not_stop_sinks_without_vectors(shell: Shell, server: Server) -> None:
    shell.commit("p2", B, at=FEBRUARY)
    server.next = [status(401)] * 2
    ended = shell("sync", "--json")
    assert (ended.code, ended.json["status"]) == (Exit.ENGINE, "failed")
    assert [bool(ended.json["sinks"][name]["error"]) for name in ("fts", "chroma")] == [False, True]
    assert ended.json["sinks"]["fts"]["families"]["added"] == 1
    assert (shell.texts(), shell.texts("chroma")) == (["a boat", "a cat"], ["a cat"])
    assert not shell("status", "--json").json["current"]
    server.next.clear()
    ended = shell("sync", "--json")
    assert (ended.code, ended.json["sinks"]["chroma"]["written"], ended.json["sinks"]["fts"]["written"]) == (0, 1, 0)
    shell.digests("--deep")


def test_an_endpoint_that_fails_midway_leaves_what_was_written_before(shell: Shell, server: Server) -> None:
    sources = [source(f"{number}.md", f"text {number}") for number in range(600)]
    shell.commit("p2", *sources, at=FEBRUARY)
    first_batch = 2 + EMBEDDED_AT_ONCE // RequestLimits().batch_texts  # after the dimension and the fixed texts
    server.next = [*[good] * first_batch, *[status(401)] * 2]
    ended = shell("sync", "--json")
    assert (ended.code, ended.json["families"]["added"]) == (Exit.ENGINE, 600)
    added = {name: sink["families"]["added"] for name, sink in ended.json["sinks"].items()}
    assert added == {"fts": 600, "chroma": EMBEDDED_AT_ONCE}
    server.next.clear()
    ended = shell("sync", "--json")
    written = {name: sink["written"] for name, sink in ended.json["sinks"].items()}
    assert (ended.code, written) == (Exit.OK, {"fts": 0, "chroma": 600 - EMBEDDED_AT_ONCE})
    shell.digests("--deep")


def test_a_failing_endpoint_ends_a_sync_in_which_every_sink_needs_vectors(
    shell: Shell, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "chroma")
    shell.commit("p2", B, at=FEBRUARY)
    server.next = [status(401)]
    ended = shell("sync", "--json")
    assert (ended.code, ended.json["error"]["exit_code"]) == (Exit.ENGINE, Exit.ENGINE)


def test_a_new_sink_with_vectors_does_not_stop_the_others_if_the_endpoint_fails(
    shell: Shell, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    assert shell("rebuild").code == Exit.OK
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma")
    shell.commit("p2", B, at=FEBRUARY)
    server.next = [status(401)]
    ended = shell("sync", "--json")
    assert (ended.code, ended.json["status"]) == (Exit.ENGINE, "failed")
    assert [bool(ended.json["sinks"][name]["error"]) for name in ("fts", "chroma")] == [False, True]
    assert shell.texts() == ["a boat", "a cat"]


def test_a_new_key_variable_counts_at_once(shell: Shell, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (variable, key) in enumerate([("KEY_ONE", "one"), ("KEY_TWO", "two")]):
        monkeypatch.setenv("CHUNKSINK_ENDPOINT_KEY_VARIABLE", variable)
        server.keys.clear()
        shell.commit("p2", source("b.md", f"boat {number}"), at=f"2026-0{number + 2}-01T00:00:00Z")
        ended = shell("sync", "--json")
        assert (ended.code, ended.json["rebuild_due"]) == (Exit.OK, None)
        assert set(server.keys) == {f"Bearer {key}"}
        server.keys.clear()
        assert shell("search", "a crow", "--mode", "semantic").code == Exit.OK
        assert set(server.keys) == {f"Bearer {key}"}


def test_a_key_is_not_sent_to_the_former_endpoint(
    shell: Shell, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_ENDPOINT", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("CHUNKSINK_ENDPOINT_KEY_VARIABLE", "KEY_ONE")
    shell.commit("p2", B, at=FEBRUARY)
    server.keys.clear()
    ended = shell("sync", "--json")
    assert (ended.code, bool(ended.json["rebuild_due"])) == (Exit.OK, True)
    assert shell("search", "a crow", "--mode", "semantic").code == Exit.OK
    assert set(server.keys) == {None}
