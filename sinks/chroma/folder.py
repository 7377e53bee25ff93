"""Chroma in this process: one folder a build.

chromadb keeps one engine a path and process, and an engine does not see what another process wrote to the vectors. So
every writer and every reader gets an engine of its own, by spelling the path its own way; only readers in the process
of an open writer share that writer's engine, which is always current.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from chunksink.sinks import build_folders
from chunksink.sinks.chroma import client, seal
from chunksink.sinks.chroma.cached import Cached, LoadedVectors, signature_of
from chunksink.sinks.chroma.errors import translated
from chunksink.sinks.chroma.handle import Handle, Metadata, Opened, collection_in, metadata_in, metadata_of
from chunksink.sinks.contract import Marker

COLLECTION = "chunks"
_ROWS_A_TURN = 1000
"""Of a build that readers may have; they wait for so many to be written, and no longer. One that is being made nobody
reads, and Chroma takes a sixth less time for five times as many."""

_lock = threading.Lock()
_spellings: dict[Path, dict[int, int]] = {}  # of each folder: spelling -> handles that use it
_writers: dict[Path, int] = {}  # the spelling of the writer in this process


class Folder:
    """One folder a build below a root. `in_turn` is called at the beginning of every turn, and may end it."""

    def __init__(self, root: Path, in_turn: Callable[[], None] = lambda: None) -> None:
        self._root = root
        self._in_turn = in_turn

    def create(self, marker: Marker, dimensions: int | None) -> Handle:
        path = build_folders.folder(self._root, marker.build_id)
        path.mkdir(parents=True, exist_ok=True)
        handle = self._handle(path, writing=True, made=metadata_of(marker, dimensions))
        handle.opened()
        return handle

    def open(self, build_id: str, *, writing: bool) -> Handle:
        """A writer's is not opened as long as the seal says all that is asked: to import Chroma and to open a build
        takes most of a second, which is most of a sync that has nothing to do (ADR 0020)."""
        path = build_folders.existing(self._root, build_id)
        handle = self._handle(path, writing=writing)
        if not writing or seal.snapshot(path) is None:
            handle.opened()
        return handle

    def builds(self) -> list[str]:
        return build_folders.listing(self._root)

    def address(self, build_id: str) -> dict[str, str]:
        return {"path": str(build_folders.folder(self._root, build_id).absolute()), "collection": COLLECTION}

    def version(self) -> str:
        from importlib.metadata import version

        return f"chromadb {version('chromadb')}, embedded"

    def drop(self, build_id: str) -> None:
        with seal.turn(build_folders.folder(self._root, build_id)):  # a dead run's last call may be under way
            build_folders.remove(self._root, build_id)

    def close(self) -> None:
        pass

    def _handle(self, path: Path, *, writing: bool, made: dict[str, Any] | None = None) -> Handle:
        return Handle(
            str(path),
            partial(self._connect, path, writing=writing, made=made),
            turn=partial(self._turn, path, writing),
            look=partial(seal.snapshot, path),
        )

    def _connect(self, path: Path, *, writing: bool, made: dict[str, Any] | None) -> Opened:
        client.package()
        unlock = seal.check(path, writing=writing)
        whole, database = path.resolve(), path / seal.DATABASE
        spelling, shares = _spell(whole, writing)
        started = True
        try:
            with self._turn(path, writing), translated(str(path)):
                sealed = seal.snapshot(path)
                started = False  # chromadb keeps an engine that did not start, too, by the spelling of its path
                engine = client.open_folder(f"{whole}{'/.' * spelling}")
                started = True
                now = signature_of(database)  # the engine has changed it, but added nothing and removed nothing
                counted = None if sealed is None or now is None else (now, sealed.documents)
                try:
                    collection = collection_in(engine, COLLECTION, str(path), made)
                    most = engine.get_max_batch_size() if made else min(engine.get_max_batch_size(), _ROWS_A_TURN)
                    if writing:
                        seal.lift(path)
                    elif counted is not None:
                        seal.renew(path, counted[0])
                except BaseException:
                    engine.close()  # type: ignore[attr-defined]
                    raise
        except BaseException:
            _unspell(whole, spelling, writing, again=started)
            unlock()
            raise
        documents, metadata = Cached(database, counted), Cached[Metadata](database)

        def release() -> None:
            try:
                with self._turn(path, writing):
                    known = documents.known() if writing else None
                    if known is not None:
                        metadata.get(lambda: metadata_in(engine, COLLECTION))
                    engine.close()  # type: ignore[attr-defined]
                    if _unspell(whole, spelling, writing) and writing:
                        seal.put(path, known, metadata.known())
            finally:
                unlock()

        vectors = LoadedVectors(database, is_loaded=shares)
        return Opened(collection, engine, most, release, documents, metadata, vectors)

    @contextmanager
    def _turn(self, path: Path, writing: bool) -> Iterator[None]:
        with seal.turn(path):
            self._in_turn()
            with nullcontext() if writing else seal.kept(path):
                yield


def _spell(path: Path, writing: bool) -> tuple[int, bool]:
    """The spelling, and whether it is that of an open writer, whose engine is there already."""
    with _lock:
        used = _spellings.setdefault(path, {})
        theirs = _writers.get(path) if not writing else None
        # Never as it is written: so another's client may have it, whatever its settings.
        free = next(number for number in range(1, len(used) + 2) if number not in used)
        spelling = free if theirs is None else theirs
        used[spelling] = used.get(spelling, 0) + 1
        if writing:
            _writers[path] = spelling
        return spelling, theirs is not None


def _unspell(path: Path, spelling: int, writing: bool, *, again: bool = True) -> bool:
    """Give a spelling back, if anybody may have it `again`; true when nobody in this process writes the folder any
    more."""
    with _lock:
        used = _spellings[path]
        used[spelling] -= 1 if again else 0
        if not used[spelling]:
            del used[spelling]
        if writing and _writers.get(path) == spelling:
            del _writers[path]
        return path not in _writers
