"""`chunksink sync --watch` as a process: it follows the bus, survives faults and ends with Ctrl-C."""

import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from chunksink.command_line.exits import Exit
from chunksink.rebuild.locks import writing
from tests.conftest import HEAVY, sampled
from tests.embeddings.endpoint import Server, serve, status
from tests.journey.support import chunksink, environment, write
from tests.support.bus import source

PATIENCE = 60.0
"""Seconds; generous, since two busy cores may also be running the rest of the suite."""

BEES = source("bees.md", "Hives stand on the roof.")
NIGHT = source("night.md", "After ten in the evening machines stay off.")
LENDING = source("lending.md", "Every tool has to come home within seven days.")


class Watcher:
    """A watching process whose output goes to files."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], endpoint: Server) -> None:
        self.folder = folder
        self.endpoint = endpoint
        self._process = process

    @property
    def out(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text()

    def wait_for(self, seen: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not seen():
            assert self._process.poll() is None, f"it ended:\n{self.out}{self.err}"
            assert time.monotonic() < until, f"that never came:\n{self.out}{self.err}"
            time.sleep(0.05)

    def says(self, words: str, times: int = 1) -> None:
        self.wait_for(lambda: (self.out + self.err).count(words) >= times)

    def interrupt(self) -> int:
        """Returns the exit code as a shell shows it. `python -m` ends by the signal itself if it arrives within an
        `exec`, for example while a dataclass is created."""
        self._process.send_signal(signal.SIGINT)
        return self.exit_code()

    def exit_code(self) -> int:
        code = self._process.wait(PATIENCE)
        return 128 - code if code < 0 else code


SHORTER_WAITS = """
import sys
from chunksink.command_line import watch
from chunksink.command_line.cli import main
from chunksink.rebuild import locks
locks.WAIT_SECONDS, watch.FIRST_WAIT_SECONDS = 0.5, 1.0
main()
"""


@contextmanager
def watching(
    folder: Path, *arguments: str, sinks: str = "fts", program: Sequence[str] = ("-m", "chunksink")
) -> Iterator[Watcher]:
    """An endpoint computes the vectors, so that no model is loaded."""
    settings = {"CHUNKSINK_SINKS": sinks, "CHUNKSINK_MODEL": "hash-model"}
    with serve() as server, (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, *program, "sync", "--watch", *arguments],
            cwd=folder,
            env=environment(CHUNKSINK_ENDPOINT=server.url, **settings),
            stdout=out,
            stderr=err,
        )
        try:
            yield Watcher(folder, process, server)
            assert "Traceback" not in (folder / "out").read_text() + (folder / "err").read_text()
        finally:
            process.kill()
            process.wait()


def found(folder: Path, word: str) -> list[str]:
    hits = chunksink(folder, "search", word, "--mode", "keyword", "--json", CHUNKSINK_SINKS="fts").json["hits"]
    return [hit["source_uri"] for hit in hits]


def test_watch_follows_the_bus_until_interrupted(tmp_path: Path) -> None:
    """Also if the bus is still empty: the folder of manifests is created to be watched."""
    chunks = tmp_path / "chunks"
    (chunks / "canonical").mkdir(parents=True)
    with watching(tmp_path) as watcher:
        watcher.says("watching chunks/manifest; Ctrl-C ends it")
        watcher.says("synced fts: no sources")

        write(chunks, "p1", BEES)
        watcher.says("synced fts: 1 source added (1 chunk written)")

        write(chunks, "p2", NIGHT)
        watcher.says("synced fts: 1 source added, 1 source unchanged (1 chunk written)")
        assert found(tmp_path, "machines") == ["night.md"]

        write(tmp_path / "other", "p3", LENDING)
        for name, change in (("canonical/p3.jsonl", b"seven"), ("manifest/p3.manifest.json", b"")):
            (chunks / name).write_bytes(
                (tmp_path / "other" / name).read_bytes().replace(change, b"eight"[: len(change)])
            )
        watcher.says("INTEGRITY_VIOLATION:text_hash_mismatch p3:1")
        watcher.says("synced fts: 2 sources unchanged")

        write(chunks, "p3", LENDING)
        watcher.says("synced fts: 1 source added, 2 sources unchanged")
        assert found(tmp_path, "tool") == ["lending.md"]
        assert watcher.interrupt() == Exit.INTERRUPTED
        assert watcher.err.endswith("Interrupted. Nothing is half done: run the command again.\n")
    assert chunksink(tmp_path, "verify", CHUNKSINK_SINKS="fts").code == Exit.OK


def test_watch_sends_signs_of_life_to_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"chunksink-{uuid.uuid4().hex}"
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{name}")
        systemd.settimeout(PATIENCE)
        write(tmp_path / "chunks", "p1", BEES)
        with watching(tmp_path):
            assert [systemd.recv(100), systemd.recv(100)] == [b"READY=1", b"WATCHDOG=1"]
            assert systemd.recv(100) == b"WATCHDOG=1"


def test_watch_interrupted_during_the_first_sync_ends_cleanly(tmp_path: Path) -> None:
    write(tmp_path / "chunks", "p1", BEES)
    with watching(tmp_path) as watcher:
        watcher.wait_for(lambda: (tmp_path / ".chunksink" / "state.db").exists())
        assert watcher.interrupt() == Exit.INTERRUPTED
    assert chunksink(tmp_path, "sync", CHUNKSINK_SINKS="fts").code == Exit.OK
    assert found(tmp_path, "roof") == ["bees.md"]


INTERRUPTED_WITHIN_SQLITE = """
import signal
from chunksink.rebuild.catalog_rows import ContentOf
from chunksink.command_line.cli import main
step = ContentOf.step
def interrupted_step(self, line):
    signal.raise_signal(signal.{signal})
    step(self, line)
ContentOf.step = interrupted_step
main()
"""


INTERRUPTED_WITHIN_FINALIZER = """
import signal
from chunksink.rebuild.catalog_rows import ContentOf
from chunksink.command_line.cli import main
class Interrupting:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
step = ContentOf.step
def step_with_garbage(self, line):
    Interrupting()
    step(self, line)
ContentOf.step = step_with_garbage
main()
"""


def test_watch_ends_if_a_finalizer_was_interrupted(tmp_path: Path) -> None:
    """Python drops the exceptions of finalizers."""
    write(tmp_path / "chunks", "p1", BEES)
    with watching(tmp_path, program=("-c", INTERRUPTED_WITHIN_FINALIZER)) as watcher:
        assert watcher.exit_code() == Exit.INTERRUPTED


@pytest.mark.parametrize(
    ("arguments", "signalled"),
    sampled(
        product(
            [("sync", "--json"), ("sync", "--watch"), ("rebuild",)],
            [("SIGINT", Exit.INTERRUPTED), ("SIGTERM", -signal.SIGTERM)],
        )
    ),
)
def test_interrupted_while_sqlite_calls_python_exits_as_interrupted(
    arguments: tuple[str, ...], signalled: tuple[str, int], tmp_path: Path
) -> None:
    """sqlite3 replaces the exception of such a function with its own error."""
    name, code = signalled
    write(tmp_path / "chunks", "p1", BEES)
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WITHIN_SQLITE.format(signal=name), *arguments],
        cwd=tmp_path,
        env=environment(CHUNKSINK_SINKS="jsonl"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    assert chunksink(tmp_path, "sync", CHUNKSINK_SINKS="jsonl").code == Exit.OK


@pytest.mark.parametrize("strict", [False, True])
def test_watch_reports_initial_faults_and_continues_after_the_fix(strict: bool, tmp_path: Path) -> None:
    write(tmp_path / "chunks", "p1", BEES)
    manifest = tmp_path / "chunks" / "manifest" / "p1.manifest.json"
    sound = manifest.read_bytes()
    manifest.write_bytes(b"{}")
    with watching(tmp_path, *(["--strict"] if strict else [])) as watcher:
        watcher.says("SCHEMA_INVALID")
        manifest.write_bytes(sound)
        watcher.says("1 source added")
        assert watcher.interrupt() == Exit.INTERRUPTED


@pytest.mark.skipif(not HEAVY, reason="it waits for three retries; CHUNKSINK_SOAK_HEAVY")
def test_watch_survives_a_failing_endpoint_and_another_run(tmp_path: Path) -> None:
    """Both problems pass, and the watch continues."""
    chunks = tmp_path / "chunks"
    write(chunks, "p1", BEES)
    with watching(tmp_path, sinks="chroma", program=("-c", SHORTER_WAITS)) as watcher:
        watcher.says("synced chroma: 1 source added")
        watcher.endpoint.next = [status(401)]
        write(chunks, "p2", NIGHT)
        watcher.says("answered 401")
        watcher.says("trying again in 1 s, or with the next commit")
        watcher.says("synced chroma: 1 source added, 1 source unchanged")
        with writing(tmp_path / ".chunksink"):
            write(chunks, "p3", LENDING)
            watcher.says("trying again in 1 s, or with the next commit", times=2)
        watcher.says("synced chroma: 1 source added, 2 sources unchanged")
        assert watcher.interrupt() == Exit.INTERRUPTED
