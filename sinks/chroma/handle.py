"""A collection of Chroma, in a folder or on a server, opened when it is first needed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chunksink.sinks.chroma.cached import Cached, LoadedVectors
from chunksink.sinks.chroma.errors import translated
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_SPACE = {"hnsw": {"space": "cosine"}}
Metadata = Mapping[str, Any]


@dataclass(frozen=True)
class Snapshot:
    """What a build held and was signed as when its last writer closed it. Nobody has written since."""

    documents: int
    metadata: Metadata


@dataclass(frozen=True)
class Opened:
    """An open collection, how many rows it takes at once, what is known of it, and how to let go of it."""

    collection: "Collection"
    client: "ClientAPI"
    most: int
    release: Callable[[], None]
    documents: Cached[int] = field(default_factory=Cached)
    metadata: Cached[Metadata] = field(default_factory=Cached)
    vectors: LoadedVectors = field(default_factory=LoadedVectors)


class Handle:
    """A collection at `where`. Until it is opened, `look` may say what it holds; `turn` is taken around each call."""

    def __init__(
        self,
        where: str,
        open_: Callable[[], Opened],
        *,
        turn: Callable[[], AbstractContextManager[None]] = nullcontext,
        look: Callable[[], Snapshot | None] = lambda: None,
    ) -> None:
        self.where = where
        self._open = open_
        self._turn = turn
        self._look = look
        self._opened: Opened | None = None
        self.parents: dict[str, str] = {}
        """The family of each document that answers have named, as long as this is open."""

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
        """The vectors are about to be loaded, if they are not yet. Call it within `asking`."""
        self.opened().vectors.load()

    def may_have_moved(self) -> bool:
        """Whether somebody may have written since the vectors were loaded. Call it within `asking`."""
        return self.opened().vectors.may_have_moved()

    def metadata(self) -> Metadata:
        """The metadata as Chroma has it now; somebody else may have changed them."""
        seen = self._snapshot()
        if seen is not None:
            return seen.metadata
        opened = self.opened()
        with self.asking() as collection:
            return opened.metadata.get(lambda: metadata_in(opened.client, collection.name))

    def count(self) -> int:
        seen = self._snapshot()
        if seen is not None:
            return seen.documents
        with self.asking() as collection:
            return self.opened().documents.get(collection.count)

    def close(self) -> None:
        opened, self._opened = self._opened, None
        self._open = _closed
        if opened is not None:
            opened.release()

    def _snapshot(self) -> Snapshot | None:
        return self._look() if self._opened is None else None


def _closed() -> Opened:
    raise RuntimeError("this build was closed: open it again")


def metadata_in(client: "ClientAPI", collection: str) -> Metadata:
    return client.get_collection(collection, embedding_function=None).metadata or {}


def metadata_of(marker: Marker, dimensions: int | None) -> dict[str, Any]:
    """The marker as metadata of a collection: it goes where the collection goes, whatever it is called."""
    held: dict[str, Any] = {
        "home_id": marker.home_id,
        "build_id": marker.build_id,
        "projection_version": marker.projection_version,
        "stamp": marker.stamp,
    }
    return held if dimensions is None else {**held, "dimensions": dimensions}


def marker_in(held: Metadata) -> Marker | None:
    home, build, version = held.get("home_id"), held.get("build_id"), held.get("projection_version")
    if isinstance(home, str) and isinstance(build, str) and isinstance(version, int):
        return Marker(home, build, version, str(held.get("stamp") or ""))
    return None


def collection_in(client: "ClientAPI", name: str, where: str, made: dict[str, Any] | None) -> "Collection":
    """The collection; where `made` is given and there is none, a new one that bears it as metadata."""
    try:
        with translated(where):
            return client.get_collection(name, embedding_function=None)
    except BuildMissing:
        if made is None:
            raise
    return client.create_collection(name, metadata=made, configuration=_SPACE, embedding_function=None)  # type: ignore[arg-type]
