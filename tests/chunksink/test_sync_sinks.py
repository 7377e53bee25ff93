"""Sinks and models that come, go and cannot be reached, as a sync meets them."""

import shutil
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from chunksink.exits import Exit
from chunksink.sinks.errors import Refused
from chunksink.sinks.jsonl import JsonlBuild
from chunksink.sinks.meilisearch import MeilisearchSink
from tests.chunksink.shell import Models, Shell
from tests.conftest import ROOT
from tests.engines.servers import MeilisearchServer
from tests.support.bus import source

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens, as long as the test lasts."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def meilisearch(meilisearch_server: MeilisearchServer, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> Iterator[str]:
    """The sinks are a Meilisearch and fts; gives its address. What the test leaves there goes."""
    index = f"sync{uuid.uuid4().hex[:10]}"
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch,fts")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_INDEX", index)
    monkeypatch.setenv("CHUNKSINK_PATIENCE", "0.5")
    monkeypatch.setenv("MEILI_MASTER_KEY", meilisearch_server.key)
    monkeypatch.setenv("MEILI_URL", meilisearch_server.url)
    yield meilisearch_server.url
    sink = MeilisearchSink(meilisearch_server.url, meilisearch_server.key, settings={}, index=index)
    for build in sink.builds():
        sink.drop(build)
    sink.close()


def test_one_engine_is_out_of_reach_and_the_others_are_synced(
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
    assert (ended.code, ended.json["status"]) == (Exit.OK, "ok")
    assert [sink["written"] for sink in ended.json["sinks"].values()] == [1, 0]
    verified = shell("verify", "--json")
    assert (verified.code, [sink["chunks"] for sink in verified.json["sinks"].values()]) == (Exit.OK, [3, 3])


def test_the_first_index_is_made_in_every_engine_or_not_at_all(
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
    """And is another plan then, though no source changed."""
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


def test_a_build_whose_making_was_refused_is_made_once_that_is_mended(
    meilisearch: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of the first try is an index without settings and marker."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,meilisearch")
    settings = orjson.loads((ROOT / "meilisearch-settings.json").read_bytes())
    file = Path("own-settings.json")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_SETTINGS_FILE", str(file))
    file.write_bytes(orjson.dumps({**settings, "rankingRules": ["no such rule"]}))
    assert shell("sync").code == Exit.ENGINE
    file.write_bytes(orjson.dumps(settings))
    ended = shell("sync")
    assert (ended.code, shell("verify").code) == (Exit.OK, Exit.OK), ended.err


def test_what_failed_in_one_sink_is_not_told_of_another(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the second sink is written again, and fails; the first one has had everything for long."""
    shell = quick_shell
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    shell.synced(p1=[A])
    shutil.rmtree(shell.home / "jsonl" / shell.live().builds["jsonl"])

    def fail(*_: object) -> None:
        raise Refused("no")

    monkeypatch.setattr(JsonlBuild, "replace", fail)
    ended = shell("sync")
    assert ended.code == Exit.ENGINE
    assert "synced fts: 1 source unchanged, in" in ended.out
    assert "added" not in ended.out
    assert "jsonl is not up to date: no" in ended.err


def test_a_sink_that_left_the_configuration_is_left_alone(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    shell.commit("p1", A, B)
    told = "chroma is not configured any more: the next rebuild leaves it out; until then it is not kept up to date"
    ended = shell("sync")
    assert (ended.out.startswith("synced fts"), ended.err.splitlines()) == (True, [told])
    assert shell("sync", "--json").json["unconfigured"] == ["chroma"]
    assert told in shell("status").out.splitlines()
    found = shell("status", "--json").json
    assert (found["current"], found["unconfigured"], list(found["sinks"])) == (True, ["chroma"], ["fts"])
    assert (len(shell.texts()), len(shell.texts("chroma"))) == (3, 2)
    monkeypatch.delenv("CHUNKSINK_SINKS")
    assert shell("sync").code == Exit.OK
    assert shell.texts("chroma") == shell.texts()


def test_a_sink_without_a_build_is_no_index_that_is_as_it_should_be(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma,jsonl")
    told = "jsonl has no build yet: `chunksink sync` makes it"
    found = shell("status", "--json").json
    assert (found["current"], found["unbuilt"]) == (False, ["jsonl"])
    assert told in shell("status").out.splitlines()
    verified = shell("verify")
    assert (verified.code, told in verified.err) == (Exit.DRIFT, True)
    report = shell("verify", "--json").json
    assert (report["ok"], report["unbuilt"]) == (False, ["jsonl"])
    assert shell("prove", "proof.json").code == Exit.DRIFT
    assert shell("verify", "--repair").code == Exit.OK
    assert shell("status", "--json").json["current"]


@pytest.mark.parametrize("arguments", [["rebuild"], ["rebuild", "--sink", "fts"], ["rebuild-index"]])
def test_a_rebuild_leaves_out_what_is_not_configured(
    arguments: list[str], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    ended = shell(*arguments)
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert list(shell.live().builds) == ["fts"]


def test_a_sink_that_is_not_configured_is_not_built_alone(quick_shell: Shell) -> None:
    quick_shell.commit("p1", A)
    ended = quick_shell("rebuild", "--sink", "fts", "--sink", "jsonl")
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert 'jsonl is not configured; nothing was built. Configure it first, with `sinks = ["fts", "js' in ended.err
    assert not quick_shell.home.exists()
    assert "there is no sink 'jsnol'" in quick_shell("rebuild", "--sink", "jsnol").err


def test_an_engine_that_left_and_is_gone_stops_nothing(
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
        assert ended.err.startswith(f"could not remove build {build} of meilisearch, which nobody needs: ")
        assert ended.err.endswith("; the next rebuild tries again\n")
    (left,) = shell("rebuild", "--json").json["not_removed"]
    assert (left["sink"], left["build"]) == ("meilisearch", build)
    assert shell("runs", shell("runs", "--json").json[0]["id"], "--json").out.count(build)
    monkeypatch.setenv("MEILI_URL", meilisearch)
    assert shell("rebuild", "--json").json["not_removed"] == []


def test_a_sink_that_is_new_in_the_configuration_is_built(
    shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the live model, whatever is configured by now; what is there is not written again."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "chroma")
    shell.synced(p1=[A])
    before = shell.live()
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma")
    monkeypatch.setenv("CHUNKSINK_MODEL", "other")
    shell.commit("p2", B)
    ended = shell("sync", "--json")
    assert ended.code == Exit.OK
    live = shell.live()
    assert (live.builds["chroma"], live.model) == (before.builds["chroma"], before.model)
    assert (shell.texts("chroma"), shell.texts()) == (["a boat", "a cat", "a mat"],) * 2
    assert models.known["other"].asked == []
    assert "configured is other" in ended.json["rebuild_due"]
    assert shell("verify", "--deep").code == Exit.OK
    assert shell("sync", "--json").json["chunks"] == {"written": 0, "deleted": 0}


def test_a_new_sink_out_of_reach_is_told_and_the_others_sync(
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
