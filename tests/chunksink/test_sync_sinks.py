"""Syncs with new, former and unreachable sinks, and with changed models."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import chunksink
from chunksink.chunkbus.store import write_transaction
from chunksink.command_line.exits import Exit
from chunksink.rebuild.locks import RebuildLock
from chunksink.rebuild.state import State
from chunksink.settings.errors import ConfigError
from chunksink.sinks import jsonl
from chunksink.sinks.errors import Unreachable
from chunksink.sinks.jsonl import JsonlBuild
from tests.chunksink.shell import Models, Shell
from tests.conftest import ROOT
from tests.engines.servers import MeilisearchServer
from tests.support.bus import source

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")
ALL = ["a boat", "a cat", "a mat"]


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nothing listens during the test."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def meilisearch(public_index: Any, meilisearch_server: MeilisearchServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a Meilisearch. The sinks are meilisearch and fts."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch,fts")
    monkeypatch.setenv("CHUNKSINK_PATIENCE", "0.5")
    return meilisearch_server.url


def test_sync_with_an_unreachable_engine_updates_the_others(
    meilisearch: str, nobody: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.synced(p1=[A])
    shell.commit("p2", B)
    monkeypatch.setenv("MEILI_URL", nobody)
    ended = shell("sync")
    assert ended.code == Exit.ENGINE
    assert "synced fts: 1 source added, 1 source unchanged (1 chunk written)" in ended.out
    assert "meilisearch is not up to date: " in ended.err
    assert shell.texts() == ["a boat", "a cat", "a mat"]
    report = shell("sync", "--json").json
    assert report["status"] == "failed"
    assert [bool(sink["error"]) for sink in report["sinks"].values()] == [True, False]
    monkeypatch.setenv("MEILI_URL", meilisearch)
    ended = shell("sync", "--json")
    assert (ended.code, [sink["written"] for sink in ended.json["sinks"].values()]) == (Exit.OK, [1, 0])
    assert shell("verify").code == Exit.OK


def test_sync_with_an_engine_that_is_unreachable_when_opened_updates_the_others(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sinks of other packages may connect in `open_sink`."""

    def open_sink(home: Path, options: Any) -> Any:
        raise Unreachable("gone")

    monkeypatch.setenv("CHUNKSINK_SINKS", "jsonl,fts")
    shell.synced(p1=[A])
    shell.commit("p2", B)
    monkeypatch.setattr(jsonl, "open_sink", open_sink)
    ended = shell("sync", "--json")
    assert (ended.code, ended.json["sinks"]["jsonl"]["error"]) == (Exit.ENGINE, "gone")
    assert shell.texts() == ALL


def test_a_bug_in_the_first_call_of_a_sink_names_the_sink(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def builds(sink: jsonl.JsonlSink) -> list[str]:
        raise ZeroDivisionError

    monkeypatch.setenv("CHUNKSINK_SINKS", "jsonl,fts")
    shell.synced(p1=[A])
    monkeypatch.setattr(jsonl.JsonlSink, "builds", builds)
    with chunksink.open() as index, pytest.raises(ZeroDivisionError) as failed:
        index.sync()
    (note,) = failed.value.__notes__
    assert "jsonl" in note and "builds" in note


def test_first_sync_with_an_unreachable_engine_builds_nothing(
    nobody: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEILI_URL", nobody)
    shell.commit("p1", A)
    ended = shell("sync")
    assert (ended.code, ended.out) == (Exit.ENGINE, "")
    assert "meilisearch" in ended.err.lower()
    assert not (shell.home / "fts").exists()


@pytest.mark.usefixtures("meilisearch")
def test_a_plan_names_the_settings_that_it_would_change(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan changes with the settings even if no source has changed."""
    shell.synced(p1=[A])
    idle = shell("plan", "--json").json
    assert (idle["settings"], idle["families"]["changed"]) == ({}, 0)
    settings = orjson.loads((ROOT / "meilisearch-settings.json").read_bytes())
    settings["synonyms"] = {"boat": ["ship"]}
    Path("own-settings.json").write_bytes(orjson.dumps(settings))
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_SETTINGS_FILE", "own-settings.json")
    assert "meilisearch: index settings to change: synonyms" in shell("plan").out.splitlines()
    changed = shell("plan", "--json").json
    assert changed["settings"] == {"meilisearch": ["synonyms"]}
    refused = shell("sync", "--plan", idle["hash"])
    assert (refused.code, "nothing was written" in refused.err) == (Exit.OTHER_PLAN, True)
    done = shell("sync", "--plan", changed["hash"])
    assert (done.code, "index settings changed: synonyms" in done.out + done.err) == (Exit.OK, True)
    assert shell("plan", "--json").json["hash"] == idle["hash"]


def test_sync_does_not_write_to_a_former_sink(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    shell.commit("p1", A, B)
    expected = "chroma is no longer configured: it is not kept up to date, and the next rebuild leaves it out"
    ended = shell("sync")
    assert (ended.out.startswith("synced fts"), ended.err.splitlines()) == (True, [expected])
    assert shell("sync", "--json").json["unconfigured"] == ["chroma"]
    assert expected in shell("status").out.splitlines()
    found = shell("status", "--json").json
    assert (found["current"], found["unconfigured"], list(found["sinks"])) == (True, ["chroma"], ["fts"])
    assert (len(shell.texts()), len(shell.texts("chroma"))) == (3, 2)
    monkeypatch.delenv("CHUNKSINK_SINKS")
    assert shell("sync").code == Exit.OK
    assert shell.texts("chroma") == shell.texts()


def test_new_sink_beside_a_former_one_leaves_it_in_the_live_index(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    ended = shell("sync", "--json")
    assert (ended.code, ended.json["unconfigured"]) == (Exit.OK, ["chroma"])
    assert sorted(shell.live().builds) == ["chroma", "fts", "jsonl"]
    assert shell("verify").code == Exit.OK
    assert shell("rebuild").code == Exit.OK
    assert sorted(shell.live().builds) == ["fts", "jsonl"]


def test_new_sink_does_not_need_the_engine_of_a_former_one(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.synced(p1=[A])
    with State.existing(shell.home) as state, write_transaction(state.db):
        state.db.execute("insert into build (generation, sink, id) select live, 'meilisearch', 'old' from pointer")
        state.db.execute("insert into public (sink, build) values ('meilisearch', 'old')")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma,jsonl")
    assert shell("sync").code == Exit.OK
    assert sorted(shell.live().builds) == ["chroma", "fts", "jsonl", "meilisearch"]
    assert shell("search", "owls", "--mode", "semantic").code == Exit.OK


def test_unbuilt_sink_is_reported_by_status_and_verify(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma,jsonl")
    expected = "jsonl has no build yet: `chunksink sync` creates it"
    found = shell("status", "--json").json
    assert (found["current"], found["unbuilt"]) == (False, ["jsonl"])
    assert expected in shell("status").out.splitlines()
    verified = shell("verify")
    assert (verified.code, expected in verified.err) == (Exit.DRIFT, True)
    report = shell("verify", "--json").json
    assert (report["ok"], report["unbuilt"]) == (False, ["jsonl"])
    assert shell("prove", "proof.json").code == Exit.DRIFT
    assert shell("verify", "--repair").code == Exit.OK
    assert shell("status", "--json").json["current"]


@pytest.mark.parametrize("arguments", [["rebuild"], ["rebuild", "--sink", "fts"], ["rebuild-index"]])
def test_rebuild_leaves_out_former_sinks(arguments: list[str], shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    ended = shell(*arguments)
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert list(shell.live().builds) == ["fts"]


def test_rebuild_of_an_unconfigured_sink_is_a_usage_error(quick_shell: Shell) -> None:
    quick_shell.commit("p1", A)
    ended = quick_shell("rebuild", "--sink", "fts", "--sink", "jsonl")
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert 'jsonl is not configured. Configure it first, with `sinks = ["fts", "js' in ended.err
    assert not quick_shell.home.exists()
    assert "unknown sink 'jsnol'" in quick_shell("rebuild", "--sink", "jsnol").err


def test_unreachable_former_sink_does_not_stop_a_rebuild(
    meilisearch: str, nobody: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.synced(p1=[A])
    build = shell.live().builds["meilisearch"]
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    monkeypatch.setenv("MEILI_URL", nobody)
    assert shell("rebuild").code == Exit.OK
    for _ in range(2):
        ended = shell("rebuild")
        assert ended.code == Exit.OK
        assert ended.err.startswith(f"could not remove the unused build {build} of meilisearch: ")
        assert ended.err.endswith("; the next rebuild tries again\n")
    (left,) = shell("rebuild", "--json").json["not_removed"]
    assert (left["sink"], left["build"]) == ("meilisearch", build)
    assert shell("runs", shell("runs", "--json").json[0]["id"], "--json").out.count(build)
    monkeypatch.setenv("MEILI_URL", meilisearch)
    assert shell("rebuild", "--json").json["not_removed"] == []


def test_sync_with_an_unreachable_new_sink_updates_the_others(
    quick_shell: Shell, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = quick_shell
    shell.synced(p1=[A])
    shell.commit("p2", B)
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,meilisearch")
    monkeypatch.setenv("MEILI_URL", nobody)
    ended = shell("sync")
    assert shell.texts() == ["a boat", "a cat", "a mat"]
    assert ended.code == Exit.ENGINE
    assert "meilisearch is not up to date" in ended.err


@pytest.mark.usefixtures("public_index")
def test_refused_build_is_created_after_the_fix(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt leaves an index without settings and marker."""
    quick_shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,meilisearch")
    file = Path("meilisearch-settings.json")
    file.write_text('{"rankingRules": ["no such rule"]}')
    assert quick_shell("sync").code == Exit.ENGINE
    file.write_text("{}")
    assert quick_shell("sync").code == Exit.OK
    assert quick_shell("verify").code == Exit.OK


# -- a sink that is new in the configuration ---------------------------------------------------------------------------


def test_a_new_sink_is_built_with_the_live_model(shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report counts the documents written and the vectors computed for it. The other sink is not written again."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "chroma")
    shell.synced(p1=[A], p2=[B])
    before = shell.live()
    monkeypatch.setenv("CHUNKSINK_SINKS", "chroma,fts,jsonl")
    monkeypatch.setenv("CHUNKSINK_MODEL", "other")
    shell.commit("p3", source("c.md", "a ship"))
    models.take_texts()
    models.loaded.clear()
    report = shell("sync", "--json").json
    assert (models.take_texts(), len(models.loaded), report["embeddings"]["computed"]) == (["a ship"], 1, 1)
    assert "other is configured" in report["rebuild_due"]
    assert (report["chunks"]["written"], report["families"]["added"], report["families"]["unchanged"]) == (4, 1, 2)
    took = {
        name: (sink["built"], sink["written"], sink["families"]["added"], sink["families"]["unchanged"])
        for name, sink in report["sinks"].items()
    }
    assert took == {"chroma": (False, 1, 1, 2), "fts": (True, 4, 3, 0), "jsonl": (True, 4, 3, 0)}
    assert shell("runs", "--json").json[0]["facts"]["chunks"]["written"] == 4
    live = shell.live()
    assert (live.builds["chroma"], live.model) == (before.builds["chroma"], before.model)
    assert shell.texts("chroma") == shell.texts() == shell.texts("jsonl") == [*ALL, "a ship"]
    assert shell("verify", "--deep").code == Exit.OK
    again = shell("sync", "--json").json
    assert again["chunks"] == {"written": 0, "deleted": 0}
    assert not any(sink["built"] for sink in again["sinks"].values())


@pytest.fixture
def added(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """fts is live and jsonl is new. One source was added since the last sync."""
    quick_shell.synced(p1=[A])
    quick_shell.commit("p2", B)
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    return quick_shell


def test_sync_reports_a_new_sink(added: Shell) -> None:
    ended = added("sync")
    assert ended.code == Exit.OK
    assert "1 source added, 1 source unchanged (3 chunks written)" in ended.out
    assert "jsonl is new: 3 chunks written\n" in ended.out


def test_a_new_sink_that_does_not_hold_what_it_was_sent_does_not_hinder_the_others(
    added: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(JsonlBuild, "scan", lambda _build, **_asked: iter(()))
        ended = added("sync", "--json")
    assert (ended.code, ended.json["status"], ended.json["families"]["added"]) == (Exit.ENGINE, "failed", 1)
    assert ended.json["sinks"]["jsonl"]["error"].startswith("jsonl differs from what was written: missing ")
    assert added.texts() == ALL
    assert added("sync").code == Exit.OK


def test_repair_that_does_not_last_names_only_the_sink_that_differs(
    added: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert added("sync").code == Exit.OK
    monkeypatch.setattr(JsonlBuild, "count", lambda _build: 0)
    monkeypatch.setattr(JsonlBuild, "scan", lambda _build, **_asked: iter(()))
    ended = added("verify", "--repair")
    assert "Still wrong after repair" in ended.err
    assert ("jsonl differs" in ended.err, "fts differs" in ended.err) == (True, False)


def test_a_new_sink_waits_for_a_rebuild_under_way_and_the_others_sync(
    added: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunksink.rebuild.locks.WAIT_SECONDS", 0.1)
    with RebuildLock(added.home)():
        ended = added("sync")
    assert (ended.code, added.texts()) == (Exit.ENGINE, ALL)
    assert "synced fts: 1 source added" in ended.out
    assert "jsonl is not up to date: another run is building in " in ended.err
    assert added("sync").code == Exit.OK
    assert added.texts("jsonl") == ALL


# -- sinks that MEILI_URL alone has chosen -----------------------------------------------------------------------------

KEPT = "note: MEILI_URL is set, but this index has its keyword search in fts"


def test_meili_url_alone_takes_no_search_from_an_existing_fts_index(
    shell: Shell, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.begin("before the variable", "sync", p1=[A])
    monkeypatch.setenv("MEILI_URL", nobody)
    for command in ("status", "verify", "sync", "search cat"):
        ended = shell(*command.split())
        assert (ended.code, KEPT in ended.err) == (Exit.OK, True)
    assert set(shell("sync", "--json").json["sinks"]) == {"fts", "chroma"}
    with chunksink.open() as index:
        assert index.config.sinks == ("fts", "chroma")
    monkeypatch.setenv("CHUNKSINK_PATIENCE", "0.5")
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch,chroma")
    ended = shell("sync")
    assert (ended.code, KEPT in ended.err) == (Exit.ENGINE, False)


@pytest.mark.usefixtures("public_index")
@pytest.mark.parametrize("former", [(), ("fts",)], ids=["alone", "beside a former fts"])
def test_index_in_meilisearch_without_meili_url_is_refused_and_unchanged(
    former: tuple[str, ...],
    shell: Shell,
    meilisearch_server: MeilisearchServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell.commit("p1", A)
    for sink in (*former, "meilisearch"):
        monkeypatch.setenv("CHUNKSINK_SINKS", f"{sink},chroma")
        assert shell("sync").code == Exit.OK
    monkeypatch.delenv("CHUNKSINK_SINKS")
    live = shell.live()
    assert set(live.builds) == {"meilisearch", "chroma", *former}
    monkeypatch.delenv("MEILI_URL")
    for command in ("status", "verify", "sync", "rebuild", "search cat", "serve"):
        ended = shell(*command.split())
        assert (ended.code, "MEILI_URL" in ended.err, "`sinks`" in ended.err) == (Exit.USAGE, True, True)
    with pytest.raises(ConfigError):
        chunksink.open()
    for command in ("stats", "long-texts", "verify", "export vectors", "import vectors", "gc"):  # open no engine
        assert shell("cache", *command.split()).code == Exit.OK
    ref = shell("cache", "show", "cache:0/0")
    assert (ref.code, "MEILI_URL" in ref.err) == (Exit.USAGE, False)
    assert (shell("dead-letters").code, shell("dead-letters", "retry").code) == (Exit.OK, Exit.OK)
    last = shell("doctor", "--json").json[-1]
    assert (last["name"], last["verdict"]) == ("configuration", "fail")
    assert shell.live() == live
    monkeypatch.setenv("MEILI_URL", meilisearch_server.url)
    assert shell("verify").code == Exit.OK
    monkeypatch.delenv("MEILI_URL")
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma")
    assert set(shell("sync", "--json").json["sinks"]) == {"fts", "chroma"}


def test_options_of_a_sink_that_is_not_used_are_noted(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHUNKSINK_SINKS", raising=False)
    Path("chunksink.toml").write_text('[sink.jsonl]\nfolder = "out"\n', encoding="utf-8")
    shell.commit("p1", A)
    assert "jsonl has options, but is not used" in shell("status").err
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    assert "jsonl has options" not in shell("status").err
