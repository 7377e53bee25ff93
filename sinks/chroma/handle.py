"""A Chroma collection in a folder or on a server, opened on first use.

Answers about an embedded build are cached until its database file changes: Chroma takes most of a second to count
100,000 documents. The file is only inspected with `stat`, because closing a file that Chroma's SQLite also has open
would release the locks of SQLite.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from chunksink.chunkbus.signature import Signature, wait_a_tick
from chunksink.sinks.chroma.client import require_own_process
from chunksink.sinks.chroma.errors import translate_errors
from chunksink.sinks.chroma.exact_search import Candidates
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Vectors
from chunksink.sinks.errors import BuildMissing, SinkError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

EF_SEARCH = "ef_search"
"""Chroma's setting for the number of candidates that a graph search keeps."""
_WIDTHS = ((10_000, 10_000), (150_000, 1600), (400_000, 3200), (math.inf, 6400))
"""The values of `EF_SEARCH`: (up to this many documents, value). A build of up to 10,000 documents is searched
completely: if thousands of texts are alike (a log file), a narrower search misses whole groups of the other texts."""
Metadata = Mapping[str, Any]
T = TypeVar("T")
GRAPH: dict[str, Any] = {"space": "cosine", "ef_construction": 200, "sync_threshold": 100}
"""`sync_threshold`: Chroma saves its graph after this many writes. A process that opens the build inserts later ones
into the graph again (ADR 0053)."""


@dataclass(frozen=True)
class Snapshot:
    """The size and metadata of a build while its database file had this signature."""

    database: Signature
    documents: int
    metadata: Metadata


@dataclass(frozen=True)
class Opened:
    """An open collection, the maximum number of rows per call, and a function that closes it."""

    collection: "Collection"
    client: "ClientAPI"
    max_rows: int
    release: Callable[["Handle"], None]


class Cached(Generic[T]):
    """An answer from Chroma, cached until the database file changes. Not cached for a server."""

    def __init__(self, database: Path | None) -> None:
        self._database = database
        self._known: tuple[Signature, T] | None = None

    def current(self) -> tuple[Signature, T] | None:
        """The cached answer and its file signature; None if the file has changed."""
        known = self._known
        return known if known is not None and known[0] == signature_of(self._database) else None

    def get(self, call: Callable[[], T]) -> tuple[Signature | None, T]:
        """The answer, and the file signature for which it is valid."""
        if (known := self.current()) is not None:
            return known
        at = stable_signature(self._database)  # before the call: a write in between changes the signature
        answer = call()
        self._known = None if at is None else (at, answer)
        return at, answer


class Handle:
    """A collection at `where`, opened on first use. Until then `peek` may return its size and metadata.

    Calls to Chroma run within `turn`. Once a call has loaded the vectors, later calls run within `shared`, which
    several threads may have at once. Two threads that load vectors at the same time crash the process.
    """

    def __init__(
        self,
        where: str,
        open_: Callable[[], Opened],
        *,
        database: Path | None = None,
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
        shared: Callable[[], AbstractContextManager[None]] = nullcontext,
        peek: Callable[[], Snapshot | None] = lambda: None,
    ) -> None:
        self.where = where
        self._open = open_
        self._turn = turn
        self._shared_turn = shared
        self._may_share = False
        self._peek = peek
        self._opened: Opened | None = None
        self._database = database
        self._documents = Cached[int](database)
        self._metadata = Cached[Metadata](database)
        self._has_loaded = False
        self._loaded_at: Signature | None = None
        self.parents: dict[str, str] = {}
        """Cache of `reader`: the family of each document found so far."""
        self.vectors: dict[str, Vectors] = {}
        """Cache of `reader`: normalised vectors of documents."""
        self.tenants: dict[str, Candidates | None] = {}
        """Cache of `exact_search.of_tenant`."""

    def opened(self) -> Opened:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @contextmanager
    def calling(self) -> Iterator["Collection"]:
        """Surrounds every call to Chroma: translates errors and, for an embedded build, waits for its turn."""
        if self._database is not None:  # embedded
            require_own_process()
        collection = self.opened().collection
        turn = self._shared_turn if self._may_share else self._turn
        with turn(), translate_errors(self.where):
            yield collection
            self._may_share = self._has_loaded

    def mark_loaded(self) -> None:
        """Record the state of the database. Call it within `calling`, before vectors are used: Chroma loads them at
        their first use, and does not see later writes."""
        if not self._has_loaded:
            self._has_loaded, self._loaded_at = True, stable_signature(self._database)

    def may_have_changed(self) -> bool:
        """Whether the vectors may be older than the database. Call it within `calling`."""
        return self._loaded_at is None or self._loaded_at != signature_of(self._database)

    def metadata(self) -> Metadata:
        """The current metadata, including `EF_SEARCH`; others may have changed them."""
        if (snapshot := self._snapshot_if_unopened()) is not None:
            return snapshot.metadata
        if (known := self._metadata.current()) is not None:  # without waiting for a turn
            return known[1]
        with self.calling() as collection:
            return self._metadata.get(lambda: self._read_metadata(collection.name))[1]

    def count(self) -> int:
        if (snapshot := self._snapshot_if_unopened()) is not None:
            return snapshot.documents
        return self._counted()[1]

    def is_sealed(self) -> bool:
        """Whether the build is unopened and still as its last writer left it."""
        return self._snapshot_if_unopened() is not None

    def graph_size(self) -> int | None:
        # Not at the top: `python -m` warns if the package has imported the module that it runs.
        from chunksink.sinks.chroma.probe import graph_size

        return None if self._database is None else graph_size(self._database.parent)

    def snapshot(self) -> Snapshot | None:
        """The current state; None if it is uncertain."""
        with suppress(SinkError):
            if signature_of(self._database) is not None:
                at, documents = self._counted()
                return None if at is None else Snapshot(at, documents, self.metadata())
        return None

    def close(self) -> None:
        try:
            if self._opened is not None:
                self._opened.release(self)
        finally:
            self._open, self._opened = _closed, None

    def _read_metadata(self, collection: str) -> Metadata:
        stored = self.opened().client.get_collection(collection, embedding_function=None)
        return {**(stored.metadata or {}), EF_SEARCH: (stored.configuration_json.get("hnsw") or {}).get(EF_SEARCH)}

    def _counted(self) -> tuple[Signature | None, int]:
        with self.calling() as collection:
            return self._documents.get(collection.count)

    def _snapshot_if_unopened(self) -> Snapshot | None:
        return self._peek() if self._opened is None else None


def _closed() -> Opened:
    raise RuntimeError("this build is closed: open it again")


def signature_of(database: Path | None) -> Signature | None:
    """The signature of the file; None if it does not exist, or has a log or journal with newer changes."""
    if database is None or any(Path(f"{database}-{suffix}").exists() for suffix in ("wal", "journal")):
        return None
    try:
        return Signature.of(database.stat())
    except OSError:
        return None


def stable_signature(database: Path | None) -> Signature | None:
    """The current signature; None if the file keeps changing.

    If the file has just changed, waits once: another write within the same tick of the clock may leave the signature
    as it is.
    """
    signature = signature_of(database)
    if signature is not None and not signature.is_settled(time.time_ns()):
        wait_a_tick()
        signature = signature_of(database)
    return signature if signature is not None and signature.is_settled(time.time_ns()) else None


def metadata_of(marker: Marker) -> dict[str, Any]:
    """The marker as metadata of a collection."""
    return {
        "home_id": marker.home_id,
        "build_id": marker.build_id,
        "projection_version": marker.projection_version,
        "stamp": marker.stamp,
    }


def ef_search(documents: int) -> int:
    """The value that finds 99.5 % of the nearest hundred among this many documents (ADR 0040)."""
    return next(width for most, width in _WIDTHS if documents <= most)


def marker_in(metadata: Metadata) -> Marker | None:
    home, build, version = metadata.get("home_id"), metadata.get("build_id"), metadata.get("projection_version")
    if isinstance(home, str) and isinstance(build, str) and isinstance(version, int):
        return Marker(home, build, version, str(metadata.get("stamp") or ""))
    return None


def collection_in(client: "ClientAPI", name: str, where: str, initial: dict[str, Any] | None) -> "Collection":
    """The collection. A missing one is created if `initial`, its metadata, is not None."""
    try:
        with translate_errors(where):
            return client.get_collection(name, embedding_function=None)
    except BuildMissing:
        if initial is None:
            raise
    graph: Any = {"hnsw": {**GRAPH, EF_SEARCH: ef_search(0)}}
    return client.create_collection(name, metadata=initial, configuration=graph, embedding_function=None)
