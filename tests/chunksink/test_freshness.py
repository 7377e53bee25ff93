"""How far the index is behind the chunks, and when it was last compared, from records and times of files."""

import os
from collections.abc import Callable
from time import time

import pytest

from chunksink.chunkbus import runlog
from chunksink.chunkbus.runlog import RunLog, utc_now
from chunksink.command_line.exits import Exit
from chunksink.rebuild import spot_check
from chunksink.rebuild.freshness import Freshness, freshness
from chunksink.rebuild.spot_check import SpotCheck
from chunksink.rebuild.state import State
from chunksink.settings.load import load_config
from chunksink.wiring import status_of
from tests.chunksink.shell import Shell, write
from tests.support.bus import FEBRUARY, source

HOUR = 3600.0


@pytest.fixture
def fresh(quick_shell: Shell) -> Callable[..., Freshness]:
    """The freshness of the shell's home, some seconds from now."""

    def ask(later: float = 0) -> Freshness:
        config = load_config({})
        return freshness(status_of(config), config.home_path, config.bus, time() + later)

    return ask


def verified(shell: Shell, status: str, *, deep: bool = False, changed: int = 0) -> None:
    """Record a `verify` of the live builds."""
    builds = shell.live().builds
    sinks = {name: {"build": build, "changed": changed} for name, build in builds.items()}
    with RunLog(shell.home, "verify") as log:
        log.finish(status, deep=deep, sinks=sinks, drifted=builds if status == "drift" else {})


def changed(shell: Shell, key: str, text: str, *, seconds_ago: float = 0) -> None:
    """Commit a partition with an earlier time."""
    shell.commit(key, source("a.md", text, version=text))
    at = time() - seconds_ago
    for file in (shell.root.manifest_file(key), shell.root.chunks_file(key)):
        os.utime(file, (at, at))


def test_synced_index_has_no_lag_and_no_verdict(quick_shell: Shell, fresh: Callable[..., Freshness]) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    found = fresh(HOUR)
    assert found.lag == 0
    assert found.updated == pytest.approx(HOUR, abs=60)
    assert (found.verified, found.verdict, found.deep_verified, found.has_drift) == (None, None, None, False)
    assert found.failed_run is None


def test_lag_is_the_age_of_the_oldest_pending_partition(quick_shell: Shell, fresh: Callable[..., Freshness]) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    changed(quick_shell, "p1", "a cow", seconds_ago=-HOUR)
    changed(quick_shell, "p2", "a dog", seconds_ago=-2 * HOUR)
    assert fresh(3 * HOUR).lag == pytest.approx(2 * HOUR, abs=60)
    assert quick_shell("sync").code == Exit.OK
    assert fresh(3 * HOUR).lag == 0


def test_change_is_not_older_than_the_last_complete_update(quick_shell: Shell, fresh: Callable[..., Freshness]) -> None:
    """Copying tools keep the modification times of files."""
    quick_shell.synced(p1=[source("a.md", "a cat")])
    changed(quick_shell, "p2", "a dog", seconds_ago=100 * HOUR)
    assert fresh(HOUR).lag == pytest.approx(HOUR, abs=60)


def test_rewritten_partition_counts_from_the_first_failed_sync(
    quick_shell: Shell, fresh: Callable[..., Freshness]
) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    with RunLog(quick_shell.home, "sync") as log:
        log.finish("failed")
    changed(quick_shell, "p1", "a cow", seconds_ago=-HOUR)
    found = fresh(HOUR)
    assert found.lag == pytest.approx(HOUR, abs=60)
    assert found.failed_run is not None and found.failed_run.command == "sync"


def test_ingest_that_changed_nothing_is_no_change(quick_shell: Shell, fresh: Callable[..., Freshness]) -> None:
    write(quick_shell, "notes/a.md", "# A\n\nA cat.\n")
    assert quick_shell("ingest", "notes", "--sync").code == Exit.OK
    assert quick_shell("ingest", "notes").code == Exit.OK
    changed(quick_shell, "p2", "a dog", seconds_ago=-HOUR)
    assert fresh(2 * HOUR).lag == pytest.approx(HOUR, abs=60)
    write(quick_shell, "notes/a.md", "# A\n\nA cow and more.\n")
    assert quick_shell("ingest", "notes").code == Exit.OK
    assert fresh(2 * HOUR).lag == pytest.approx(2 * HOUR, abs=60)


def test_missing_partition_has_a_lag_and_missing_chunks_have_none(
    quick_shell: Shell, fresh: Callable[..., Freshness]
) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")], p2=[source("b.md", "a dog")])
    quick_shell.root.manifest_file("p2").unlink()
    quick_shell.root.chunks_file("p2").unlink()
    assert fresh(HOUR).lag == pytest.approx(HOUR, abs=60)
    assert quick_shell("sync").code == Exit.INVALID_INPUT
    assert fresh(HOUR).lag == pytest.approx(HOUR, abs=60), "its source is held"
    quick_shell.root.path.rename(quick_shell.folder / "elsewhere")
    assert fresh().lag is None


@pytest.mark.parametrize(
    ("runs", "has_drift"),
    [
        ((("drift", False),), True),
        ((("drift", False), ("ok", False)), False),
        ((("drift", True), ("ok", False)), True),
        ((("drift", True), ("ok", True)), False),
        ((("ok", True), ("drift", False)), True),
        ((("drift", False), ("held", False)), True),
    ],
)
def test_drift_lasts_until_a_verify_of_the_same_depth(
    runs: tuple[tuple[str, bool], ...], has_drift: bool, quick_shell: Shell, fresh: Callable[..., Freshness]
) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    for status, deep in runs:
        verified(quick_shell, status, deep=deep)
    assert fresh().has_drift is has_drift


@pytest.mark.parametrize(
    ("deep", "changed", "largest", "has_drift"),
    [(False, 1, 1, False), (True, 0, 1, False), (True, 1, 1, True), (False, 1, 0, True)],
    ids=["text", "missing", "perhaps a vector", "large source"],
)
def test_drift_lasts_until_a_sync_has_compared_the_sink(
    deep: bool,
    changed: int,
    largest: int,
    has_drift: bool,
    quick_shell: Shell,
    fresh: Callable[..., Freshness],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    verified(quick_shell, "drift", deep=deep, changed=changed)
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    assert quick_shell("sync").code == Exit.OK
    assert fresh().has_drift, "the new generation shares the build, which was not compared"
    monkeypatch.setattr(spot_check, "MAX_CHUNKS", largest)
    with State.existing(quick_shell.home) as state:
        SpotCheck(state.db, state.live().builds["fts"]).note_scan(utc_now())
    assert fresh().has_drift is has_drift


def test_verdict_and_drift_outlast_a_week_of_syncs(
    quick_shell: Shell, fresh: Callable[..., Freshness], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runlog, "KEPT", 300)
    quick_shell.synced(p1=[source("a.md", "a cat")])
    verified(quick_shell, "drift", deep=True)
    for _ in range(400):
        with RunLog(quick_shell.home, "sync") as log:
            log.finish("ok")
    found = fresh()
    assert (found.verdict, found.deep_verdict, found.has_drift) == ("drift", "drift", True)


def test_verify_records_its_depth_and_verdict(quick_shell: Shell, fresh: Callable[..., Freshness]) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    assert quick_shell("verify", "--deep").code == Exit.OK
    assert quick_shell("verify").code == Exit.OK
    found = fresh(HOUR)
    assert (found.verdict, found.deep_verdict) == ("ok", "ok")
    assert found.verified is not None and found.deep_verified is not None
    assert found.verified < found.deep_verified


def test_failed_ingest_is_not_hidden_by_a_sync(quick_shell: Shell, fresh: Callable[..., Freshness]) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    assert quick_shell("ingest", "not-mounted").code == Exit.USAGE
    assert quick_shell("sync").code == Exit.OK
    failed = fresh().failed_run
    assert failed is not None and failed.command == "ingest"
    write(quick_shell, "notes/a.md", "# A\n\nA cat.\n")
    assert quick_shell("ingest", "notes").code == Exit.OK
    assert fresh().failed_run is None


def test_run_that_met_another_one_did_not_fail(quick_shell: Shell, fresh: Callable[..., Freshness]) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    with RunLog(quick_shell.home, "sync") as log:
        log.finish("failed", error="HomeLocked")
    assert fresh().failed_run is None
    with RunLog(quick_shell.home, "rebuild") as log:
        log.finish("failed", error="Brake")
    failed = fresh().failed_run
    assert failed is not None and failed.error == "Brake"
    quick_shell.commit("p1", source("a.md", "a cow", version="2"), at=FEBRUARY)
    assert quick_shell("sync").code == Exit.OK
    assert fresh().failed_run is None


def test_status_that_does_not_read_chunks_names_no_held_family(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")], p2=[source("b.md", "a boat")])
    quick_shell.remove("p1")
    assert quick_shell("sync").code == Exit.INVALID_INPUT
    status = status_of(load_config({}), reads_chunks=False)
    assert (status.held, status.held_families) == (1, ())
