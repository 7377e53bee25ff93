"""A collection of Chroma, in a folder or on a server, opened when it is first needed.

What is known of an embedded build holds for as long as nobody writes to its database: Chroma takes most of a second to
count 100,000 documents. The database's file is looked at from outside: to open it beside Chroma's own SQLite, and to
close it again, would take that one's locks away.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from chunksink.chunkbus.signature import Signature, wait_a_tick
from chunksink.sinks.chroma.comparison import Candidates
from chunksink.sinks.chroma.errors import translated
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing, SinkError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

EF_SEARCH = "ef_search"
"""How many candidates a search keeps on its way through the graph of neighbours."""
_WIDTHS = ((50_000, 800), (150_000, 1600), (400_000, 3200), (math.inf, 6400))
"""Up to so many documents."""
Metadata = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Snapshot:
    """What a build held and was signed as while its database had this signature."""

    database: Signature
    documents: int
    metadata: Metadata


@dataclass(frozen=True)
class Opened:
    """An open collection, how many rows it takes at once, and how its handle lets go of it."""

    collection: "Collection"
    client: "ClientAPI"
    most: int
    release: Callable[["Handle"], None]


class Cached(Generic[T]):
    """An answer of Chroma, asked for again when the database has changed; without a database (a server) every time."""

    def __init__(self, database: Path | None) -> None:
        self._database = database
        self._known: tuple[Signature, T] | None = None

    def get(self, ask: Callable[[], T]) -> tuple[Signature | None, T]:
        """The answer, and the signature that it holds for."""
        if self._known is not None and self._known[0] == signature_of(self._database):
            return self._known
        at = settled(self._database)  # before it is asked: what is written meanwhile looks otherwise
        answer = ask()
        self._known = None if at is None else (at, answer)
        return at, answer


class Handle:
    """A collection at `where`. Until it is opened, `look` may know what it holds; `turn` is taken around each call."""

    def __init__(
        self,
        where: str,
        open_: Callable[[], Opened],
        *,
        database: Path | None = None,
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
        look: Callable[[], Snapshot | None] = lambda: None,
    ) -> None:
        self.where = where
        self._open = open_
        self._turn = turn
        self._look = look
        self._opened: Opened | None = None
        self._database = database
        self._documents = Cached[int](database)
        self._metadata = Cached[Metadata](database)
        self._has_loaded = False
        self._loaded_at: Signature | None = None
        self.parents: dict[str, str] = {}
        """The family of each document that answers have named, as long as this is open."""
        self.tenants: dict[str, Candidates | None] = {}
        """For `comparison.of_tenant`."""

    def opened(self) -> Opened:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @contextmanager
    def asking(self) -> Iterator["Collection"]:
        """Around every call of Chroma: its errors become ours, and embedded it is the turn of this process."""
        collection = self.opened().collection
        with self._turn(), translated(self.where):
            yield collection

    def load(self) -> None:
        """The vectors are about to be loaded, if they are not yet: what is written later, they do not show. Call it
        within `asking`."""
        if not self._has_loaded:
            self._has_loaded, self._loaded_at = True, settled(self._database)

    def may_have_moved(self) -> bool:
        """Whether anybody may have written since the vectors were loaded. Call it within `asking`."""
        return self._loaded_at is None or self._loaded_at != signature_of(self._database)

    def metadata(self) -> Metadata:
        """The metadata as Chroma has it now, and `EF_SEARCH`; somebody else may have changed them."""
        if (seen := self._unopened()) is not None:
            return seen.metadata
        client = self.opened().client
        with self.asking() as collection:
            return self._metadata.get(lambda: metadata_in(client, collection.name))[1]

    def count(self) -> int:
        if (seen := self._unopened()) is not None:
            return seen.documents
        return self._counted()[1]

    def is_sealed(self) -> bool:
        """Whether it is not opened, since all that was asked is known from its last writer."""
        return self._unopened() is not None

    def graph_size(self) -> int | None:
        from chunksink.sinks.chroma.probe import graph_size  # which is run as a program, too

        return None if self._database is None else graph_size(self._database.parent)

    def snapshot(self) -> Snapshot | None:
        """What it holds now; None where that is not sure."""
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

    def _counted(self) -> tuple[Signature | None, int]:
        with self.asking() as collection:
            return self._documents.get(collection.count)

    def _unopened(self) -> Snapshot | None:
        return self._look() if self._opened is None else None


def _closed() -> Opened:
    raise RuntimeError("this build was closed: open it again")


def signature_of(database: Path | None) -> Signature | None:
    """None where the file says little: there is none, or a log or a journal is beside it."""
    if database is None or any(Path(f"{database}-{left}").exists() for left in ("wal", "journal")):
        return None
    try:
        return Signature.of(database.stat())
    except OSError:
        return None


def settled(database: Path | None) -> Signature | None:
    """As it is now, if every later change is sure to look otherwise; waits for that where it was written just now."""
    for attempt in range(2):
        found = signature_of(database)
        if found is None or found.is_settled(time.time_ns()):
            return found
        if not attempt:
            wait_a_tick()
    return None


def metadata_in(client: "ClientAPI", collection: str) -> Metadata:
    held = client.get_collection(collection, embedding_function=None)
    return {**(held.metadata or {}), EF_SEARCH: (held.configuration_json.get("hnsw") or {}).get(EF_SEARCH)}


def metadata_of(marker: Marker) -> dict[str, Any]:
    """The marker as metadata of a collection: it goes where the collection goes, whatever it is called."""
    return {
        "home_id": marker.home_id,
        "build_id": marker.build_id,
        "projection_version": marker.projection_version,
        "stamp": marker.stamp,
    }


def ef_search(documents: int) -> int:
    """So many that 99.5 % of the nearest hundred are found among so many documents (ADR 0040)."""
    return next(width for most, width in _WIDTHS if documents <= most)


def marker_in(held: Metadata) -> Marker | None:
    home, build, version = held.get("home_id"), held.get("build_id"), held.get("projection_version")
    if isinstance(home, str) and isinstance(build, str) and isinstance(version, int):
        return Marker(home, build, version, str(held.get("stamp") or ""))
    return None


_GRAPH: dict[str, Any] = {"space": "cosine"}


def collection_in(client: "ClientAPI", name: str, where: str, made: dict[str, Any] | None) -> "Collection":
    """The collection; where `made` is given and there is none, a new one that bears it as metadata."""
    try:
        with translated(where):
            return client.get_collection(name, embedding_function=None)
    except BuildMissing:
        if made is None:
            raise
    graph: Any = {"hnsw": {**_GRAPH, EF_SEARCH: ef_search(0)}}
    return client.create_collection(name, metadata=made, configuration=graph, embedding_function=None)
