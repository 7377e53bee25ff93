"""The comparison with other tools: its sources, and its trials of chunksink."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bench.faults import corpus
from bench.result_file import write_results
from tests.conftest import HEAVY, ROOT


def test_edited_source_has_other_marks(tmp_path: Path) -> None:
    for number in range(3):
        corpus.write(tmp_path, number, random.Random(number))
    before = corpus.marks_of(tmp_path)
    corpus.edit(tmp_path, ["doc-001.md"], random.Random(0))
    after = corpus.marks_of(tmp_path)
    assert [name for name in before if before[name] != after[name]] == ["doc-001.md"]
    assert not before["doc-001.md"] & after["doc-001.md"]
    assert all(set(marks.values()) == {1} for marks in after.values())


@pytest.mark.parametrize("entries", [[{"a": [1, 2]}, {"b": None}], {"x": {"a": [1, 2]}, "y": {"b": 0.5}}])
def test_results_have_a_line_for_each_entry(entries: object, tmp_path: Path) -> None:
    file, results = tmp_path / "new" / "results.json", {"date": "today", "versions": {"c": "1"}, "entries": entries}
    write_results(file, results)
    assert json.loads(file.read_bytes()) == results
    assert len(file.read_text().splitlines()) == 8


@pytest.mark.skipif(not HEAVY, reason="part of `make soak`")
def test_chunksink_reports_and_repairs(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    options = ["--tools", "chunksink", "--scenarios", "store_lost", "batch_fails", "--sources", "8", "--seeds", "1"]
    command = [sys.executable, "-m", "bench.faults", *options, "--jobs", "1", "--into", str(file)]
    subprocess.run(command, cwd=ROOT, check=True)
    failed, lost = json.loads(file.read_bytes())["trials"]
    assert (failed["scenario"], failed["codes"]) == ("batch_fails", [5, 0])
    assert (failed["right"], failed["right_after_another"], failed["reported"]) == (False, True, True)
    assert (lost["scenario"], lost["codes"], lost["right"], lost["reported"]) == ("store_lost", [0], True, True)
