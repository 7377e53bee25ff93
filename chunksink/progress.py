"""Progress for people: a tqdm bar on a terminal, or a word where nothing can be counted; in a pipe a line on standard
error every few seconds.

Libraries only call back.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Protocol

import click

SECONDS_BETWEEN_LINES = 5.0
SECONDS_WITHOUT_A_WORD = 1.0


class Progress(Protocol):
    def advance(self, amount: int) -> object:
        """So much more is done."""

    def say(self, line: str) -> None:
        """A line of output, kept apart from a bar."""


@contextmanager
def progress(label: str, total: int | None, unit: str) -> Iterator[Progress]:
    """`unit` is `B` for bytes, else a word: `chunks`; a `total` of None is not known beforehand."""
    if not sys.stderr.isatty():
        yield _Lines(label, total, unit)
        return
    bar = _Bar(label, total, unit)
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def waiting(word: str) -> Iterator[None]:
    """On a terminal, what takes so long; it goes when that is done."""
    if not sys.stderr.isatty():
        yield
        return
    done = Event()

    def say() -> None:
        if not done.wait(SECONDS_WITHOUT_A_WORD):
            click.echo(word, err=True, nl=False)
            done.wait()
            click.echo(f"\r{' ' * len(word)}\r", err=True, nl=False)

    thread = Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class _Bar:
    def __init__(self, label: str, total: int | None, unit: str) -> None:
        from tqdm import tqdm

        size = unit == "B"
        self._bar = tqdm(desc=label, total=total, unit=unit if size else f" {unit}", unit_scale=size, leave=False)

    def advance(self, amount: int) -> object:
        return self._bar.update(amount)

    def say(self, line: str) -> None:
        self._bar.clear()
        click.echo(line)

    def close(self) -> None:
        self._bar.close()


class _Lines:
    """What a log file can hold: nothing for short work, a line now and then for long work."""

    def __init__(self, label: str, total: int | None, unit: str) -> None:
        self._label = label
        self._total = total
        self._unit = "bytes" if unit == "B" else unit
        self._done = 0
        self._last = monotonic()

    def advance(self, amount: int) -> object:
        self._done += amount
        now = monotonic()
        if now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            of_total = f" of {self._total:,}" if self._total is not None else ""
            click.echo(f"{self._label}: {self._done:,}{of_total} {self._unit}", err=True)
        return None

    def say(self, line: str) -> None:
        click.echo(line)
