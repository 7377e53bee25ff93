"""`chunksink rollback` to the previous generation and back."""

import shutil
from contextlib import closing

import pytest

from chunksink.command_line.exits import Exit
from chunksink.sinks.registry import open_sink
from tests.chunksink.shell import Shell
from tests.support.bus import FEBRUARY, parent_of, source

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


@pytest.fixture
def twice(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Two generations of two models."""
    shell.begin("before a rollback", "sync", p1=[A])
    monkeypatch.setenv("CHUNKSINK_MODEL", "other")
    shell.commit("p1", source("a.md", "a cheetah", version="2"), B, at=FEBRUARY)
    assert shell("rebuild").code == Exit.OK
    return shell


def test_rollback_twice_returns_to_the_newest_generation(twice: Shell) -> None:
    after = twice.live()
    ended = twice("rollback")
    before = twice.live()
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert before != after
    assert twice.texts() == twice.texts("chroma") == ["a cat", "a mat"]
    assert twice("rollback").code == Exit.OK
    assert twice.live() == after
    assert twice.texts() == ["a boat", "a cheetah"]


def test_rollback_to_sinks_that_are_not_configured_says_so(twice: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "chroma")
    ended = twice("rollback")
    assert ended.code == Exit.OK
    assert "fts" in ended.err


@pytest.mark.promise(5)
def test_rollback_to_an_incomplete_build_is_refused(quick_shell: Shell) -> None:
    shell = quick_shell
    shell.synced(p1=[A, B])
    before = shell.live()
    assert shell("rebuild").code == Exit.OK
    after = shell.live()
    with (
        closing(open_sink("fts", shell.home, {})) as sink,
        closing(sink.open(before.builds["fts"])) as build,
    ):
        build.delete([parent_of("b.md")])
    ended = shell("rollback")
    assert (ended.code, ended.out) == (Exit.ENGINE, "")
    assert "has 2 documents instead of 3; nothing was changed" in ended.err
    assert shell.live() == after


def test_rollback_works_without_chunks(quick_shell: Shell) -> None:
    """The engines have both generations, so the chunks may be elsewhere."""
    quick_shell.commit("p1", A)
    for _ in range(2):
        assert quick_shell("rebuild").code == Exit.OK
    quick_shell.root.path.rename("elsewhere")
    assert quick_shell("rollback").code == Exit.OK


def test_rollback_to_a_missing_build_is_refused(twice: Shell) -> None:
    after = twice.live()
    assert twice("rollback").code == Exit.OK
    before = twice.live()
    assert twice("rollback").code == Exit.OK
    shutil.rmtree(twice.home / "chroma" / before.builds["chroma"])
    ended = twice("rollback")
    assert (ended.code, ended.out) == (Exit.ENGINE, "")
    assert "the previous build in chroma is gone or cannot be read" in ended.err
    assert "`chunksink sync`" not in ended.err
    assert twice.live() == after
    assert twice.texts() == ["a boat", "a cheetah"]


def test_previous_generation_that_is_lost_is_forgotten_by_the_sync_after_a_restore(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    for command in (["rebuild"], ["backup", "saved.tar.gz"], ["restore", "saved.tar.gz", "--force"], ["sync"]):
        assert quick_shell(*command).code == Exit.OK
    assert quick_shell("status", "--json").json["previous"] is not None, "its builds are still in the home"
    shutil.rmtree(quick_shell.home)
    for command in (["restore", "saved.tar.gz"], ["sync"]):
        assert quick_shell(*command).code == Exit.OK
    assert quick_shell("status", "--json").json["previous"] is None
    assert quick_shell("rollback").code == Exit.USAGE
    for command in (["verify"], ["rebuild"], ["rollback"]):
        assert quick_shell(*command).code == Exit.OK
