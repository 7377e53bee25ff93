"""Every sync compares a part of each live build with its receipts, so drift is found within a round."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild import spot_check
from chunksink.rebuild.spot_check import Coverage, SpotCheck
from chunksink.rebuild.state import State
from chunksink.sinks.chroma.seal import DATABASE
from chunksink.sinks.contract import Sink
from tests.support.bus import FEBRUARY, commit, parent_of, projected, source
from tests.support.home import Home, sinks_with
from tests.support.local_engines import chroma, fts, jsonl, memory
from tests.support.tampering import altered, live_build, put, require_sound
from tests.support.watched_sinks import Calls, WrappedBuild, with_builds

pytestmark = pytest.mark.promise(4)

ENGINES: dict[str, Callable[[], Callable[[Path], Sink]]] = {
    "fts": lambda: fts,
    "jsonl": lambda: jsonl,
    "memory": memory,
    "chroma": lambda: chroma,
}
SOURCES = [source(f"docs/{number}.md", f"one {number}", f"two {number}") for number in range(10)]
PART = 4
"""Documents, so that two sources are compared at a time."""
ROUND = 5


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spot_check, "MIN_DOCUMENTS", PART)


def indexed(tmp_path: Path, root: BusRoot, engine: str) -> Home:
    home = Home(tmp_path / "home", root, ENGINES[engine]())
    commit(root, "p1", [record for records in SOURCES for record in records])
    home.rebuild()
    return home


def overwrite(home: Home, engine: str, *names: str) -> None:
    """Some documents have other texts; the number and the marker are unchanged."""
    documents = [d for records in SOURCES for d in projected(records) if d.source_uri in names]
    put(home, engine, [altered(document, text="somebody else's words") for document in documents])
    break_seal(home)


def break_seal(home: Home) -> None:
    """Another program changes Chroma's database but not the seal."""
    for file in (home.folder / "chroma").glob(f"*/{DATABASE}"):
        os.utime(file)


def coverage(home: Home, engine: str) -> Coverage:
    with State(home.folder) as state:
        return SpotCheck(state.db, state.live().builds[engine]).coverage()


class Compared(list[list[str]]):
    """The families that builds were asked for, by call."""

    def __call__(self, sink: Sink) -> Any:
        return with_builds("", lambda build: _Asked(build, self))(sink)


class _Asked(WrappedBuild):
    def __init__(self, build: Any, compared: Compared) -> None:
        super().__init__(build)
        self._compared = compared

    def of_families(self, parent_ids: list[str], **options: bool) -> Any:
        self._compared.append(list(parent_ids))
        return self._build.of_families(parent_ids, **options)


@pytest.mark.parametrize("engine", ENGINES)
def test_overwritten_document_is_found_within_a_round(engine: str, root: BusRoot, tmp_path: Path) -> None:
    home = indexed(tmp_path, root, engine)
    assert coverage(home, engine).syncs_a_round == ROUND
    overwrite(home, engine, "docs/3.md", "docs/7.md")
    for _ in range(ROUND):
        outcome = home.sync()
        if sinks_with(outcome, "drifted"):
            break
    assert (outcome.sinks[engine].drifted, outcome.sinks[engine].altered, outcome.sinks[engine].lost) == (True, 2, 0)
    assert outcome.sinks[engine].families.changed == 2
    require_sound(home, tmp_path)
    assert sinks_with(home.sync(), "scanned") == []


def test_round_of_syncs_compares_every_source_once(root: BusRoot, tmp_path: Path) -> None:
    home = indexed(tmp_path, root, "fts")
    rebuilt = coverage(home, "fts").compared_since
    assert rebuilt is not None, "a rebuild compares all"
    compared = Compared()
    for _ in range(ROUND):
        assert coverage(home, "fts").compared_since == rebuilt
        home.sync(wrap=compared)
    assert [len(some) for some in compared] == [2] * ROUND
    assert sorted(family for some in compared for family in some) == sorted(
        parent_of(f"docs/{number}.md") for number in range(10)
    )
    first = coverage(home, "fts").compared_since
    assert first is not None
    assert first > rebuilt


def test_unconfirmed_sources_are_not_compared(root: BusRoot, tmp_path: Path) -> None:
    """Edited, removed and held sources, and those in an unknown state, are left to the plan or a scan."""
    home = indexed(tmp_path, root, "fts")
    edited = source("docs/0.md", "edited 0", "two 0", version="2", at=FEBRUARY)
    commit(root, "p1", [*edited, *(record for records in SOURCES[2:] for record in records)], at=FEBRUARY)
    compared = Compared()
    calls = Calls()
    for _ in range(ROUND + 1):
        outcome = home.sync(wrap=lambda sink: compared(calls(sink)))
        assert sinks_with(outcome, "scanned") == []
    assert calls.sent("fts") == [parent_of("docs/0.md")]
    assert parent_of("docs/1.md") not in {family for some in compared[1:] for family in some}


def test_lost_source_is_counted_as_lost(root: BusRoot, tmp_path: Path) -> None:
    home = indexed(tmp_path, root, "fts")
    with live_build(home, "fts") as build:
        build.delete([parent_of("docs/1.md"), parent_of("docs/2.md")])
    outcome = home.sync()
    assert (outcome.sinks["fts"].lost, outcome.sinks["fts"].altered) == (2, 0)
    assert outcome.sinks["fts"].drifted_sources == ("docs/1.md", "docs/2.md")
    require_sound(home, tmp_path)


@pytest.mark.parametrize(("factor", "syncs"), [(1, ROUND), (2, 3)])
def test_unwritten_embedded_build_is_not_opened(
    factor: int, syncs: int, root: BusRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening it takes longer than the rest of an idle sync."""
    monkeypatch.setattr(spot_check, "AT_REST_FACTOR", factor)
    home = indexed(tmp_path, root, "chroma")
    compared = Compared()
    home.sync(wrap=compared)
    assert compared == []
    break_seal(home)
    for _ in range(3 * ROUND):
        home.sync(wrap=compared)
    assert len(compared) == 2 * syncs, "the round that had begun and a complete one"


def test_very_large_source_is_left_to_verify(tmp_path: Path, root: BusRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spot_check, "MAX_CHUNKS", 1)
    home = indexed(tmp_path, root, "fts")
    overwrite(home, "fts", "docs/0.md")
    assert [sinks_with(home.sync(), "scanned") for _ in range(2 * ROUND)] == [[]] * 2 * ROUND
    assert not home.verify().ok


def test_round_over_20_000_documents_takes_at_most_100_syncs(root: BusRoot, tmp_path: Path) -> None:
    home = indexed(tmp_path, root, "fts")
    with State(home.folder) as state:
        build = state.live().builds["fts"]
        for documents in (2_001, 5_279, 19_999, 20_000):
            state.db.execute("update receipt set documents = ? / (select count(*) from receipt)", [documents])
            assert SpotCheck(state.db, build).coverage().syncs_a_round <= 100
