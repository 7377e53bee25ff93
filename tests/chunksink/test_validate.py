"""`chunksink validate`: what it prints, records and answers, for every code of the taxonomy."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import read_run
from chunksink.cli import run
from chunksink.exits import Exit
from tests.chunkbus.cases import CASES, KEY, Case
from tests.chunkbus.samples import chunk, lines_of, listing, put

Validate = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BusRoot:
    """A bus that is not there yet, in the folder where the command runs."""
    monkeypatch.chdir(tmp_path)
    for name in ("CHUNKS", "HOME", "REQUIRE_SOURCE_CHECKSUM"):
        monkeypatch.delenv(f"CHUNKSINK_{name}", raising=False)
    return BusRoot(tmp_path / "chunks")


@pytest.fixture
def call(root: BusRoot, capsys: pytest.CaptureFixture[str]) -> Validate:
    def run_it(*arguments: str) -> tuple[int, str, str]:
        code = run(["validate", *arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run_it


def records(folder: Path) -> list[list[dict[str, Any]]]:
    return [list(read_run(path)) for path in sorted((folder / "runs").iterdir())]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_code_as_json_as_text_and_in_the_run_record(case: Case, root: BusRoot, call: Validate) -> None:
    case.build(root)
    before = listing(root.path)
    flags = ["--require-source-checksum"] if case.require_source_checksum else []
    expected_exit = Exit.INVALID_INPUT  # zero only when clean: a warning counts too

    code, out, _ = call("--json", *flags)
    report = json.loads(out)
    assert code == expected_exit
    assert list(report) == ["ok", "partitions", "chunks", "findings"]
    assert report["ok"] is (code == 0)
    for finding in report["findings"]:
        assert list(finding) == ["code", "severity", "partition", "line", "detail"]
    assert [tuple(finding.values())[:4] for finding in report["findings"]] == case.places()

    code, out, err = call(*flags)
    assert code == expected_exit
    lines = out.splitlines()[: len(case.places())]
    for line, (name, _, partition, number), finding in zip(lines, case.places(), report["findings"], strict=True):
        place = partition if number is None else f"{partition}:{number}"
        mark = " (warning)" if case.severity == "warning" else ""
        assert line == f"{name} {place} {finding['detail']}{mark}"
    assert findings.MEANINGS[case.code][1] in err

    assert listing(root.path) == before
    for events in records(Path(".chunksink")):
        found = [
            [event[name] for name in ("code", "severity", "partition", "line", "detail")] for event in events[1:-1]
        ]
        assert found == [list(finding.values()) for finding in report["findings"]]
        assert (events[0]["event"], events[0]["command"]) == ("started", "validate")
        assert events[-1]["status"] == ("ok" if code == 0 else "invalid")
        assert events[-1]["chunks"] == report["chunks"]


def test_a_clean_bus_says_so(root: BusRoot, call: Validate) -> None:
    put(root, KEY, lines_of([chunk(0), chunk(1)]))
    put(root, "empty", b"")
    code, out, err = call()
    assert (code, err) == (0, "")
    assert out == "clean: 2 partitions, 2 chunks in chunks\n"
    assert call("--json")[:2] == (0, '{\n  "ok": true,\n  "partitions": 2,\n  "chunks": 2,\n  "findings": []\n}\n')


def test_an_empty_bus_is_clean(root: BusRoot, call: Validate) -> None:
    root.canonical.mkdir(parents=True)
    code, out, _ = call()
    assert code == 0
    assert "nothing here yet" in out


def test_only_the_partitions_that_are_named(root: BusRoot, call: Validate) -> None:
    put(root, "bad", b"{\n")
    put(root, "good", lines_of([chunk(0)]))
    put(root, "fine", b"")
    assert call("--partition", "good", "--partition", "fine")[:2] == (0, "clean: 2 partitions, 1 chunk in chunks\n")
    assert call("--partition", "bad")[0] == Exit.INVALID_INPUT
    code, out, err = call("--partition", "absent", "--partition", "good")
    assert (code, out) == (Exit.USAGE, "")
    assert "no partition absent in chunks; there are bad, fine, good" in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--chunks", "nowhere"], "no chunks at nowhere"),
        (["--partition", "../etc"], "'../etc' cannot name a partition"),
        (["--partition", "x" * 300], "cannot name a partition"),
        (["--jobs", "0"], "--jobs"),
        (["--no-such-flag"], "--no-such-flag"),
        (["--home", "a-file"], "a-file"),
    ],
)
def test_a_call_that_makes_no_sense(arguments: list[str], told: str, root: BusRoot, call: Validate) -> None:
    put(root, KEY, b"")
    Path("a-file").write_text("")
    before = listing(root.path)
    code, out, err = call(*arguments)
    assert (code, out) == (Exit.USAGE, "")
    assert told in err
    assert listing(root.path) == before


def test_jobs_do_not_change_what_is_found(root: BusRoot, call: Validate) -> None:
    for number in range(3):
        lines = [chunk(index, uri=f"docs/{number}-{index}.md", text="x" * 900) for index in range(2_000)]
        lines[100] = lines[1_900]
        put(root, f"p{number}", lines_of(lines) + b"{\n")
    assert call("--json", "--jobs", "1") == call("--json", "--jobs", "2")
