"""`chunksink endpoints` names the live builds so that other programs find them."""

import sqlite3
from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.sinks.jsonl import JsonlSink
from chunksink.sinks.registry import open_sink
from tests.chunksink.shell import Shell
from tests.support.bus import commit, source
from tests.support.home import Home
from tests.support.local_engines import fts


@pytest.fixture
def home(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    home = Home(shell.home, shell.root, fts, lambda home: JsonlSink(home / "jsonl"))
    commit(home.root, "p1", source("a.md", "a cat", "a mat"))
    home.rebuild()
    return home


def test_endpoints_name_builds_that_can_be_opened(home: Home, shell: Shell) -> None:
    found = shell("endpoints", "--json").json
    live = home.live()
    assert found["generation"] == live.id
    assert found["model"] is None, "none of them holds vectors"
    assert {name: sink["build"] for name, sink in found["sinks"].items()} == live.builds
    db = sqlite3.connect(found["sinks"]["fts"]["path"])
    assert sorted(text for (text,) in db.execute("select text from documents")) == ["a cat", "a mat"]
    db.close()
    folder, link = (Path(found["sinks"]["jsonl"][name]) for name in ("folder", "link"))
    assert folder.is_absolute() and link.resolve() == folder.resolve()
    lines = [orjson.loads(line) for file in folder.rglob("*.jsonl") for line in file.read_bytes().splitlines()]
    assert sorted(line["text"] for line in lines) == ["a cat", "a mat"]


@pytest.mark.usefixtures("home")
def test_sink_that_is_no_longer_configured_is_left_out(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    monkeypatch.setenv("CHUNKSINK_SINK_JSONL_FOLDR", "a misspelt option of an unused sink")
    assert list(shell("endpoints", "--json").json["sinks"]) == ["fts"]


@pytest.mark.parametrize(
    ("name", "options", "address"),
    [
        ("chroma", {}, {"path": "HOME/chroma/b1", "collection": "chunks"}),
        ("chroma", {"url": "http://127.0.0.1:8000"}, {"url": "http://127.0.0.1:8000", "collection": "chunksink-b1"}),
        ("meilisearch", {"index": "books"}, {"url": "http://127.0.0.1:7700", "index": "books"}),
    ],
)
def test_address_of_a_build_needs_no_call(
    name: str, options: dict[str, Any], address: dict[str, str], tmp_path: Path
) -> None:
    sink: Any = open_sink(name, tmp_path, options)
    assert sink.address("b1") == {part: value.replace("HOME", str(tmp_path)) for part, value in address.items()}
    sink.close()
