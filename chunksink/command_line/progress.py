"""Progress on standard error: a bar or a short text on a terminal, lines in a pipe; and notifications for systemd."""

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING

import click

from chunksink.command_line import logs
from chunksink.command_line.output import note

if TYPE_CHECKING:
    from chunksink.sinks.retry import Fault

STARTED = "READY=1"
ALIVE = "WATCHDOG=1"
FIRST_LINE_SECONDS = 5.0
MAX_PAUSE_SECONDS = 60.0
_ALIVE_SECONDS = 5.0
"""How often to notify a supervisor."""


class ProgressLines:
    """Progress for log files: nothing for short work. For long work a line after 5 seconds, then ever more rarely, at
    least one a minute."""

    def __init__(self, label: str, total: int | None, unit: str) -> None:
        self._label = label
        self._suffix = f"{f' of {total:,}' if total is not None else ''} {'bytes' if unit == 'B' else unit}"
        self._done = 0
        self._alive_at = self._line_at = monotonic()
        self._pause = FIRST_LINE_SECONDS

    def advance(self, amount: int) -> None:
        self._done += amount
        now = monotonic()
        if now - self._alive_at >= _ALIVE_SECONDS:
            self._alive_at = now
            notify(ALIVE)
        if now - self._line_at >= self._pause:
            self._line_at = now
            self._pause = min(MAX_PAUSE_SECONDS, 1.5 * self._pause)
            note(f"{self._label}: {self._done:,}{self._suffix}", event="progress")

    def print_line(self, line: str) -> None:
        """Print a line of the command's result. A bar is cleared first."""
        click.echo(line)


class _ProgressBar(ProgressLines):
    def __init__(self, label: str, total: int | None, unit: str) -> None:
        from tqdm import tqdm

        super().__init__(label, total, unit)
        is_size = unit == "B"
        shown_unit = unit if is_size else f" {unit}"
        self._bar = tqdm(desc=label, total=total, unit=shown_unit, unit_scale=is_size, leave=False)

    def advance(self, amount: int) -> None:
        self._bar.update(amount)

    def print_line(self, line: str) -> None:
        self._bar.clear()
        super().print_line(line)

    def close(self) -> None:
        self._bar.close()


@contextmanager
def progress(label: str, total: int | None, unit: str) -> Iterator[ProgressLines]:
    """`unit` is `B` for bytes, else a word such as `chunks`; `total` is None if it is unknown."""
    if logs.is_json() or not sys.stderr.isatty():
        yield ProgressLines(label, total, unit)
        return
    with closing(_ProgressBar(label, total, unit)) as bar:
        yield bar


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show this text on a terminal until the block ends."""
    if logs.is_json() or not sys.stderr.isatty():
        yield
        return
    click.echo(text, err=True, nl=False)
    try:
        yield
    finally:
        click.echo(f"\r{' ' * len(text)}\r", err=True, nl=False)


def report_fault(fault: "Fault") -> None:
    """Print the first, second, fourth, eighth attempt and so on; the run's record has all of them."""
    is_printed = fault.attempt.bit_count() == 1
    if is_printed and not logs.is_json():  # JSON logs have the event `fault` of the run
        attempts = "" if fault.attempt == 1 else f" {fault.attempt} times"
        note(f"{fault.sink}: {fault.call} failed{attempts} ({fault.error}); trying again")


def show_notices() -> None:
    """Print log messages, such as that a model is being prepared, on standard error."""
    handler = logging.StreamHandler()
    handler.addFilter(lambda _record: not logs.is_json())
    for name in ("chunksink.embeddings", "chunksink.notifications"):
        log = logging.getLogger(name)
        log.addHandler(handler)
        log.setLevel(logging.INFO)


def notify(state: str) -> None:
    """Send a state to systemd. Does nothing outside a service with `Type=notify`."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        sender.sendall(state.encode())
