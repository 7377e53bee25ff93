"""`chunksink rebuild --fresh-cache`: every vector is computed anew, and nothing goes before the run may begin."""

import pytest

from chunksink.exits import Exit
from chunksink.rebuild.locks import RebuildLock
from tests.chunksink.shell import Shell
from tests.support.bus import FEBRUARY, source

TAKE = RebuildLock.__call__

MANY = [source(f"{number:02}.md", f"text {number}") for number in range(20)]


@pytest.fixture
def filled(shell: Shell) -> Shell:
    return shell.begin("filled", "sync", p1=MANY)


def rebuilt(shell: Shell, *arguments: str) -> tuple[int, int]:
    """How many vectors a rebuild computed, and how many it found in the cache."""
    ended = shell("rebuild", "--json", *arguments)
    assert ended.code == Exit.OK
    told = ended.json["embeddings"]
    return told["computed"], told["cached"]


def test_every_vector_is_computed_anew(filled: Shell) -> None:
    assert rebuilt(filled) == (0, 20)
    assert rebuilt(filled, "--fresh-cache") == (20, 0)
    assert rebuilt(filled) == (0, 20)
    assert filled("verify", "--deep").code == Exit.OK


def test_a_rebuild_that_is_refused_drops_none(filled: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, RebuildLock(filled.home)():
        patched.setattr(RebuildLock, "__call__", lambda lock: TAKE(lock, 0.1))
        assert filled("rebuild", "--fresh-cache").code == Exit.LOCKED
    assert rebuilt(filled) == (0, 20)
    filled.commit("p1", *MANY[:8], at=FEBRUARY)
    assert filled("rebuild", "--fresh-cache").code == Exit.BRAKE
    filled.commit("p1", *MANY, at=FEBRUARY)
    assert rebuilt(filled) == (0, 20)
