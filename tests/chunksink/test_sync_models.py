"""Models that change, and which one an index has, as a sync meets them."""

import pytest

from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.exits import Exit
from tests.chunksink.shell import Models, Shell
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
    assert "configured is other. The live model was kept" in ended.err
    assert shell.live() == before
    assert models.known["other"].asked == []
    assert "a rebuild is due: " in shell("plan").out

    report = shell("sync", "--rebuild", "--json").json
    assert (report["status"], report["rebuild_due"]) == ("ok", None)
    assert (report["embeddings"]["model"], report["embeddings"]["computed"]) == ("other", 17)
    change = report["model_change"]
    assert (change["before"], change["after"], change["sample"]) == (before.model.name, "other", 17)
    assert 0 < change["overlap"] < 1
    assert shell.live().model.name == "other"
    again = shell("sync", "--rebuild", "--json").json
    assert (again["model_change"], again["chunks"]["written"]) == (None, 0)
    assert shell("verify", "--deep").code == Exit.OK


def test_other_settings_of_one_model_are_told_apart(
    shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is another model to the cache, and bears the same name."""
    shell.synced(p1=[A])
    models.known[DEFAULT_MODEL] = PoisonedEncoder(dimension=12, name=DEFAULT_MODEL)
    ended = shell("rebuild")
    assert ended.code == Exit.OK, ended
    assert f"model changed from {DEFAULT_MODEL} (dimension 8) to {DEFAULT_MODEL} (dimension 12); " in ended.out


def test_the_first_sink_with_vectors_decides_the_model(
    quick_shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then none is loaded, and none is live that another could differ from."""
    shell = quick_shell
    shell.commit("p1", A)
    assert shell("rebuild").code == Exit.OK
    monkeypatch.setenv("CHUNKSINK_MODEL", "other")
    shell.commit("p2", B)
    for command in ("plan", "sync", "rebuild", "verify", "status"):
        ended = shell(command)
        assert (ended.code, ended.err) == (Exit.OK, "")
        assert "a rebuild is due" not in ended.out
    assert models.loaded == []
    before = shell.live()
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma")
    assert shell("sync").code == Exit.OK
    assert (shell.live().model.name, shell.live().builds["fts"]) == ("other", before.builds["fts"])
    assert sorted(models.known["other"].asked) == ["a boat", "a cat", "a mat"]
    assert shell("verify", "--deep").code == Exit.OK
