"""A process that rebuilds a home and dies at a named step, as `kill -9` would have it.

    python -m tests.rebuild.dying HOME CHUNKS STEP ENGINE...

STEP `none` lets it live.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild import catalog_rows, executor
from chunksink.rebuild.state import State
from tests.rebuild.engines import ENGINES
from tests.rebuild.support import Home
from tests.rebuild.wrapping import Moment, watching

# Step: the engine, its call, which one, and whether it dies after it.
ENGINE_STEPS = {
    "build made": ("fts", "create", 1, True),
    "vectors made": ("fts", "replace", 2, False),
    "sent, not confirmed": ("fts", "flush", 2, False),
    "confirmed, no receipt": ("fts", "flush", 2, True),
    "filled": ("fts", "scan", 1, False),
    "verified": ("fts", "flip", 1, False),
    "old build gone": ("fts", "drop", 1, True),
    "chroma sent, not confirmed": ("chroma", "flush", 2, False),
}
STEPS = ("chunks half read", *ENGINE_STEPS, "sinks flipped", "pointer moved")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(home: str, chunks: str, step: str, *engines: str) -> None:
    executor.EMBEDDED_AT_ONCE = executor.WRITTEN_AT_ONCE = 2
    run = Home(Path(home), BusRoot(Path(chunks)), *(ENGINES[engine] for engine in engines))
    if step in ENGINE_STEPS:
        engine, call, number, after = ENGINE_STEPS[step]
        run.rebuild(wrap=watching(engine, Moment(call, number, die, after=after)))
        return
    if step == "chunks half read":
        _die_at(catalog_rows, "_row", Moment("_row", 3, die))
    elif step == "sinks flipped":
        _die_at(State, "flip", Moment("flip", 1, die))
    elif step == "pointer moved":
        _die_at(State, "flip", Moment("flip", 1, die, after=True))
    run.rebuild()


def _die_at(owner: Any, name: str, moment: Moment) -> None:
    setattr(owner, name, moment.around(name, getattr(owner, name)))


if __name__ == "__main__":
    main(*sys.argv[1:])
