"""Progress: on a terminal a bar, or a word where nothing can be counted; in a pipe a line every few seconds.

All of it goes to standard error. Libraries only call back.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from chunksink.sinks.retry import Fault

SECONDS_BETWEEN_LINES = 5.0


class ProgressLines:
    """What a log file can hold: nothing for short work, a line now and then for long work."""

    def __init__(self, label: str, total: int | None, unit: str) -> None:
        self._label = label
        self._of_total = f" of {total:,}" if total is not None else ""
        self._unit = "bytes" if unit == "B" else unit
        self._done = 0
        self._last = monotonic()

    def advance(self, amount: int) -> object:
        """So much more is done."""
        self._done += amount
        now = monotonic()
        if now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            click.echo(f"{self._label}: {self._done:,}{self._of_total} {self._unit}", err=True)
        return None

    def say(self, line: str) -> None:
        """A line of output, kept apart from a bar."""
        click.echo(line)


class _ProgressBar(ProgressLines):
    def __init__(self, label: str, total: int | None, unit: str) -> None:
        from tqdm import tqdm

        super().__init__(label, total, unit)
        size = unit == "B"
        self._bar = tqdm(desc=label, total=total, unit=unit if size else f" {unit}", unit_scale=size, leave=False)

    def advance(self, amount: int) -> object:
        return self._bar.update(amount)

    def say(self, line: str) -> None:
        self._bar.clear()
        click.echo(line)

    def close(self) -> None:
        self._bar.close()


@contextmanager
def progress(label: str, total: int | None, unit: str) -> Iterator[ProgressLines]:
    """`unit` is `B` for bytes, else a word: `chunks`; a `total` of None is not known beforehand."""
    if not sys.stderr.isatty():
        yield ProgressLines(label, total, unit)
        return
    bar = _ProgressBar(label, total, unit)
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
    click.echo(word, err=True, nl=False)
    try:
        yield
    finally:
        click.echo(f"\r{' ' * len(word)}\r", err=True, nl=False)


def tell_fault(fault: "Fault") -> None:
    click.echo(f"{fault.sink}: {fault.call} failed ({fault.error}); it is tried again", err=True)


class _Notices(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


def show_notices() -> None:
    """What the libraries below have to say goes to standard error: that a model is prepared, which takes a while."""
    log = logging.getLogger("chunksink.embeddings")
    log.addHandler(_Notices())
    log.setLevel(logging.INFO)
