"""Whoever asks what to do hears of the brake, and of the number that lets a run go on, before a run stops at it."""

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.support.bus import FEBRUARY, source

MANY = [source(f"{number:02}.md", f"text {number}") for number in range(20)]
BRAKE = {"removed": 12, "total": 20, "flag": "--allow-deletions 12", "chunks": 12}


@pytest.fixture
def braked(quick_shell: Shell) -> Shell:
    """Of twenty sources twelve are gone."""
    quick_shell.begin("to brake", "sync", p1=MANY)
    quick_shell.commit("p1", *MANY[:8], at=FEBRUARY)
    return quick_shell


def test_a_plan_tells_what_its_sync_would_stop_at(braked: Shell) -> None:
    ended = braked("plan")
    assert ended.code == Exit.OK
    assert "a sync would stop at the brake: 12 of the 20 sources in the index, with 12 chunks" in ended.out
    assert "`chunksink sync --allow-deletions 12` goes on, also with --plan\n" in ended.out
    plan = braked("plan", "--json").json
    assert plan["brake"] == BRAKE
    assert braked("sync", "--plan", plan["hash"]).code == Exit.BRAKE
    assert braked("sync", "--plan", plan["hash"], *plan["brake"]["flag"].split()).code == Exit.OK
    assert braked("plan", "--json").json["brake"] is None
    assert "brake" not in braked("plan").out


def test_a_sink_that_is_new_is_built_first_and_stops_too(braked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "jsonl")
    assert braked("plan", "--json").json["brake"] == BRAKE
    assert braked("sync").code == Exit.BRAKE
    assert braked("sync", "--allow-deletions", "12").code == Exit.OK


def test_status_tells_it_once_the_chunks_were_read(braked: Shell) -> None:
    assert "run `chunksink sync`" in braked("status").out
    assert braked("status", "--json").json["brake"] is None
    assert braked("sync").code == Exit.BRAKE
    out = braked("status").out
    assert "run `chunksink sync`" not in out
    assert "12 of the 20 sources in the index, with 12 chunks, would be removed" in out
    assert "`chunksink sync --allow-deletions 12` removes them\n" in out
    assert braked("status", "--json").json["brake"] == BRAKE


def test_verify_promises_no_repair_that_the_brake_stops(braked: Shell) -> None:
    ended = braked("verify")
    assert ended.code == Exit.DRIFT
    assert "where a large share of the sources would be removed it stops before it writes" in ended.err
    ended = braked("verify", "--repair")
    assert ended.code == Exit.BRAKE
    assert "puts it right" not in ended.err
    assert "12 of the 20 sources" in ended.err
    assert "--allow-deletions 12" in ended.err
    assert braked("verify", "--repair", "--allow-deletions", "12").code == Exit.OK


@pytest.mark.promise(6)
def test_what_sinks_beside_those_of_a_rebuild_had_counts(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no record is left of it: the rebuild of one sink would leave the others' builds to nobody."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    shell.synced(p1=(source(f"docs/{number}.md", f"text {number}") for number in range(50)))
    shell.commit("p1", *(source(f"docs/{number}.md", f"text {number}") for number in range(20)))
    for file in shell.home.glob("state.db*"):
        file.unlink()
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    refused = shell("rebuild", "--sink", "jsonl")
    assert refused.code == Exit.BRAKE
    assert "--allow-deletions 30" in refused.err
    assert shell("rebuild", "--allow-deletions", "30").code == Exit.OK
