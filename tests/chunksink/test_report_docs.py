"""docs/reports.md lists exactly the fields that the reports have."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell, write
from tests.conftest import ROOT
from tests.support.bus import FEBRUARY, source

DOCS = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
SINKS = ("fts", "jsonl")
COUNTS = ("left_out", "left_out_from", "left_out_folders", "kinds", "other_kinds", "gone")
WHOLE = ("held", "held_sources", "last_run", "last_verify", "previous", "model_change", "evaluation", *COUNTS)


def documented(title: str) -> set[str]:
    """The fields in the table below the heading with this beginning."""
    (section,) = [part for part in DOCS.split("\n## ")[1:] if part.startswith(title)]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {field for cell in cells for field in re.findall("`([^`]+)`", cell)}


def fields(report: Any, path: str = "") -> Iterator[str]:
    """The names of all leaves. An empty object or a list counts as one leaf."""
    if not isinstance(report, dict) or not report or path in WHOLE:
        yield path
        return
    for name, value in report.items():
        name = "*" if name in SINKS else name
        yield from fields(value, f"{path}.{name}" if path else name)


def require_documented(title: str, report: Any) -> None:
    expected, there = documented(title), set(fields(report))
    assert {
        field for field in there if field not in expected and not any(t.startswith(f"{field}.") for t in expected)
    } == set()
    begun = {".".join(field.split(".")[:depth]) for field in there for depth in range(1, 5)}
    absent = {field for field in expected if field not in begun and not any(field.startswith(f"{t}.") for t in there)}
    assert absent == set()


@pytest.fixture
def many(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("CHUNKSINK_SINKS", ",".join(SINKS))
    quick_shell.commit("p1", *(source(f"{number}.md", f"text {number}") for number in range(12)))
    return quick_shell


def test_every_report_field_is_documented(many: Shell) -> None:
    require_documented("`chunksink sync", many("sync", "--json").json)
    require_documented("`chunksink sync", many("rebuild", "--json").json)
    require_documented("`chunksink plan", many("plan", "--json").json)
    require_documented("`chunksink verify", many("verify", "--json").json)
    require_documented("`chunksink status", many("status", "--json").json)


def test_every_field_of_an_ingest_is_documented(quick_shell: Shell) -> None:
    write(quick_shell, "docs/a.md", "# A\n\nA text.\n")
    write(quick_shell, "docs/empty.md", "")
    require_documented("`chunksink ingest", quick_shell("ingest", "docs", "--json").json)
    with_sync = quick_shell("ingest", "docs", "--sync", "--json").json
    assert with_sync.keys() == {"ingest", "sync"}
    require_documented("`chunksink ingest", with_sync["ingest"])


def test_failure_report_is_documented(many: Shell) -> None:
    assert many("sync").code == Exit.OK
    many.commit("p1", at=FEBRUARY)
    require_documented("`chunksink plan", many("plan", "--json").json)
    ended = many("sync", "--json")
    assert ended.code == Exit.BRAKE
    require_documented("When a command fails", ended.json)
    assert ended.json["brake"] == {"removed": 12, "total": 12, "flag": "--allow-deletions 12", "chunks": 12}
    assert ended.json["error"]["exit_code"] == Exit.BRAKE
    assert ended.err == f"Error: {ended.json['error']['message']}\n"
    wrong = many("search", "--no-such-option", "--json")
    assert (wrong.code, wrong.json["error"]["exit_code"]) == (Exit.USAGE, Exit.USAGE)


@pytest.mark.skipif(which("jq") is None, reason="needs jq")
@pytest.mark.parametrize(
    ("harm", "expected"),
    [("withdrawn", "12"), ("none", ""), ("cut off", "MISMATCH"), ("no chunks", "no chunks at")],
)
def test_documented_pipeline_runs(
    harm: str, expected: str, many: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    assert many("sync").code == Exit.OK
    if harm == "cut off":
        many.cut_off("p1")
    if harm == "withdrawn":
        many.commit("p1", at=FEBRUARY)
    if harm == "no chunks":
        many.root.path.rename(tmp_path / "away")
    (script,) = re.findall("```sh\n(.*?)```", DOCS, re.DOTALL)
    ended = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, cwd=many.folder)
    assert expected.lower() in ended.stdout.lower() if expected else ended.stdout == ""
