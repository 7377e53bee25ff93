"""A model whose files were exchanged under the same name: told without loading it, and rebuilt where that is asked."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from chunksink.embeddings.fingerprint import digest_of_files
from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.exits import Exit
from chunksink.rebuild import session
from tests.chunksink.shell import Models, Shell
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import source

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


def encoder_of(folder: Path, seed: str) -> HashEncoder:
    encoder = HashEncoder(dimension=8, name=f"{DEFAULT_MODEL} {seed}")
    encoder.info = replace(encoder.info, source=f"folder:{folder}", files=digest_of_files(folder))
    return encoder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "weights").write_bytes(b"first")
    (folder / "1_Pooling" / "config.json").write_text("{}")
    return folder


@pytest.fixture
def synced(shell: Shell, models: Models, model: Path) -> Shell:
    models.known[DEFAULT_MODEL] = encoder_of(model, "first")
    shell.synced(p1=[A])
    models.loaded.clear()
    return shell


def due(shell: Shell) -> set[bool]:
    """Whether all that tell it say so."""
    told = [shell("sync", "--json"), shell("plan", "--json"), shell("status", "--json")]
    assert [each.code for each in told] == [Exit.OK] * 3
    return {"are others than those that made the live index" in (each.json["rebuild_due"] or "") for each in told}


@pytest.mark.parametrize("changed", ["weights", "1_Pooling/config.json", "a new one"])
def test_it_is_told_and_not_loaded(changed: str, synced: Shell, models: Models, model: Path) -> None:
    assert due(synced) == {False}
    before = (model / changed).read_bytes() if (model / changed).exists() else None
    (model / changed).write_bytes(b"other")
    assert due(synced) == {True}
    assert models.loaded == []
    (model / changed).unlink() if before is None else (model / changed).write_bytes(before)
    assert due(synced) == {False}


def test_files_that_look_the_same_are_not_read_again(
    synced: Shell, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert due(synced) == {False}
    read: list[Path] = []
    real = session.digest_of_files
    monkeypatch.setattr(session, "digest_of_files", lambda folder: read.append(folder) or real(folder))
    assert due(synced) == {False}
    assert read == []
    os.utime(model / "weights", ns=(1, 1))
    assert due(synced) == {False}
    assert read == [model]


def test_a_rebuild_that_is_asked_for_uses_what_it_is_now(synced: Shell, models: Models, model: Path) -> None:
    (model / "weights").write_bytes(b"other")
    models.known[DEFAULT_MODEL] = encoder_of(model, "other")
    before = synced.live()
    synced.commit("p2", B)
    ended = synced("sync")
    assert (ended.code, synced.live()) == (Exit.USAGE, before)
    assert "is not the model any more that made the live index" in ended.err
    ended = synced("sync", "--rebuild", "--json")
    assert (ended.code, ended.json["rebuild_due"]) == (Exit.OK, None)
    assert ended.json["model_change"]["before"] != ended.json["model_change"]["after"]
    assert synced.live().model_fingerprint != before.model_fingerprint
    assert due(synced) == {False}


def test_a_model_that_is_gone_is_no_other(synced: Shell, model: Path) -> None:
    model.rename(model.with_name("elsewhere"))
    assert due(synced) == {False}
