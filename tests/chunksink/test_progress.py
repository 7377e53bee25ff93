"""Progress is a bar or a text on a terminal, and a line every few seconds elsewhere."""

import io
import re
import sys
from functools import partialmethod

import pytest
from tqdm import tqdm

from chunksink.command_line import progress
from chunksink.sinks.retry import Fault

WORD = "loading …"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_waiting_on_a_terminal_shows_and_removes_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal()
    monkeypatch.setattr(sys, "stderr", output)
    with pytest.raises(KeyboardInterrupt), progress.waiting(WORD):
        assert output.getvalue() == WORD
        raise KeyboardInterrupt
    assert output.getvalue() == f"{WORD}\r{' ' * len(WORD)}\r", "it goes, also when it is broken off"


def test_waiting_in_a_pipe_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr(sys, "stderr", output)
    with progress.waiting(WORD):
        pass
    assert output.getvalue() == ""


def at_work(
    output: io.StringIO, monkeypatch: pytest.MonkeyPatch, unit: str = "chunks", total: int | None = 8, steps: int = 8
) -> str:
    """The output for steps that take a second each."""
    now = iter(range(steps + 1))
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setattr(progress, "monotonic", lambda: next(now))
    with progress.progress("index", total, unit) as bar:
        for _ in range(steps):
            bar.advance(1)
        return output.getvalue()


def test_progress_in_a_pipe_prints_a_line_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert at_work(io.StringIO(), monkeypatch) == "index: 5 of 8 chunks\n"
    assert at_work(io.StringIO(), monkeypatch, "B", None) == "index: 5 bytes\n"


def test_progress_lines_of_long_work_become_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = at_work(io.StringIO(), monkeypatch, total=None, steps=300).splitlines()
    assert [int(line.split()[1]) for line in lines] == [5, 13, 25, 42, 68, 106, 163, 223, 283]


def test_progress_on_a_terminal_shows_and_removes_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = partialmethod(tqdm.__init__, mininterval=0, miniters=1)
    monkeypatch.setattr(tqdm, "__init__", at_once)
    output = Terminal()
    during = at_work(output, monkeypatch)
    assert "\n" not in output.getvalue(), "one line"
    assert re.search(r"\rindex: 100%\|.*\| 8/8 \[.* chunks/s\]", during)
    assert re.search(r"\r +\r$", output.getvalue())


@pytest.mark.parametrize("output", [io.StringIO(), Terminal()], ids=["pipe", "terminal"])
def test_print_line_does_not_break_the_bar(
    output: io.StringIO, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", output)
    with progress.progress("index", 8, "chunks") as bar:
        bar.advance(1)
        bar.print_line("a finding")
        assert output.getvalue() == "" or re.search(r"\r +\r$", output.getvalue()), "no bar is in its way"
    assert capsys.readouterr().out == "a finding\n"


def test_repeated_faults_of_a_call_are_printed_ever_more_rarely(capsys: pytest.CaptureFixture[str]) -> None:
    for attempt in range(1, 30):
        progress.report_fault(Fault("meilisearch", "flush", "Unreachable: away", attempt))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    assert "16 times" in lines[-1]
