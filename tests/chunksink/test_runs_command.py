"""`chunksink runs` reads the records of past runs, whatever became of the run."""

import json
from pathlib import Path

import pytest

from chunksink.chunkbus.runlog import RunLog
from chunksink.cli import run
from chunksink.exits import Exit
from chunksink.rebuild import run_records


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A sync, one that failed, one that was killed while it wrote, and a rollback; in this order."""
    with RunLog(tmp_path, "sync") as log:
        log.write("fault", sink="chroma", error="slow\x1b[2J")
        families = {"added": 3, "changed": 0, "removed": 1, "unchanged": 7}
        log.finish("ok", families=families, chunks={"written": 12, "deleted": 2})
    with pytest.raises(ValueError), RunLog(tmp_path, "rebuild"):
        raise ValueError
    with RunLog(tmp_path, "sync") as log:
        pass
    with log.path.open("ab") as file:
        file.write(b'{"event": "fini')
    with RunLog(tmp_path, "rollback") as log:
        log.finish("ok", generation="g1")
    return tmp_path


def test_the_newest_first_and_what_they_changed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--home", str(home)]) == Exit.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines] == ["rollback", "sync", "rebuild", "sync"]
    assert "generation g1" in lines[0]
    assert "killed or still running" in lines[1]
    assert "failed" in lines[2]
    assert "ValueError" in lines[2]
    assert lines[3].endswith("3 added, 1 removed, 12 chunks written, 2 chunks deleted")


def test_at_most_so_many(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--home", str(home), "--limit", "1"]) == Exit.OK
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err == "the newest 1 of 4; ask for more with --limit\n"


def test_one_run_by_the_beginning_of_its_id(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    oldest = list(run_records.past_runs(home))[-1].id
    assert run(["runs", oldest[:-3], "--home", str(home)]) == Exit.OK
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines() if not line.startswith(" ")] == [
        "started",
        "fault",
        "finished",
    ]
    assert "slow\\x1b[2J" in out
    assert run(["runs", oldest, "--home", str(home), "--json"]) == Exit.OK
    assert [event["event"] for event in json.loads(capsys.readouterr().out)] == ["started", "fault", "finished"]


def test_a_run_without_an_end_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    killed = next(one for one in run_records.past_runs(home) if not one.finished)
    assert run(["runs", killed.id, "--home", str(home)]) == Exit.OK
    assert capsys.readouterr().out.endswith("(no end: killed or still running)\n")


@pytest.mark.parametrize(
    ("run_id", "told"), [("20", "4 runs begin with 20"), ("nope", "`chunksink runs` lists them"), ("../x", "begins")]
)
def test_an_id_that_names_none_or_several(
    run_id: str, told: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["runs", run_id, "--home", str(home)]) == Exit.USAGE
    assert told in capsys.readouterr().err


def test_without_any_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--home", str(tmp_path / "none")]) == Exit.OK
    assert "no runs in" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_only_the_ends_of_a_large_record_are_read(tmp_path: Path) -> None:
    with RunLog(tmp_path, "verify") as log:
        log.write("finding", detail="x" * 200_000)
        log.finish("drift", missing=["y" * 64] * 5_000)
    [found] = run_records.past_runs(tmp_path)
    assert (found.command, found.status, len(found.facts["missing"])) == ("verify", "drift", 5_000)


@pytest.mark.parametrize("content", [b"", b"\n", b"no json\n", b"[]\n", b'{"event": "started"}'])
def test_a_record_that_cannot_be_read_hinders_nothing(content: bytes, home: Path) -> None:
    (home / "runs" / "29991231T000000000000Z-000000.jsonl").write_bytes(content)
    assert [one.command for one in run_records.past_runs(home) if one.command] == [
        "rollback",
        "sync",
        "rebuild",
        "sync",
    ]
    list(run_records.read_events(run_records.find_run(home, "2999")))
