"""Run records can be read during a run, after it, and after it was killed."""

import json
import resource
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from chunksink.chunkbus import runlog
from chunksink.chunkbus.findings import Finding, Severity
from chunksink.chunkbus.runlog import RunLog, new_run_id, read_run

FINDING = Finding("A:b", Severity.WARNING, "k", 3, "is odd")


def test_event_is_in_the_file_when_the_call_returns(tmp_path: Path) -> None:
    with RunLog(tmp_path / "home", "validate") as log:
        assert [event["event"] for event in read_run(log.path)] == ["started"]
        log.finding(FINDING)
        assert [event["event"] for event in read_run(log.path)] == ["started", "finding"]
        log.finish("ok", chunks=7)
    started, finding, finished = read_run(log.path)
    assert started["command"] == "validate"
    assert {event["run_id"] for event in (started, finding, finished)} == {log.run_id} == {log.path.stem}
    place = {"code": "A:b", "severity": "warning", "partition": "k", "line": 3, "detail": "is odd"}
    assert {name: finding[name] for name in place} == place
    assert (finished["event"], finished["status"], finished["chunks"]) == ("finished", "ok", 7)
    assert log.path.parent == tmp_path / "home" / "runs"


@pytest.mark.parametrize("severity", Severity)
def test_finding_is_logged_with_its_severity(
    severity: Severity, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "chunksink.runs"), RunLog(tmp_path, "validate") as log:
        log.finding(replace(FINDING, severity=severity))
    [announced] = [record for record in caplog.records if record.__dict__["event"] == "finding"]
    assert announced.__dict__["severity"] == severity


@pytest.mark.parametrize(
    ("error", "status"),
    [(KeyboardInterrupt, "interrupted"), (BrokenPipeError, "interrupted"), (ZeroDivisionError, "failed")],
)
def test_run_when_it_raises_records_its_status(error: type[BaseException], status: str, tmp_path: Path) -> None:
    with pytest.raises(error), RunLog(tmp_path, "validate") as log:
        raise error
    finished = list(read_run(log.path))[-1]
    assert (finished["event"], finished["status"], finished["error"]) == ("finished", status, error.__name__)


@pytest.mark.parametrize("ahead", ["20360101T000000000000Z-ffffff", "20361231T235959999999Z-ffffff"])
def test_run_id_when_the_clock_was_ahead_sorts_last(ahead: str, tmp_path: Path) -> None:
    """For example if the clock ran ahead. Otherwise the new record would be removed first, and never be the newest."""
    (tmp_path / "runs").mkdir()
    for name in (*(f"20350101T{number:012}Z-aaaaaa" for number in range(runlog.KEPT)), ahead):
        (tmp_path / "runs" / f"{name}.jsonl").touch()
    for _ in range(3):
        with RunLog(tmp_path, "sync") as log:
            assert max((tmp_path / "runs").iterdir()) == log.path
    assert len(list((tmp_path / "runs").iterdir())) == runlog.KEPT
    (tmp_path / "runs" / "99999999T999999999999Z-ffffff.jsonl").touch()
    with RunLog(tmp_path, "sync") as log:
        assert log.path.exists()


def test_run_when_it_raises_after_finish_finishes_once(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), RunLog(tmp_path, "validate") as log:
        log.finish("ok")
        raise ZeroDivisionError
    assert [event["event"] for event in read_run(log.path)] == ["started", "finished"]


def test_write_when_the_disk_is_full_raises_an_error_with_the_path(tmp_path: Path) -> None:
    """A line that does not fit is not written in part, and the first error is raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    full = pytest.raises(OSError, match="File too large")
    try:
        with full as caught, RunLog(tmp_path, "sync") as log:
            resource.setrlimit(resource.RLIMIT_FSIZE, (log.path.stat().st_size + 50, hard))
            log.finding(FINDING)
        with pytest.raises(ZeroDivisionError), RunLog(tmp_path, "sync"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
            raise ZeroDivisionError
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == str(log.path)
    assert log.path.read_bytes().endswith(b"\n")
    assert [event["event"] for event in read_run(log.path)] == ["started"]


def test_read_run_when_the_last_line_is_cut_off_omits_it(tmp_path: Path) -> None:
    with RunLog(tmp_path, "validate") as log:
        log.finding(FINDING)
    whole = log.path.read_bytes()
    ends = [index for index in range(len(whole) + 1) if whole[:index].endswith(b"\n")]
    for length in range(len(whole) + 1):
        log.path.write_bytes(whole[:length])
        assert len(list(read_run(log.path))) == sum(end <= length for end in ends)


def test_read_run_when_a_line_is_being_written_ends_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that grows after a reader has seen its end."""
    lines = iter([b'{"event":"started"}\n', b'{"eve', b'nt":"finding"}\n'])
    monkeypatch.setattr(Path, "open", lambda path, mode: nullcontext(lines))
    assert [event["event"] for event in read_run(Path("x"))] == ["started"]


def test_run_ids_sort_by_time_and_are_unique(tmp_path: Path) -> None:
    names = [new_run_id() for _ in range(2_000)]
    assert len(set(names)) == len(names)
    assert [name.split("-")[0] for name in names] == sorted(name.split("-")[0] for name in names)
    with RunLog(tmp_path, "a") as one, RunLog(tmp_path, "b") as two:
        assert one.path != two.path


def test_write_outside_the_block_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        RunLog(tmp_path, "validate").finding(FINDING)
    assert list(tmp_path.iterdir()) == []


def test_record_lines_are_plain_json(tmp_path: Path) -> None:
    with RunLog(tmp_path, "validate") as log:
        log.write("note", text='Zürich\n"quoted"\u2028')
    lines = log.path.read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["event"] for line in lines[:-1]] == ["started", "note"]
    assert lines[-1] == ""


def test_old_records_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runlog, "KEPT", 3)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "notes.txt").touch()
    ids = []
    with RunLog(tmp_path, "long") as long:
        for _ in range(5):
            with RunLog(tmp_path, "validate") as log:
                ids.append(log.run_id)
        long.write("note", text="its record has no name any more")
    left = sorted(file.name for file in (tmp_path / "runs").iterdir())
    assert left == [*(f"{id}.jsonl" for id in ids[-3:]), "notes.txt"]


def test_records_of_rare_commands_outlast_frequent_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last weekly `verify` must be found beside a sync every few minutes."""
    monkeypatch.setattr(runlog, "KEPT", 3)
    monkeypatch.setattr(runlog, "KEPT_LASTING", 2)
    ids = []
    for command in ("verify", "rebuild", "sync", "verify", "sync", "ingest", "sync", "ingest"):
        with RunLog(tmp_path, command) as log:
            ids.append(log.run_id)
    left = sorted(file.stem for file in (tmp_path / "runs").iterdir())
    assert left == [ids[1], ids[3], *ids[-3:]]
