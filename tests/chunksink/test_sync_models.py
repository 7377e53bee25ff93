"""Changed models, changed files of a model with the same name, and recomputed vectors."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

import chunksink
from chunksink.command_line.exits import Exit
from chunksink.embeddings import fingerprint
from chunksink.embeddings.fingerprint import digest_of_files, file_digests
from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.rebuild.locks import RebuildLock
from tests.chunksink.shell import Models, Shell
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import FEBRUARY, source
from tests.support.home import PoisonedEncoder

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


def test_a_changed_model_keeps_the_live_one_until_a_rebuild_is_asked_for(
    shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.synced(p1=(source(f"{number}.md", f"text {number}") for number in range(15)))
    before = shell.live()
    monkeypatch.setenv("CHUNKSINK_MODEL", "other")
    shell.commit("p2", A, at=FEBRUARY)
    ended = shell("sync")
    assert ended.code == Exit.OK
    assert "a rebuild is due: the live index was made with " in ended.err
    assert "other is configured. The live model was kept" in ended.err
    assert shell.live() == before
    assert models.known["other"].asked == []
    assert "a rebuild is due: " in shell("plan").out
    assert "a rebuild is due: " in shell("status").out
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")  # chroma also has a line
    ended = shell("sync", "--strict")
    assert (ended.code, ended.err.splitlines()[-1][:18]) == (Exit.REBUILD_DUE, "a rebuild is due: ")
    monkeypatch.delenv("CHUNKSINK_SINKS")

    report = shell("sync", "--rebuild", "--json").json
    assert (report["status"], report["rebuild_due"]) == ("ok", None)
    assert (report["embeddings"]["model"], report["embeddings"]["computed"]) == ("other", 17)
    change = report["model_change"]
    assert (change["before"], change["after"], change["sample"]) == (before.model.name, "other", 17)
    assert 0 < change["overlap"] < 1
    again = shell("sync", "--rebuild", "--json").json
    assert (again["model_change"], again["chunks"]["written"]) == (None, 0)


@pytest.mark.promise(12)
@pytest.mark.parametrize(
    ("setting", "value", "code"),
    [
        ("ENDPOINT", "http://user:s3cret@localhost:9/v1", Exit.USAGE),
        ("ENDPOINT", "http://localhost:9/v1?key=s3cret", Exit.USAGE),
        ("ENDPOINT_KEY_VARIABLE", "s3cret", Exit.OK),  # not a difference
    ],
)
def test_misplaced_key_is_not_shown_in_the_difference_to_the_live_model(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, code: Exit
) -> None:
    shell.synced(p1=[A])
    monkeypatch.setenv(f"CHUNKSINK_{setting}", value)
    for command in ("sync", "plan", "status"):
        ended = shell(command)
        assert (ended.code, "s3cret" in ended.out + ended.err) == (code, False)
        named = setting.lower() in ended.out + ended.err
        assert named == (code != Exit.OK), "the reader knows what to correct"


def test_models_are_not_compared_on_an_index_of_one_chunk(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    monkeypatch.setenv("CHUNKSINK_MODEL", "other")
    change = shell("rebuild", "--json").json["model_change"]
    assert (change["after"], change["sample"], change["overlap"]) == ("other", 0, None)


def test_models_with_the_same_name_are_distinguished_by_fingerprint(
    shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two models have the same name. To the cache they are different models."""
    shell.synced(p1=[A])
    models.known[DEFAULT_MODEL] = PoisonedEncoder(dimension=12, name=DEFAULT_MODEL)
    before = shell.live().model_fingerprint
    ended = shell("rebuild")
    assert ended.code == Exit.OK, ended
    one, other = (f"{DEFAULT_MODEL} ({model:.12})" for model in (before, shell.live().model_fingerprint))
    assert one != other
    assert f"model changed from {one} to {other}; " in ended.out


def test_the_first_sink_with_vectors_decides_the_model(
    quick_shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before that, no model is loaded, and there is no live model to compare it with."""
    shell = quick_shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_MODEL", "other")
    for command in ("plan", "sync", "rebuild", "verify", "status"):
        ended = shell(command)
        assert (ended.code, ended.err, "a rebuild is due" in ended.out) == (Exit.OK, "", False)
    assert models.loaded == []
    before = shell.live()
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma")
    assert shell("sync").code == Exit.OK
    assert (shell.live().model.name, shell.live().builds["fts"]) == ("other", before.builds["fts"])
    assert sorted(models.known["other"].asked) == ["a cat", "a mat"]


# -- other files under the same name -----------------------------------------------------------------------------------


def encoder_of(folder: Path, seed: str) -> HashEncoder:
    encoder = HashEncoder(dimension=8, name=f"{DEFAULT_MODEL} {seed}")
    encoder.info = replace(encoder.info, source=f"folder:{folder}", files=digest_of_files(file_digests(folder)))
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
    """Whether `sync`, `plan` and `status` report that a rebuild is due: one value if they agree."""
    results = [shell("sync", "--json"), shell("plan", "--json"), shell("status", "--json")]
    assert [each.code for each in results] == [Exit.OK] * 3
    return {"have changed since the live index was made" in (each.json["rebuild_due"] or "") for each in results}


@pytest.mark.parametrize("changed", ["weights", "1_Pooling/config.json", "a new one"])
def test_changed_model_files_make_a_rebuild_due_without_loading(
    changed: str, synced: Shell, models: Models, model: Path
) -> None:
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
    real = fingerprint._read_digests
    monkeypatch.setattr(fingerprint, "_read_digests", lambda folder: read.append(folder) or real(folder))
    assert due(synced) == {False}
    assert read == []
    os.utime(model / "weights", ns=(1, 1))
    assert due(synced) == {False}
    assert read == [model]


def test_rebuild_uses_the_changed_model_files(synced: Shell, models: Models, model: Path) -> None:
    (model / "weights").write_bytes(b"other")
    models.known[DEFAULT_MODEL] = encoder_of(model, "other")
    before = synced.live()
    synced.commit("p2", B)
    ended = synced("sync")
    assert (ended.code, synced.live()) == (Exit.USAGE, before)
    assert "`chunksink rebuild`" in ended.err
    ended = synced("sync", "--rebuild", "--json")
    assert (ended.code, ended.json["rebuild_due"]) == (Exit.OK, None)
    assert ended.json["model_change"]["before"] != ended.json["model_change"]["after"]
    assert synced.live().model_fingerprint != before.model_fingerprint
    assert due(synced) == {False}


def test_missing_model_makes_no_rebuild_due(synced: Shell, model: Path) -> None:
    model.rename(model.with_name("elsewhere"))
    assert due(synced) == {False}


# -- recomputed vectors -----------------------------------------------------------------------------------------------


def rebuilt(shell: Shell, *arguments: str) -> tuple[int, int]:
    """How many vectors a rebuild computed, and how many it read from the cache."""
    ended = shell("rebuild", "--json", *arguments)
    assert ended.code == Exit.OK
    embeddings = ended.json["embeddings"]
    return embeddings["computed"], embeddings["cached"]


def test_fresh_cache_recomputes_every_vector(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [source(f"{number:02}.md", f"text {number}") for number in range(20)]
    monkeypatch.setattr("chunksink.rebuild.locks.WAIT_SECONDS", 0.1)
    shell.synced(p1=many)
    with RebuildLock(shell.home)():
        assert shell("rebuild", "--fresh-cache").code == Exit.LOCKED
    shell.commit("p1", *many[:8], at=FEBRUARY)
    assert shell("rebuild", "--fresh-cache").code == Exit.BRAKE
    shell.commit("p1", *many, at=FEBRUARY)
    assert rebuilt(shell) == (0, 20)
    assert rebuilt(shell, "--fresh-cache") == (20, 0)
    assert rebuilt(shell) == (0, 20)
    assert shell("verify", "--deep").code == Exit.OK


def test_a_second_sync_in_one_process_loads_no_model(
    shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    models.known[str(folder)] = HashEncoder(dimension=8)
    monkeypatch.setenv("CHUNKSINK_MODEL", str(folder))
    shell.commit("p1", A)
    with chunksink.open() as index:
        for number, name in enumerate(("b", "c", "d")):
            assert index.sync().embeddings["computed"]
            assert len(models.loaded) == 1, f"run {number}"
            shell.commit("p2", source(f"{name}.md", f"a {name}"), at=FEBRUARY)
        (folder / "config.json").write_text('{"hidden_size": 1}')
        index.sync()
        assert len(models.loaded) == 2, "its files have changed"
    shell.commit("p2", B, at=FEBRUARY)
    index.sync()
    assert len(models.loaded) == 3, "the index was closed"
    index.close()


def test_shorter_vectors_are_made_from_cached_ones(
    shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache keeps whole vectors, so a rebuild in either direction computes none."""
    shell.synced(p1=[A, B])
    whole = models.known[DEFAULT_MODEL]
    short = HashEncoder(dimension=whole.info.dimension, name=DEFAULT_MODEL)
    short.info = replace(whole.info, index_dimension=4)
    models.known[DEFAULT_MODEL] = short
    monkeypatch.setenv("CHUNKSINK_DIMENSIONS", "4")
    assert "dimensions was the default and is now 4" in shell("status", "--json").json["rebuild_due"]
    report = shell("sync", "--rebuild", "--json").json
    assert (report["embeddings"]["computed"], shell.live().model.dimension_in_index) == (0, 4)
    assert shell("verify", "--deep").code == Exit.OK
    answer = shell("search", "a boat", "--mode", "semantic", "--json").json
    assert answer["hits"][0]["text"] == "a boat"
    shell.commit("p2", source("c.md", "a crane"), at=FEBRUARY)
    assert shell("sync", "--json").json["embeddings"]["computed"] == 1
    assert shell("verify", "--deep").code == Exit.OK
    monkeypatch.delenv("CHUNKSINK_DIMENSIONS")
    models.known[DEFAULT_MODEL] = whole
    report = shell("rebuild", "--json").json
    assert (report["embeddings"]["computed"], shell.live().model.dimension_in_index) == (0, whole.info.dimension)
