"""Chroma in this process: one folder per build.

An instance of Chroma that has loaded its vectors does not see those that another instance writes later. So every writer
and every reader opens a new instance, even within one process.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from chunksink.sinks import build_folders
from chunksink.sinks.chroma import client, seal, turns
from chunksink.sinks.chroma.errors import translate_errors
from chunksink.sinks.chroma.handle import Handle, Opened, collection_in, metadata_of
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import on_failure

COLLECTION = "chunks"
_ROWS_PER_TURN = 1000
"""The maximum number of rows per write to a build that may have readers, which wait for each write. A new build has no
readers and takes five times as many rows, which is a sixth faster."""


class Folder:
    """The builds below a root. `in_turn` is called at the beginning of every turn. In a worker process, this call ends
    the process if its parent has ended."""

    def __init__(self, root: Path, in_turn: Callable[[], None] = lambda: None) -> None:
        self._root = root
        self._in_turn = in_turn

    def create(self, marker: Marker) -> Handle:
        path = build_folders.folder(self._root, marker.build_id)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = self._handle(path, writing=True, initial=metadata_of(marker))
        handle.opened()
        return handle

    def open(self, build_id: str, *, writing: bool) -> Handle:
        """Open a build. If its seal records its state, a writer opens it in Chroma only on first use.

        Importing Chroma and opening a build take most of a second, which is most of the time of a sync without changes
        (ADR 0020).
        """
        path = build_folders.existing_folder(self._root, build_id)
        handle = self._handle(path, writing=writing)
        if not writing or seal.snapshot(path) is None:
            handle.opened()
        return handle

    def builds(self) -> list[str]:
        return build_folders.build_ids(self._root)

    def address(self, build_id: str) -> dict[str, str]:
        return {"path": str(build_folders.folder(self._root, build_id).absolute()), "collection": COLLECTION}

    def version(self) -> str:
        from importlib.metadata import version

        return f"chromadb {version('chromadb')}, embedded"

    def drop(self, build_id: str) -> None:
        with turns.turn(build_folders.folder(self._root, build_id)):  # the worker of a killed run may still be writing
            build_folders.remove(self._root, build_id)

    def _handle(self, path: Path, *, writing: bool, initial: dict[str, Any] | None = None) -> Handle:
        turn = partial(self._turn, path, writing)
        return Handle(
            str(path),
            partial(self._connect, path, writing=writing, initial=initial),
            database=path / seal.DATABASE,
            turn=turn,
            shared=turn if writing else turns.SharedTurn(turn),
            peek=partial(seal.snapshot, path),
        )

    def _connect(self, path: Path, *, writing: bool, initial: dict[str, Any] | None) -> Opened:
        client.import_chromadb()
        unlock = seal.check(path, writing=writing)
        with on_failure(unlock), self._turn(path, writing), translate_errors(str(path)):
            sealed = seal.snapshot(path)
            engine = client.open_folder(path.resolve())
            with on_failure(engine.close):  # type: ignore[attr-defined]
                if sealed is not None and not writing:
                    seal.renew(path)
                collection = collection_in(engine, COLLECTION, str(path), initial)
                max_rows = engine.get_max_batch_size() if initial else min(engine.get_max_batch_size(), _ROWS_PER_TURN)
                if writing:
                    seal.invalidate(path)

        def release(handle: Handle) -> None:
            try:
                snapshot = handle.snapshot() if writing else None
                with self._turn(path, writing):
                    engine.close()  # type: ignore[attr-defined]
            finally:
                unlock()
            if writing:
                with turns.turn(path):
                    seal.write(path, snapshot)

        return Opened(collection, engine, max_rows, release)

    @contextmanager
    def _turn(self, path: Path, writing: bool) -> Iterator[None]:
        with turns.turn(path, is_reader=not writing):
            self._in_turn()
            with nullcontext() if writing else seal.reseal(path):
                yield
