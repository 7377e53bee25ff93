"""What is around a run: the interpreter, SQLite, where settings come from, the home's folder and disk, other runs."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from chunksink.doctor.check import Check
from chunksink.settings.config import MEILI_URL, PREFIX, Config, unknown_variables

OLDEST_PYTHON = (3, 11)
LEAST_FREE_BYTES = 10**9


def python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Check("python", "fail", version, "install Python 3.11 or later and chunksink in it")
    return Check("python", "ok", version)


def fts5() -> Check:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("create virtual table t using fts5(text, tokenize = 'trigram')")
    except sqlite3.OperationalError as error:
        remedy = "use a Python whose SQLite has FTS5 and is 3.34 or later, as those of python.org and the distributions"
        return Check("sqlite", "fail", f"{sqlite3.sqlite_version}: {error}", remedy)
    finally:
        db.close()
    return Check("sqlite", "ok", f"{sqlite3.sqlite_version} with FTS5")


def configuration(config: Config, file: Path) -> Check:
    """Where settings come from. Of variables the names alone: a value may be a key."""
    named = sorted(name for name in os.environ if name.startswith(PREFIX) or name == MEILI_URL)
    said = f"{file} can be read" if file.exists() else f"no {file}"
    if unknown := unknown_variables():
        remedy = "correct the name, or leave it if another program's settings begin like ours"
        return Check("configuration", "warn", f"{said}; no setting is called {', '.join(unknown)}", remedy)
    if named:
        why = f"; {config.why_these_sinks}" if config.why_these_sinks else ""
        return Check("configuration", "ok", f"{said}; the environment sets {', '.join(named)}{why}")
    return Check("configuration", "ok", said if file.exists() else f"{said}: everything by default")


def home(home: Path) -> Iterator[Check]:
    place = home.absolute()
    while not place.exists():
        place = place.parent
    writable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    if not writable:
        yield Check(
            "home", "fail", f"{place} cannot be written", "change its owner or mode, or name another with --home"
        )
    else:
        yield Check("home", "ok", f"{home} can be written" if home.exists() else f"{home} will be made")
    free = shutil.disk_usage(place).free
    told = f"{free / 10**9:,.1f} GB free below {place}"
    if free < LEAST_FREE_BYTES:
        yield Check("disk", "warn", told, "make room: a rebuild needs room for a second index beside the live one")
    else:
        yield Check("disk", "ok", told)


def locks(home: Path) -> Check:
    from chunksink.rebuild.locks import held_locks

    held = held_locks(home)
    if held:
        return Check("locks", "warn", f"another run holds: {', '.join(held)}", "wait for it, or look for its process")
    return Check("locks", "ok", "nobody is writing to this home")
