"""Sinks by name: ours, another package's, and names and options that are none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from chunksink.settings.config import ConfigError, load_config
from chunksink.settings.sink_tables import sink_names
from chunksink.sinks.chroma import ChromaSink
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.jsonl import JsonlSink
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.registry import open_sink
from tests.conftest import ROOT


def test_ours_are_entry_points_like_any_other(tmp_path: Path) -> None:
    kinds = {"chroma": ChromaSink, "fts": FtsSink, "jsonl": JsonlSink, "meilisearch": MeilisearchSink}
    assert set(sink_names()) >= set(kinds)
    for name, kind in kinds.items():
        sink = open_sink(name, tmp_path, {})
        assert isinstance(sink, kind)
        assert sink.name == name
        sink.close()
    assert list(tmp_path.iterdir()) == [], "an engine is asked nothing before it is used"


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("nope", {}, "installed are: chroma, fts"),
        ("fts", {"foldr": "x"}, "there are: folder"),
        ("meilisearch", {"vectors": "perhaps"}, "vectors"),
        ("meilisearch", {"url": "localhost:7700"}, "http://HOST:PORT"),
        ("meilisearch", {"index": "a b"}, "index"),
        ("meilisearch", {"settings_file": "/nowhere/at/all.json"}, "/nowhere/at/all.json"),
        ("chroma", {"url": "http://x", "folder": "y"}, "not both"),
        ("chroma", {"url": "ftp://x"}, "no address of a Chroma server"),
        ("chroma", {"url": "http://x", "token_variable": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE"),
        ("jsonl", {"folder": 3}, "folder"),
    ],
)
def test_what_cannot_be_opened_says_why(name: str, options: dict[str, object], told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        open_sink(name, tmp_path, options)


@pytest.mark.parametrize("key", ["canary-one\ncanary-two", "canary key", "canary-schlüssel", "canary\x00"])
def test_a_key_that_is_none_is_told_without_it(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "\x00" in key:
        monkeypatch.setattr("os.environ", {"MEILI_MASTER_KEY": key})  # no process can be given such a one
    else:
        monkeypatch.setenv("MEILI_MASTER_KEY", key)
    with pytest.raises(ConfigError, match="MEILI_MASTER_KEY holds something that is no key") as caught:
        open_sink("meilisearch", tmp_path, {})
    assert "canary" not in str(caught.value)


def test_options_come_from_the_file_and_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the root of the project has index settings, which would be told apart
    file = tmp_path / "chunksink.toml"
    file.write_text('sinks = ["meilisearch"]\n[sink.meilisearch]\nurl = "http://a:1"\nvectors = true\n')
    environment = {
        "CHUNKSINK_SINK_MEILISEARCH_URL": "http://b:2",
        "CHUNKSINK_SINK_MEILISEARCH_KEY_VARIABLE": "K",
        "CHUNKSINK_SINKS": "meilisearch, jsonl",
    }
    config = load_config({}, environment, file)
    assert config.sinks == ("meilisearch", "jsonl")
    assert config.sink["meilisearch"] == {"url": "http://b:2", "vectors": True, "key_variable": "K"}
    assert load_config({"sinks": ("fts",)}, environment, file).sinks == ("fts",)


@pytest.mark.parametrize("toml", ["sinks = []", "sinks = 3", 'sink = "fts"', "[sink]\nfts = 3", 'sinks = [""]'])
def test_a_configuration_of_sinks_that_is_none(toml: str, tmp_path: Path) -> None:
    file = tmp_path / "chunksink.toml"
    file.write_text(toml)
    with pytest.raises(ConfigError, match="`sink"):
        load_config({}, {"CHUNKSINK_SINK_FTS_FOLDER": "x"}, file)


def test_another_package_brings_a_sink(tmp_path: Path) -> None:
    """As pip would install it: a module, and an entry point in its metadata."""
    (tmp_path / "paper.py").write_text(
        "from chunksink.sinks.memory import MemorySink\n"
        "class Paper(MemorySink):\n    name = 'paper'\n"
        "def open_sink(home, options):\n    return Paper(wants_vectors=options['vectors'])\n"
    )
    metadata = tmp_path / "paper-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: paper\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[chunksink.sinks]\npaper = paper:open_sink\nbroken = paper:nothing\n")
    program = (
        "import json, sys; from pathlib import Path; from chunksink.sinks.registry import open_sink\n"
        "from chunksink.settings.sink_tables import sink_names\n"
        "from chunksink.settings.config import ConfigError\n"
        "sink = open_sink('paper', Path('.'), {'vectors': False})\n"
        "try:\n    open_sink('broken', Path('.'), {})\nexcept ConfigError as error:\n    told = str(error)\n"
        "print(json.dumps([sink.name, sink.wants_vectors, 'paper' in sink_names(), told]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    name, wants_vectors, listed, told = json.loads(done.stdout)
    assert (name, wants_vectors, listed) == ("paper", False, True)
    assert "the sink broken cannot be loaded" in told
