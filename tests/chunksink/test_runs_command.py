"""`chunksink runs` reads the records of past runs, whatever became of the run."""

import json
from pathlib import Path

import pytest

from chunksink.chunkbus.runlog import RunLog
from chunksink.exits import Exit
from chunksink.rebuild import run_records
from tests.chunksink.shell import Shell


@pytest.fixture
def home(shell: Shell) -> Path:
    """A sync, one that failed, one that was killed while it wrote, and a rollback; in this order."""
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
def test_the_newest_first_and_what_they_changed(shell: Shell) -> None:
    lines = shell("runs").out.splitlines()
    assert [line.split()[1] for line in lines] == ["rollback", "sync", "rebuild", "sync"]
    assert "generation g1" in lines[0]
    assert "killed or still running" in lines[1]
    assert "failed" in lines[2] and "ValueError" in lines[2]
    assert lines[3].endswith("3 added, 1 removed, 12 chunks written, 2 chunks deleted")
    one = shell("runs", "--limit", "1")
    assert (one.out.splitlines(), one.err) == (lines[:1], "the newest 1 of 4; ask for more with --limit\n")


def test_one_run_by_the_beginning_of_its_id(home: Path, shell: Shell) -> None:
    oldest = list(run_records.past_runs(home))[-1].id
    out = shell("runs", oldest[:-3]).out
    events = [line.split()[1] for line in out.splitlines() if not line.startswith(" ")]
    assert events == ["started", "fault", "finished"]
    assert "slow\\x1b[2J" in out
    assert [event["event"] for event in json.loads(shell("runs", oldest, "--json").out)] == events
    killed = next(one for one in run_records.past_runs(home) if not one.finished)
    assert shell("runs", killed.id).out.endswith("(no end: killed or still running)\n")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("run_id", "told"), [("20", "4 runs begin with 20"), ("nope", "`chunksink runs` lists them"), ("../x", "begins")]
)
def test_an_id_that_names_none_or_several(run_id: str, told: str, shell: Shell) -> None:
    ended = shell("runs", run_id)
    assert (ended.code, told in ended.err) == (Exit.USAGE, True)


def test_without_any_run(shell: Shell) -> None:
    ended = shell("runs")
    assert (ended.code, "no runs in" in ended.err) == (Exit.OK, True)
    assert not shell.home.exists()


def test_only_the_ends_of_a_large_record_are_read(tmp_path: Path) -> None:
    with RunLog(tmp_path, "verify") as log:
        log.write("finding", detail="x" * 200_000)
        log.finish("drift", missing=["y" * 64] * 5_000)
    [found] = run_records.past_runs(tmp_path)
    assert (found.command, found.status, len(found.facts["missing"])) == ("verify", "drift", 5_000)


@pytest.mark.parametrize("content", [b"", b"no json\n", b"[]\n", b'{"event": "started"}'])
def test_a_record_that_cannot_be_read_hinders_nothing(content: bytes, home: Path) -> None:
    (home / "runs" / "29991231T000000000000Z-000000.jsonl").write_bytes(content)
    commands = [one.command for one in run_records.past_runs(home) if one.command]
    assert commands == ["rollback", "sync", "rebuild", "sync"]
    list(run_records.read_events(run_records.find_run(home, "2999")))
