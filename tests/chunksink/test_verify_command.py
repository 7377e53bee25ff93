"""`chunksink verify` names differences, has an exit code for them, and repairs them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunksink.command_line.exits import Exit
from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.rebuild import recall, verify
from chunksink.rebuild.recall import Recall
from chunksink.rebuild.run_records import past_runs
from chunksink.sinks.document import Family
from chunksink.sinks.errors import Unreachable
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.projection import project_family
from chunksink.sinks.registry import open_sink
from tests.chunksink.shell import Models, Shell
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import source

A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a cow")


@pytest.fixture
def synced(shell: Shell) -> Shell:
    return shell.begin("verified", "sync", p1=[A, B, C])


def tamper(shell: Shell) -> dict[str, str]:
    """Edit fts directly: remove `b.md`, change the text of `c.md`, and add a foreign document. Returns the ids by kind
    of difference."""
    db = sqlite3.connect(fts_file(shell))
    ids = dict(db.execute("select text, id from documents").fetchall())
    db.close()
    stranger = project_family(source("stranger.md", "nobody knows me"))
    with closing(open_sink("fts", shell.home, {})) as sink, closing(sink.open(shell.live().builds["fts"])) as build:
        build.delete([document.parent_id for document in project_family(B)])
        build.replace([Family(stranger, np.zeros((1, 8), np.float32))])
        build.flush()
    with sqlite3.connect(fts_file(shell)) as db:
        db.execute("update documents set text = 'a crow' where id = ?", [ids["a cow"]])
    db.close()
    return {"missing": ids["a boat"], "extra": stranger[0].id, "changed": ids["a cow"]}


def fts_file(shell: Shell) -> str:
    path: str = shell("endpoints", "--json").json["sinks"]["fts"]["path"]
    return path


def only(sinks: dict[str, dict[str, Any]], kind: str) -> dict[str, list[str]]:
    return {name: sink[kind] for name, sink in sinks.items()}


def test_verify_names_differences(synced: Shell) -> None:
    wrong = tamper(synced)
    ended = synced("verify")
    assert ended.code == Exit.DRIFT
    assert "fts: 4 chunks of 3 sources, differs from the chunks\n" in ended.out
    assert "chroma: 4 chunks of 3 sources, matches the chunks\n" in ended.out
    assert {line.strip() for line in ended.err.splitlines()} == {
        "b.md: 1 chunk missing",
        "c.md: 1 chunk changed",
        "stranger.md: 1 chunk extra",
        "`chunksink verify --repair` fixes it",
    }
    again = synced("verify", "--json").json
    assert not again["ok"]
    for kind, id in wrong.items():
        assert only(again["sinks"], kind) == {"fts": [id], "chroma": []}


def test_verify_says_that_a_foreign_document_names_no_source(synced: Shell) -> None:
    tamper(synced)
    with sqlite3.connect(fts_file(synced)) as db:
        db.execute("update documents set parent_id = '', source_uri = null, path = null where text = 'nobody knows me'")
    db.close()
    [extra] = [line for line in synced("verify").err.splitlines() if line.endswith("extra")]
    assert extra.partition(":")[0].strip() != ""


def test_status_reports_unrepaired_differences(synced: Shell, models: Models) -> None:
    assert synced("sync").code == Exit.OK  # the copied partition is read
    tamper(synced)
    assert "up to date" in synced("status").out, "no engine is asked"
    assert synced("verify").code == Exit.DRIFT
    printed = synced("status").out
    assert "`chunksink verify`" in printed
    assert "up to date" not in printed
    models.loaded.clear()
    repaired = synced("verify", "--repair")
    assert (repaired.code, models.loaded) == (Exit.OK, [])
    assert "had drifted" not in repaired.err, "that was asked, and told above"
    assert "up to date" in synced("status").out
    assert synced.texts() == ["a boat", "a cat", "a cow", "a mat"]


def test_changes_that_wait_for_a_sync_are_named_apart_from_drift(synced: Shell) -> None:
    synced.commit("p1", source("a.md", "a cat", "a rug"), B, source("d.md", "a dog"))
    ended = synced("verify", "--json")
    assert ended.code == Exit.DRIFT
    for sink in ended.json["sinks"].values():
        assert {each["source"]: each["pending"] for each in sink["drifted_sources"]} == {
            "a.md": 1,
            "c.md": 1,
            "d.md": 1,
        }
    assert "`chunksink sync`" in synced("verify").err
    tamper(synced)  # b.md is lost, c.md altered
    found = synced("verify", "--json").json["sinks"]
    pending = {
        name: {each["source"]: each["pending"] for each in sink["drifted_sources"]} for name, sink in found.items()
    }
    assert pending == {
        "fts": {"a.md": True, "b.md": False, "c.md": False, "d.md": True, "stranger.md": False},
        "chroma": {"a.md": True, "c.md": True, "d.md": True},
    }
    assert "--repair" in synced("verify").err


def test_sync_finds_and_repairs_drift(synced: Shell) -> None:
    """The number of documents in the engine is as confirmed."""
    tamper(synced)
    ended = synced("sync")
    assert ended.code == Exit.OK
    names = "(b.md, c.md)"
    loss = f"fts had lost 1 source and had wrong content in 1 source {names}; rescanned and repaired"
    assert loss in ended.err
    assert synced("verify").code == Exit.OK


@pytest.mark.usefixtures("public_index")
def test_verify_json_of_an_unreachable_engine_has_the_same_fields(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,meilisearch")
    monkeypatch.setenv("CHUNKSINK_PATIENCE", "0.5")
    shell.synced(p1=[A])

    def unreachable(_sink: MeilisearchSink, build_id: str) -> object:
        raise Unreachable(f"nobody answers for {build_id}")

    with monkeypatch.context() as patched:
        patched.setattr(MeilisearchSink, "open", unreachable)
        assert "nobody answers" in shell("verify", "--json").json["sinks"]["meilisearch"]["error"]
    monkeypatch.setenv("MEILI_MASTER_KEY", "another-key")
    ended = shell("verify", "--json")
    assert (ended.code, ended.json["unconfigured"]) == (Exit.ENGINE, [])
    sinks = ended.json["sinks"]
    assert set(sinks["meilisearch"]) == {*sinks["fts"], "error"}
    assert sinks["meilisearch"]["families"] is sinks["meilisearch"]["digest"] is None
    assert "key" in sinks["meilisearch"]["error"]
    failed = next(run for run in past_runs(shell.home, "verify") if run.status == "failed")
    assert failed.facts["sinks"]["meilisearch"] == {"error": sinks["meilisearch"]["error"]}
    assert "build" in failed.facts["sinks"]["fts"]
    assert sinks["meilisearch"]["error"][:60] in shell("runs", failed.id).out
    assert sinks["fts"]["ok"] is True
    assert "fixes it" not in shell("verify").err
    ended = shell("verify", "--repair")
    assert (ended.code, "fts: 2 chunks" in ended.out, "meilisearch: " in ended.err) == (Exit.ENGINE, True, True)


def test_deep_compares_vectors(synced: Shell, models: Models) -> None:
    """A vector that belongs to another text. Without --deep it is not found."""
    encoder: HashEncoder = models.known[DEFAULT_MODEL]
    (document,) = project_family(B)
    with (
        closing(open_sink("chroma", synced.home, {})) as sink,
        closing(sink.open(synced.live().builds["chroma"])) as build,
    ):
        build.replace([Family([document], np.stack([encoder.vector("something else")]), rewrite=[document.id])])
        build.flush()
    models.loaded.clear()
    assert synced("verify").code == Exit.OK
    ended = synced("verify", "--deep", "--json")
    assert ended.code == Exit.DRIFT
    assert only(ended.json["sinks"], "changed") == {"fts": [], "chroma": [document.id]}
    assert synced("verify", "--deep", "--repair").code == Exit.OK
    assert synced("verify", "--deep").code == Exit.OK
    assert models.loaded == []


def test_deep_verify_measures_recall(synced: Shell) -> None:
    found = synced("verify", "--deep", "--json").json["sinks"]
    assert found["fts"]["recall"] is None
    assert found["chroma"]["recall"] == {"mean": 1.0, "worst": 1.0, "questions": 4, "documents": 4, "deleted": 0.0}
    assert "chroma finds 100.0% of the nearest documents" in synced("verify", "--deep").out
    assert synced("verify", "--json").json["sinks"]["chroma"]["recall"] is None


@pytest.mark.parametrize("changed", [{"mean": 0.9}, {"deleted": 0.9}])
def test_low_recall_or_worn_graph_has_a_remedy(
    synced: Shell, changed: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documents are correct. The remedy is a rebuild of that sink."""
    low = Recall(**{"mean": 1.0, "worst": 1.0, "questions": 4, "documents": 4, "deleted": 0.0} | changed)  # type: ignore[arg-type]
    monkeypatch.setattr(recall, "measure", lambda *_: low)
    monkeypatch.setattr(verify, "measure", lambda *_: low)
    deep = synced("verify", "--deep")
    assert (deep.code, "`chunksink rebuild --sink chroma`" in deep.err) == (Exit.OK, True)
    proved = synced("prove", "proof.json")
    assert (proved.code, "`chunksink rebuild --sink chroma`" in proved.err) == (Exit.OK, True)
    examined = {check["name"]: check for check in synced("doctor", "--json").json}["recall of chroma"]
    assert (examined["verdict"], "`chunksink rebuild --sink chroma`" in examined["remedy"]) == ("warn", True)


def test_deep_verify_without_a_cache_is_drift(synced: Shell) -> None:
    """The repair computes the vectors to compare with, and finds no difference."""
    (synced.home / "vectors.db").unlink()
    ended = synced("verify", "--deep")
    assert ended.code == Exit.DRIFT
    assert "`chunksink verify --deep --repair`" in ended.err
    assert synced("prove", "proof.json", "--deep").code == Exit.DRIFT
    assert not (synced.folder / "proof.json").exists()
    repaired = synced("verify", "--deep", "--repair", "--json").json
    assert (repaired["ok"], repaired["repair"]["embeddings"]["computed"]) == (True, 4)
    assert set(repaired["repair"]["chunks"].values()) == {0}
    assert synced("prove", "proof.json", "--deep").code == Exit.OK


def test_verify_does_not_compare_held_sources(synced: Shell) -> None:
    synced.remove("p1")
    for arguments in (["verify"], ["verify", "--repair"]):
        found = synced(*arguments)
        assert found.code == Exit.INVALID_INPUT
        assert "p1" in found.err
    assert len(synced.texts()) == 4


def test_sync_counts_missing_held_sources(synced: Shell) -> None:
    synced.remove("p1")
    shutil.rmtree(Path(fts_file(synced)).parent)
    found = synced("sync")
    assert found.code == Exit.INVALID_INPUT
    assert "fts lacks 3 held sources" in found.err
    assert synced("sync", "--json").json["sinks"]["fts"]["held_and_missing"] == 3
    assert synced("verify").code == Exit.INVALID_INPUT
