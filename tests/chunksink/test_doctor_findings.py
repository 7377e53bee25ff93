"""What `chunksink doctor` finds in an environment that looks sound at first sight, and the remedies that it names."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import meilisearch
import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.doctor.check import Problem
from chunksink.doctor.machine import configuration
from chunksink.exits import Exit
from chunksink.settings.config import Config
from chunksink.settings.index_settings import find_settings_file
from chunksink.sinks.registry import open_sink
from tests.chunksink.shell import Shell
from tests.chunksink.test_doctor_command import amiss
from tests.embeddings.endpoint import serve
from tests.engines.servers import MeilisearchServer
from tests.rebuild.support import source


@pytest.fixture
def built(shell: Shell) -> Shell:
    """An index in both embedded engines, of three partitions."""
    for name in ("a", "b", "c"):
        shell.commit(name, source(f"{name}.md", f"a cat of {name}"))
    assert shell("sync").code == Exit.OK
    return shell


def checks(shell: Shell, code: Exit = Exit.ENGINE) -> dict[str, dict[str, str]]:
    ended = shell("doctor", "--json")
    assert ended.code == code, ended.out
    return {check["name"]: check for check in json.loads(ended.out)}


def test_all_is_there(built: Shell) -> None:
    before = built.files()
    found = checks(built, Exit.OK)
    assert amiss(found) == {}
    assert found["chunks"]["found"] == (
        "chunks: partitions 3, their files are there; that is a quick look, `chunksink validate` reads every line"
    )
    assert {found[f"live in {name}"]["verdict"] for name in ("fts", "chroma")} == {"ok"}
    assert built.files() == before


def test_partitions_that_are_gone(built: Shell) -> None:
    for key in ("a", "c"):
        built.remove(key)
    found = checks(built)
    assert amiss(found) == {"partitions": "fail"}
    assert found["partitions"]["found"] == "missing: a, c"
    assert "`chunksink retire-partition KEY`" in found["partitions"]["remedy"]


def test_partitions_that_are_not_whole(built: Shell) -> None:
    built.cut_off("a")
    built.root.chunks_file("b").unlink()
    built.root.manifest_file("c").unlink()
    built.commit("d", source("d.md", "a dog"))
    built.root.chunks_file("d").write_bytes(b"")
    built.commit("e", source("e.md", "an emu"))
    found = checks(built)
    assert amiss(found) == {"chunks": "fail"}
    assert found["chunks"]["found"].endswith(
        "partitions 5, 4 of them not whole: a (its last line is cut off), b (its chunks file is missing), "
        "c (its manifest is missing) and 1 more"
    )


def test_a_last_line_without_its_line_break_is_whole(built: Shell) -> None:
    file = built.root.chunks_file("a")
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    assert checks(built, Exit.OK)["chunks"]["verdict"] == "ok"


@pytest.mark.parametrize("sink", ["fts", "chroma"])
def test_a_live_build_that_was_deleted(sink: str, built: Shell) -> None:
    opened = open_sink(sink, built.home, {})
    opened.drop(built.live().builds[sink])
    opened.close()
    found = checks(built)
    assert amiss(found) == {f"live in {sink}": "fail"}
    assert "is gone" in found[f"live in {sink}"]["found"]
    assert built("sync").code == Exit.OK  # the remedy that is named
    assert amiss(checks(built, Exit.OK)) == {}


def test_a_live_build_that_cannot_be_read(built: Shell) -> None:
    file = Path(built("endpoints", "--json").json["sinks"]["fts"]["path"])
    file.write_bytes(b"no database\n" * 1000)
    found = checks(built)
    assert amiss(found) == {"live in fts": "fail"}
    assert built("verify", "--repair").code == Exit.OK
    assert amiss(checks(built, Exit.OK)) == {}


def test_a_sink_that_is_new(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    found = checks(built, Exit.OK)
    assert found["live in jsonl"]["found"] == "no build yet; `chunksink sync` makes it"


@pytest.mark.parametrize(
    ("toml", "variable", "told"),
    [
        ("[sink.jsonl]\nfoldr = 'x'\n", "", "unknown field `foldr`; there are: folder"),
        ("[sink.jsonl]\nfolder = 5\n", "", "there are: folder"),
        ("", "CHUNKSINK_SINK_JSONL_FOLDR", "unknown field `foldr`; there are: folder"),
        ("", "CHUNKSINK_SINK_JSNOL_FOLDER", "there is no sink 'jsnol'; installed are: chroma, fts, jsonl"),
    ],
)
def test_options_of_a_sink_that_is_not_in_use(
    toml: str, variable: str, told: str, built: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hinder no run now."""
    (built.folder / "chunksink.toml").write_text(toml)
    if variable:
        monkeypatch.setenv(variable, "x")
    found = checks(built, Exit.OK)
    name = "options of jsnol" if "JSNOL" in variable else "options of jsonl"
    assert amiss(found) == {name: "warn"}
    assert told in found[name]["found"]
    assert built("sync").code == Exit.OK


def test_sound_options_of_a_sink_that_is_not_in_use_are_nothing_to_tell(built: Shell) -> None:
    (built.folder / "chunksink.toml").write_text("[sink.jsonl]\nfolder = 'x'\n")
    found = checks(built, Exit.OK)
    assert (amiss(found), "options of jsonl" in found) == ({}, False)


def test_a_table_of_no_sink(built: Shell) -> None:
    (built.folder / "chunksink.toml").write_text("[sink.chorma]\nfolder = 'x'\n")
    found = checks(built)
    assert amiss(found) == {"configuration": "fail"}
    assert "[sink.chorma] is of no sink, chroma is the nearest" in found["configuration"]["found"]
    ended = built("sync")
    assert (ended.code, "[sink.chorma] is of no sink" in ended.err) == (Exit.USAGE, True)


def test_a_home_whose_id_is_gone(built: Shell) -> None:
    file = built.home / "home.id"
    was = file.read_text()
    file.unlink()
    found = checks(built)
    assert amiss(found) == {"index": "fail"}
    assert "home.id is gone" in found["index"]["found"]
    assert not file.exists()
    assert built("status").code == Exit.OK  # which makes another id
    found = checks(built)
    assert amiss(found) == {"live in fts": "fail", "live in chroma": "fail"}
    assert was in found["live in fts"]["found"]
    assert built("sync", "--adopt").code == Exit.OK
    assert amiss(checks(built, Exit.OK)) == {}


def test_a_home_whose_id_is_empty(built: Shell) -> None:
    file = built.home / "home.id"
    was = file.read_text()
    file.write_text("")
    found = checks(built)
    assert amiss(found) == {"index": "fail", "live in fts": "fail", "live in chroma": "fail"}
    assert was in found["live in fts"]["found"]
    file.write_text(was)
    assert amiss(checks(built, Exit.OK)) == {}


def test_variables_are_named_and_their_values_are_not(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(built, Exit.OK)["configuration"]["found"] == "no chunksink.toml: everything by default"
    monkeypatch.setenv("CHUNKSINK_PATIENCE", "77.25")
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    found = checks(built, Exit.OK)
    assert found["configuration"]["found"] == (
        "no chunksink.toml; the environment sets CHUNKSINK_PATIENCE, CHUNKSINK_SINKS"
    )
    assert "77.25" not in json.dumps(found)
    (built.folder / "chunksink.toml").write_text("patience = 60\n")
    assert checks(built, Exit.OK)["configuration"]["found"].startswith("chunksink.toml can be read; the environment")


@pytest.mark.parametrize(("key", "code"), [(None, Exit.ENGINE), ("to p-secret", Exit.ENGINE), ("top-secret", Exit.OK)])
def test_the_key_of_an_endpoint_is_looked_for_and_never_shown(
    key: str | None, code: Exit, built: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_ENDPOINT_KEY_VARIABLE", "MY_KEY")
    if key is not None:
        monkeypatch.setenv("MY_KEY", key)
    with serve() as server:
        monkeypatch.setenv("CHUNKSINK_ENDPOINT", server.url)
        found = checks(built, code)
        assert server.requests == []
    assert amiss(found) == ({"endpoint": "fail"} if code else {})
    assert "MY_KEY" in found["endpoint"]["found"]
    assert "secret" not in json.dumps(found)


def test_an_endpoint_that_nobody_answers_at(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunksink.doctor.machine.ENDPOINT_SECONDS", 0.5)
    with serve() as server:
        pass
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for url in (server.url, f"http://127.0.0.1:{silent.getsockname()[1]}/v1"):
            monkeypatch.setenv("CHUNKSINK_ENDPOINT", url)
            found = checks(built)
            assert amiss(found) == {"endpoint": "fail"}
            assert f"{url} does not answer: " in found["endpoint"]["found"]


@pytest.mark.parametrize(
    ("variable", "value"), [("SSL_CERT_FILE", "nowhere.pem"), ("ALL_PROXY", "strange://127.0.0.1:1")]
)
def test_an_environment_that_no_endpoint_can_be_asked_from(
    variable: str, value: str, built: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_ENDPOINT", "https://192.0.2.1/v1")
    monkeypatch.setenv(variable, value)
    found = checks(built)
    assert amiss(found) == {"endpoint": "fail"}
    assert variable in found["endpoint"]["found"]


def test_a_settings_file_that_cannot_be_used(
    built: Shell, meilisearch_server: MeilisearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEILI_URL", meilisearch_server.url)
    monkeypatch.setenv("MEILI_MASTER_KEY", meilisearch_server.key)
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_INDEX", "findings")
    file = built.folder / "meilisearch-settings.json"
    sound = json.loads(find_settings_file(None).read_text())
    wrong = sound | {"rankingRulez": [], "typoTolerance": {"enabeld": True}}
    file.write_text("{ no JSON")
    found = checks(built)
    assert amiss(found) == {"sink meilisearch": "fail"}
    assert found["sink meilisearch"]["remedy"] == "correct that file"
    file.write_text(json.dumps(wrong))
    assert "typoTolerance.enabeld" in checks(built)["settings of meilisearch"]["found"]  # before there is an index
    file.write_text(json.dumps(sound))
    assert built("sync").code == Exit.OK
    assert amiss(checks(built, Exit.OK)) == {}
    server = meilisearch.Client(meilisearch_server.url, meilisearch_server.key)
    server.wait_for_task(server.index("findings").reset_embedders().task_uid)
    found = checks(built, Exit.OK)
    assert amiss(found) == {"settings of meilisearch": "warn"}
    assert found["settings of meilisearch"]["found"].endswith(": embedders")
    assert built("sync").code == Exit.OK
    assert amiss(checks(built, Exit.OK)) == {}
    file.write_text(json.dumps(wrong))
    found = checks(built)
    assert amiss(found) == {"settings of meilisearch": "fail"}
    assert "sets rankingRulez, typoTolerance.enabeld, which" in found["settings of meilisearch"]["found"]
    assert built("sync").code == Exit.ENGINE  # so Meilisearch does refuse it


def test_partitions_of_an_empty_bus_are_whole(shell: Shell) -> None:
    root = BusRoot(shell.folder / "chunks")
    shell.commit("none")
    assert root.chunks_file("none").stat().st_size == 0
    assert checks(shell, Exit.OK)["chunks"]["verdict"] == "ok"


def test_a_variable_that_is_no_setting_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_MODLE", "x")
    with pytest.raises(Problem, match="no setting is called CHUNKSINK_MODLE") as found:
        configuration(Config(), tmp_path / "chunksink.toml")
    assert found.value.verdict == "warn"
