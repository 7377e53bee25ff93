"""What the status page tells is told from the home's records, and counts as people do."""

from contextlib import suppress
from pathlib import Path

import pytest

import chunksink
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import RunLog
from chunksink.rebuild.errors import HomeLocked
from chunksink.status_report import page_report
from tests.support.bus import commit, source


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> chunksink.Index:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    commit(BusRoot(tmp_path / "chunks"), "p1", source("a.md", "a cat"))
    return chunksink.open()


def test_a_source_that_waits_for_two_engines_is_one(index: chunksink.Index) -> None:
    index.sync()
    commit(BusRoot(Path("chunks")), "p2", source("b.md", "a boat"))
    index.plan()
    figures = {figure.label: figure.value for figure in page_report(index.config).figures}
    assert figures["To be synced"] == "1"


def test_a_verify_that_could_not_begin_does_not_hide_the_last_one(index: chunksink.Index) -> None:
    index.sync()
    index.verify()
    with suppress(HomeLocked), RunLog(Path(".chunksink"), "verify"):
        raise HomeLocked("busy")
    [section] = [each for each in page_report(index.config).sections if each.title == "Last verify"]
    assert ": ok in" in section.rows[0].value
