"""Where MEILI_URL alone decided over the sinks, whoever misses a sink hears of it."""

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.support.bus import source

NOBODY = "http://127.0.0.1:1"
WHY = "the sinks are meilisearch and chroma because MEILI_URL is set and no setting names them"


@pytest.fixture
def synced(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """An index in fts and chroma, and then the variable."""
    shell.begin("before the variable", "sync", p1=[source("a.md", "a cat")])
    monkeypatch.setenv("MEILI_URL", NOBODY)
    return shell


def test_status(synced: Shell) -> None:
    out = synced("status").out
    assert "fts is not configured any more" in out
    assert WHY in out


def test_verify(synced: Shell) -> None:
    ended = synced("verify")
    assert ended.code == Exit.ENGINE
    assert "fts is not configured any more" in ended.err
    assert WHY in ended.err


def test_sync(synced: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_PATIENCE", "0.5")
    ended = synced("sync")
    assert ended.code == Exit.ENGINE
    assert WHY in ended.err


@pytest.mark.parametrize("command", ["status", "verify", "doctor", "sync"])
def test_where_a_setting_names_the_sinks_it_is_not_to_blame(
    command: str, synced: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "chroma")
    ended = synced(command)
    assert WHY not in ended.out + ended.err
