"""Killed at any step, a rebuild leaves a generation that answers; the next plain one ends as if nothing had been."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from chunksink.chunkbus.canonical import text_hash
from chunksink.chunkbus.layout import BusRoot
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.references import raw_hash
from chunksink.sinks.chroma import ChromaSink
from chunksink.sinks.fts import FtsSink
from tests.conftest import ROOT
from tests.rebuild.dying import STEPS
from tests.rebuild.engines import ENGINES
from tests.rebuild.support import FEBRUARY, Home, commit, projected, source

pytestmark = [pytest.mark.promise(2), pytest.mark.promise(5)]

NEW = [source(f"docs/{number}.md", f"tapir {number}", f"zebra {number}", version="2") for number in range(4)]
TEXTS = {str(record["text"]) for records in NEW for record in records}
COMMITTED = {"pointer moved", "old build gone"}
BEFORE_VECTORS = {"chunks half read", "build made"}
GONE_ON_WITH = set(STEPS) - COMMITTED - {"chunks half read", "verified", "sinks flipped"}
# With both engines where that makes a difference; a Chroma that was killed costs seconds to look at.
BOTH = {"chroma sent, not confirmed", "sinks flipped"}

Copy = Callable[..., Home]


def run_until(step: str, home: Home) -> int:
    engines = [sink.name for sink in (maker(home.folder) for maker in home.makers)]
    command = [sys.executable, "-m", "tests.rebuild.dying", str(home.folder), str(home.root.path), step, *engines]
    return subprocess.run(command, cwd=ROOT, timeout=120, check=False).returncode


@pytest.fixture(scope="module")
def copy_of(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A home with two generations, and a bus that has moved on since."""

    @cache
    def build(*engines: str) -> Path:
        folder = tmp_path_factory.mktemp("built")
        home = in_(folder, engines)
        for version in ("0", "1"):
            commit(home.root, "p1", source("docs/0.md", "okapi", version=version))
            home.rebuild()
        commit(home.root, "p1", [record for records in NEW for record in records], at=FEBRUARY)
        return folder

    def in_(folder: Path, engines: tuple[str, ...]) -> Home:
        return Home(folder / "home", BusRoot(folder / "chunks"), *(ENGINES[engine] for engine in engines))

    def copy(*engines: str) -> Home:
        folder = tmp_path_factory.mktemp("copy") / "of"
        shutil.copytree(build(*engines), folder)
        return in_(folder, engines)

    return copy


def answers(home: Home) -> list[str]:
    """The texts that readers of the live generation find by word; where there are vectors, they are found as well."""
    live = home.live()
    found = []
    with closing(FtsSink(home.folder / "fts").reader(live.builds["fts"])) as words:
        for word in ("okapi", "tapir"):
            found += [document.text for document in words.get([hit.id for hit in words.search(word)])]
    if "chroma" in live.builds:
        with closing(ChromaSink.embedded(home.folder / "chroma").reader(live.builds["chroma"])) as vectors:
            (nearest,) = vectors.query(home.encoder.vector(found[0]), 1)
            assert nearest.score > 0.999
    return sorted(found)


def cached_texts(home: Home) -> set[str]:
    """Those of the new texts whose vectors are committed."""
    hashes = {raw_hash(text_hash(text)): text for text in TEXTS}
    with VectorCache.open(home.folder / "vectors.db") as cache:
        found = cache.lookup(home.encoder.fingerprint, list(hashes), dimension=8)
    return {list(hashes.values())[position] for position in found.positions}


@pytest.mark.parametrize("step", STEPS)
def test_killed_at(step: str, copy_of: Copy) -> None:
    home = copy_of("fts", "chroma") if step in BOTH else copy_of("fts")
    before = home.live()
    assert run_until(step, home) == -signal.SIGKILL
    new = [f"tapir {number}" for number in range(4)]
    assert answers(home) == (new if step in COMMITTED else ["okapi"])
    assert (home.live() != before) == (step in COMMITTED)
    committed = cached_texts(home)
    assert bool(committed) == (step not in BEFORE_VECTORS)
    begun = home.unfinished()
    report = home.rebuild()
    assert answers(home) == new
    # What was begun is gone on with; what was verified is shown, and then a new one is made.
    assert (report.generation == begun) == (step in GONE_ON_WITH)
    wanted = projected(*NEW)
    assert all(documents == wanted for documents in home.contents().values())
    # No committed vector is computed again, and all others are.
    assert sorted(home.encoder.asked) == sorted(TEXTS - committed)
    # Live and previous, and nothing that the dead run left; no hidden remains either.
    assert report.generation == home.live().id
    for engine, build in home.live().builds.items():
        assert len(list((home.folder / engine).iterdir())) == 2
        assert build in home.builds()[engine]


def test_a_process_that_is_not_killed_ends_by_itself(copy_of: Copy) -> None:
    """Or the tests above would prove nothing about where they kill."""
    home = copy_of("fts")
    assert run_until("none", home) == 0
    assert home.contents()["fts"] == projected(*NEW)
