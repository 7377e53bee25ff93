"""Files of the jsonl sink that somebody took away: named by `verify`, and written anew."""

import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.conftest import sampled
from tests.support.bus import source

TEXTS = ["one", "two", "three"]


@pytest.fixture
def jsonl_shell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    return shell.begin("jsonl", "rebuild", p1=[source("a.md", "one", "two"), source("b.md", "three")])


def _remove_link(build: Path) -> None:
    (build.parent / "current").unlink()


def _spoil_marker(build: Path) -> None:
    (build / "marker.json").write_text("{")


LOSSES: dict[str, Callable[[Path], None]] = {
    "folder": lambda build: shutil.rmtree(build.parent),
    "build": shutil.rmtree,
    "families": lambda build: shutil.rmtree(build / "families"),
    "marker": _spoil_marker,
    "link": _remove_link,
}


REMEDIES = [("sync",), ("verify", "--repair"), ("rebuild",)]


@pytest.mark.parametrize(("what", "remedy"), sampled(product(LOSSES, REMEDIES)))
def test_it_is_written_anew(jsonl_shell: Shell, what: str, remedy: tuple[str, ...]) -> None:
    shell = jsonl_shell
    LOSSES[what](shell.home / "jsonl" / shell.live().builds["jsonl"])
    named = shell("verify")
    assert named.code in (Exit.ENGINE, Exit.DRIFT)
    assert "`chunksink verify --repair`" in named.err
    if what == "link":  # the build itself is whole
        assert "other programs do not find it" in named.err
    else:
        assert "jsonl: " in named.err
    if remedy == ("sync",) and what in ("families", "marker"):  # what is there is not thrown away by a mere sync
        assert shell(*remedy).code == Exit.ENGINE
        return
    assert shell(*remedy).code == Exit.OK
    assert shell("verify").code == Exit.OK
    live = shell.live().builds["jsonl"]
    assert (shell.home / "jsonl" / "current").readlink() == Path(live)
    assert shell.texts("jsonl") == sorted(TEXTS)
    assert shell("sync").code == Exit.OK
