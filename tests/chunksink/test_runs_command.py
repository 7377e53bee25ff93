"""`chunksink runs` shows records of past runs, including failed and killed ones."""

import json
from pathlib import Path

import pytest

from chunksink.chunkbus.runlog import RunLog
from chunksink.command_line.exits import Exit
from chunksink.rebuild import run_records
from tests.chunksink.shell import Shell


@pytest.fixture
def home(shell: Shell) -> Path:
    """In this order: a sync, a failed sync, a sync killed during its writes, and a rollback."""
    with RunLog(shell.home, "sync") as log:
        log.write("fault", sink="chroma", error="slow\x1b[2J")
        families = {"added": 3, "changed": 0, "removed": 1, "unchanged": 7}
        log.finish("ok", families=families, chunks={"written": 12, "deleted": 2})
    with pytest.raises(ValueError), RunLog(shell.home, "rebuild"):
        raise ValueError
    with RunLog(shell.home, "sync") as log:
        pass
    with log.path.open("ab") as file:
        file.write(b'{"event": "fini')
    with RunLog(shell.home, "rollback") as log:
        log.finish("ok", generation="g1")
    return shell.home


@pytest.mark.usefixtures("home")
def test_runs_are_listed_newest_first_with_their_changes(shell: Shell) -> None:
    lines = shell("runs").out.splitlines()
    assert [line.split()[1] for line in lines] == ["rollback", "sync", "rebuild", "sync"]
    assert "generation g1" in lines[0]
    assert "killed or still running" in lines[1]
    assert "failed" in lines[2] and "ValueError" in lines[2]
    assert lines[3].endswith("3 added, 1 removed, 12 chunks written, 2 chunks deleted")
    one = shell("runs", "--limit", "1")
    assert (one.out.splitlines(), "1 of 4" in one.err) == (lines[:1], True)


def test_run_named_by_the_beginning_of_its_id_is_shown_whole(home: Path, shell: Shell) -> None:
    oldest = list(run_records.past_runs(home))[-1].id
    out = shell("runs", oldest[:-3]).out
    events = [line.split()[1] for line in out.splitlines() if not line.startswith(" ")]
    assert events == ["started", "fault", "finished"]
    assert "slow\\x1b[2J" in out
    assert [event["event"] for event in json.loads(shell("runs", oldest, "--json").out)] == events
    killed = next(one for one in run_records.past_runs(home) if not one.finished)
    assert shell("runs", killed.id).out.endswith("(no end: killed or still running)\n")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("run_id", ["20", "nope", "../x"])
def test_run_id_that_matches_none_or_several_is_a_usage_error(run_id: str, shell: Shell) -> None:
    assert shell("runs", run_id).code == Exit.USAGE


def test_runs_without_a_home_is_empty_and_creates_none(shell: Shell) -> None:
    assert json.loads(shell("runs", "--json").out) == []
    assert not shell.home.exists()


def test_large_record_is_summarised_from_its_ends(tmp_path: Path) -> None:
    with RunLog(tmp_path, "verify") as log:
        log.write("finding", detail="x" * 200_000)
        log.finish("drift", missing=["y" * 64] * 5_000)
    [found] = run_records.past_runs(tmp_path)
    assert (found.command, found.status, len(found.facts["missing"])) == ("verify", "drift", 5_000)


@pytest.mark.parametrize("content", [b"", b"no json\n", b"[]\n", b'{"event": "started"}'])
def test_unreadable_record_does_not_affect_the_others(content: bytes, home: Path) -> None:
    (home / "runs" / "29991231T000000000000Z-000000.jsonl").write_bytes(content)
    commands = [one.command for one in run_records.past_runs(home) if one.command]
    assert commands == ["rollback", "sync", "rebuild", "sync"]
    list(run_records.read_events(run_records.find_run(home, "2999")))
