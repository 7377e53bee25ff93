"""A word to who waits at a terminal, and none to anything else."""

from __future__ import annotations

import io
import sys
import time

import pytest

from chunksink import progress

WORD = "loading …"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(output: io.StringIO, seconds: float, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setattr(progress, "SECONDS_WITHOUT_A_WORD", 0.05)
    with progress.waiting(WORD):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not output.getvalue():
            time.sleep(0.01)
    return output.getvalue()


def test_what_takes_long_is_told_on_a_terminal_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(Terminal(), 30, monkeypatch) == f"{WORD}\r{' ' * len(WORD)}\r"


def test_what_is_quick_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(Terminal(), 0, monkeypatch) == ""


def test_nothing_is_told_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(io.StringIO(), 0.2, monkeypatch) == ""


def test_it_goes_when_it_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal()
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setattr(progress, "SECONDS_WITHOUT_A_WORD", 0)
    with pytest.raises(KeyboardInterrupt), progress.waiting(WORD):
        while not output.getvalue():
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert output.getvalue().endswith("\r")
