"""A reader beside killed runs that repeatedly checks which families the live builds lack.

It is a separate process, so it sees only what the engines show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from chunksink.rebuild.locks import reading_live
from chunksink.rebuild.state import State
from chunksink.sinks.errors import SinkError
from tests.engines.servers import MeilisearchServer
from tests.soak.engines import Look, looking

FILES = "jsonl"
"""Nobody reads these while they are written."""
_PAUSE = 0.001  # seconds; generous for two processors


@dataclass
class Seen:
    """For each engine: the number of checks, and the families that were missing."""

    looks: Counter[str] = field(default_factory=Counter)
    absent: dict[str, set[str]] = field(default_factory=dict)
    unanswered: dict[str, str] = field(default_factory=dict)
    """Why some looks showed nothing: the last one of each engine."""


@contextmanager
def beside(reader: Connection, families: set[str]) -> Iterator[Seen]:
    """The reader checks for these families while the block runs. Its result is complete after the block.

    Raises EOFError if the reader failed.
    """
    seen = Seen()
    reader.send(families)
    reader.recv()
    yield seen
    reader.send(None)
    last: Seen = reader.recv()
    seen.looks, seen.absent, seen.unanswered = last.looks, last.absent, last.unanswered


def main(home: Path, server: MeilisearchServer | None, connection: Connection) -> None:
    """Until the other end is closed."""
    with ExitStack() as stack:
        state = stack.enter_context(State.existing(home))
        looks = {
            name: stack.enter_context(looking(name, home, server)) for name in state.live().builds if name != FILES
        }
        with suppress(EOFError):
            while True:
                connection.send(_look(state, looks, connection.recv(), connection))


def _look(state: State, looks: dict[str, Look], families: set[str], connection: Connection) -> Seen:
    """Check until the end is requested. Reports its start after the first check."""
    seen = Seen()
    while True:
        for name, look in looks.items():
            with reading_live(state) as live:
                try:
                    found = look(live.builds[name])
                except SinkError as error:
                    seen.unanswered[name] = str(error)
                else:
                    if lacking := families - found:
                        seen.absent.setdefault(name, set()).update(lacking)
            seen.looks[name] += 1
        if seen.looks.total() == len(looks):
            connection.send(None)
        if connection.poll(_PAUSE):
            connection.recv()
            return seen
