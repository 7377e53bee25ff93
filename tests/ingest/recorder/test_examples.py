"""The examples are read as docs/seams.md describes."""

from pathlib import Path

from tests.ingest.recorder.support import check_replay, read_file

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "recorder"


def test_example_log() -> None:
    read = read_file(EXAMPLES / "session.jsonl")
    assert read.documents == {
        "session.jsonl#session=monday&pane=1&part=0": [
            "[IN] make report\n[OUT] reading readings.csv: 412 rows\n[OUT] report.pdf written, 3 probes off",
            "[IN] probes --out-of-range\n[OUT] P-07  P-11  P-23",
        ],
        "session.jsonl#session=monday&pane=2&part=0": [
            "[OUT] watcher: spool is empty",
            "[OUT] watcher: back after an overflow, some lines are lost",
        ],
    }
    assert read.notices == []
    check_replay(read)


def test_example_recording() -> None:
    read = read_file(EXAMPLES / "demo.cast")
    assert read.texts == [
        "[OUT] $ cal P-07\n[OUT] P-07: offset 0.013, within tolerance",
        "[OUT] $ cal P-11\n[OUT] P-11: offset 0.208, replace it",
    ]
    assert read.sections == [None, ["Second probe"]]
    assert read.metadata("occurred_at_start_ms") == [1767600000500, 1767600003300]
    assert read.notices == []
    check_replay(read)
