"""`chunksink doctor` finds what a run would stumble over, and says what to do."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.cli import run
from chunksink.doctor import machine
from chunksink.exits import Exit
from chunksink.rebuild.locks import writing
from tests.engines.servers import ChromaServer, MeilisearchServer
from tests.rebuild.engines import fts
from tests.rebuild.support import Home, commit, source


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A folder with chunks and an index, without any configuration; the model is the one that came as a package."""
    for name in [name for name in os.environ if name.startswith(("CHUNKSINK_", "MEILI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / ".chunksink", BusRoot(tmp_path / "chunks"), fts)
    commit(home.root, "p1", source("a.md", "a cat"))
    home.rebuild()
    return home


def checks(capsys: pytest.CaptureFixture[str], code: Exit = Exit.OK) -> dict[str, dict[str, Any]]:
    assert run(["doctor", "--json"]) == code
    out = capsys.readouterr().out
    return {check["name"]: check for check in json.loads(out)}


def amiss(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What is not ok; each such check has a remedy."""
    wrong = {name: check for name, check in found.items() if check["verdict"] != "ok"}
    assert all(check["remedy"] for check in wrong.values())
    return {name: check["verdict"] for name, check in wrong.items() if name != "disk"}


def test_where_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    found = checks(capsys)
    assert amiss(found) == {}
    assert {"python", "sqlite", "configuration", "chunks", "home", "disk", "index", "locks"} <= set(found)
    assert {"sink fts", "sink chroma", "model", "cache"} <= set(found)
    assert sqlite3.sqlite_version in found["sink fts"]["found"]
    assert "chromadb" in found["sink chroma"]["found"]
    assert "all-MiniLM-L6-v2 is here" in found["model"]["found"]


def test_for_people_a_line_each_and_the_remedy_below(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(home.root.path)
    assert run(["doctor"]) == Exit.ENGINE
    lines = capsys.readouterr().out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("fail  chunks "))
    assert "`chunksink ingest` makes chunks" in lines[place + 1]


def test_on_a_new_machine_nothing_is_made(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(home.folder)
    assert amiss(checks(capsys)) == {}
    assert not home.folder.exists()


def test_no_chunks_any_more(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(home.root.path)
    home.root.canonical.mkdir(parents=True)
    assert amiss(checks(capsys, Exit.ENGINE)) == {"chunks": "warn", "partitions": "fail"}
    home.folder.rename(home.folder.with_name("another"))  # of an index that there is not yet nothing is missed
    assert amiss(checks(capsys)) == {"chunks": "warn"}


def test_a_configuration_that_cannot_be_read_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "chunksink.toml").write_text("modle = 'x'\n")
    found = checks(capsys, Exit.ENGINE)
    assert list(found) == ["python", "sqlite", "configuration"]
    assert "modle" in found["configuration"]["found"]


def test_little_room(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(machine, "LEAST_FREE_BYTES", 10**18)
    assert checks(capsys)["disk"]["verdict"] == "warn"


def test_another_writer(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with writing(home.folder):
        assert amiss(checks(capsys)) == {"locks": "warn"}


def test_records_and_cache_that_are_damaged(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("state.db", "vectors.db"):
        for file in home.folder.glob(f"{name}*"):
            file.unlink()
        (home.folder / name).write_bytes(b"no database " * 1000)
    found = checks(capsys, Exit.ENGINE)
    assert amiss(found) == {"index": "fail", "cache": "fail"}
    assert "move the file away" in found["cache"]["found"]
    assert "--repair" not in found["cache"]["remedy"]  # which refuses what never was a cache


def test_records_on_a_full_disk_are_not_to_be_moved_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_home: Path) -> None:
        raise OSError(errno.EIO, "cannot be written (disk I/O error), make room")

    monkeypatch.setattr("chunksink.rebuild.state.State.existing", full)
    index = checks(capsys, Exit.ENGINE)["index"]
    assert index["verdict"] == "fail"
    assert "make room" in index["remedy"]
    assert "move" not in index["remedy"]


def test_a_home_that_cannot_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CHUNKSINK_HOME", str(tmp_path / "file" / "home"))
    assert checks(capsys, Exit.ENGINE)["home"]["verdict"] == "fail"


def test_sinks_that_are_not_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,meilisearch,nonsense")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", "http://127.0.0.1:9")
    found = checks(capsys, Exit.ENGINE)
    assert amiss(found) == {"sink meilisearch": "fail", "sink nonsense": "fail"}
    assert "http://127.0.0.1:9" in found["sink meilisearch"]["found"]
    assert "installed are:" in found["sink nonsense"]["found"]


@pytest.mark.parametrize("model", ["./nowhere", "nobody/nothing"])
def test_a_model_that_is_not_here(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHUNKSINK_MODEL", model)
    assert amiss(checks(capsys, Exit.ENGINE)) == {"model": "fail"}


def test_a_model_without_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    monkeypatch.setenv("CHUNKSINK_MODEL", "./model")
    found = checks(capsys, Exit.ENGINE)
    assert amiss(found) == {"model": "fail"}
    assert "no weights in" in found["model"]["found"]


def test_a_real_meilisearch_its_version_and_its_key(
    meilisearch_server: MeilisearchServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_INDEX", "doctor")
    monkeypatch.setenv("MEILI_URL", meilisearch_server.url)
    monkeypatch.setenv("MEILI_MASTER_KEY", meilisearch_server.key)
    found = checks(capsys)
    assert amiss(found) == {}
    assert found["settings of meilisearch"]["found"] == "no live index yet"
    monkeypatch.setenv("MEILI_MASTER_KEY", "wrong-key-0123456789")
    found = checks(capsys, Exit.ENGINE)
    assert amiss(found) == {"sink meilisearch": "fail"}
    assert "wrong-key" not in json.dumps(found)


def test_a_real_chroma_server(
    chroma_server: ChromaServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "chroma")
    monkeypatch.setenv("CHUNKSINK_SINK_CHROMA_URL", chroma_server.url)
    found = checks(capsys)
    assert amiss(found) == {}
    assert f"at {chroma_server.url}" in found["sink chroma"]["found"]
