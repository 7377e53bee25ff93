"""Runs one scenario on a home in this process, and does something to the process at a chosen step: it dies as by `kill
-9`, is stopped, or has no more file handles, disk space or memory from there on."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import chunksink.command_line.options  # noqa: F401  as in every command: without file handles, it could not be imported any more
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Refusal, errors_as_refusals
from chunksink.rebuild import executor
from chunksink.rebuild.flip import roll_back
from chunksink.rebuild.forget import forget
from chunksink.rebuild.locks import writing
from chunksink.rebuild.receipts import Receipts
from chunksink.sinks.errors import Refused
from tests.crash.homes import home_in, move_on_meanwhile
from tests.support.home import Home
from tests.support.watched_sinks import Moment, watching


def _rollback(home: Home) -> None:
    with writing(home.folder), home.session() as session:
        roll_back(session)


def _retire(home: Home) -> None:
    with writing(home.folder), home.session() as session:
        session.refresh()
        session.catalog.retire(home.root, "gone")


def _retry(home: Home) -> None:
    with writing(home.folder), home.session() as session:
        for build in session.state.live().builds.values():
            Receipts(session.state.db, build).retry_dead_letters()


def _forget(home: Home) -> None:
    with writing(home.folder), home.session() as session:
        session.refresh()
        forget(session, "docs/kept.md")


def _projection(home: Home) -> None:
    with writing(home.folder), home.session() as session:
        session.state.db.execute("update projection set version = 0")
    home.sync()


def _lost(home: Home) -> None:
    """A live build was removed by another program."""
    shutil.rmtree(home.folder / "fts" / home.live().builds["fts"], ignore_errors=True)
    home.sync()


def _recovered(home: Home) -> None:
    """The records were removed by another program."""
    home.lose_records()
    home.rebuild()


def _refused(home: Home) -> None:
    """A sink refuses to show the new build."""

    def refuse() -> None:
        raise Refused("not that")

    with suppress(Refused):
        home.rebuild(wrap=watching("jsonl", Moment("flip", 1, refuse)))


def _unsigned(home: Home) -> None:
    """The markers were removed by another program."""
    with home.session() as session:
        for name, build_id in session.state.live().builds.items():
            with closing(session.sinks[name].open(build_id)) as build:
                unsign(build)
    home.sync()


def unsign(build: Any) -> None:
    """Remove the marker with the engine's own interface."""
    path = Path(build._path if hasattr(build, "_path") else build._folder)  # tests may read behind the interface
    if path.is_dir():
        (path / "marker.json").unlink()
    else:
        build._connection.execute("DELETE FROM marker")


SCENARIOS: dict[str, Callable[[Home], object]] = {
    "sync": lambda home: home.sync(),
    "held": lambda home: home.sync(),
    "repair": lambda home: home.sync(scan=True),
    "rebuild": lambda home: home.rebuild(),
    "moved": lambda home: home.sync(wrap=move_on_meanwhile(home)),
    "rollback": _rollback,
    "retire": _retire,
    "retry": _retry,
    "forget": _forget,
    "projection": _projection,
    "unsigned": _unsigned,
    "lost": _lost,
    "recovered": _recovered,
    "refused": _refused,
}


def _limit(kind: int, most: int) -> None:
    sys.dont_write_bytecode = True  # the limit would cut off these files, too
    resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def _no_more_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + 2**20)


ACTS: dict[str, Callable[[], object]] = {
    "dies": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stops": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "no files": lambda: _limit(resource.RLIMIT_NOFILE, 3),
    "no room": lambda: _limit(resource.RLIMIT_FSIZE, 0),  # Python ignores SIGXFSZ
    "no memory": _no_more_memory,
}
SHORTAGES = ("no files", "no room", "no memory")


def main(
    home: str,
    chunks: str,
    scenario: str,
    module: str,
    owner: str,
    method: str,
    call: int,
    when: str,
    act: str = "dies",
) -> None:
    """`when` is "before" or "after" the call with that number; with 0 nothing happens. Exits with the exit code of a
    command."""
    executor.EMBEDDED_AT_ONCE = executor.WRITTEN_AT_ONCE = 2
    act_at(module, owner, method, call, when, act)
    with ending_as_a_command():
        SCENARIOS[scenario](home_in(Path(home), FolderRoot(Path(chunks))))


@contextmanager
def ending_as_a_command() -> Iterator[None]:
    """Exits with the exit code of a refusal."""
    try:
        with errors_as_refusals():
            yield
    except Refusal as refusal:
        with suppress(OSError):  # a file for the output could not grow either
            os.write(sys.stderr.fileno(), f"{refusal}\n".encode())
        os._exit(refusal.code)


def act_at(module: str, owner: str, method: str, call: int, when: str, act: str = "dies") -> None:
    """Arrange that `act` happens at that call in this process."""
    place: Any = import_module(module)
    if owner:
        place = getattr(place, owner)
    setattr(place, method, _acting(getattr(place, method), call, when, ACTS[act]))


def _acting(function: Callable[..., Any], call: int, when: str, act: Callable[[], object]) -> Callable[..., Any]:
    left = call

    def watched(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        mine = left == 0  # nested calls do not count
        if mine and when == "before":
            act()
        result = function(*arguments, **named)
        if mine and when == "after":
            act()
        return result

    return watched
