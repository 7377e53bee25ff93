"""An open collection of Chroma, embedded or on a server, and what its two places have in common."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chunksink.sinks.chroma.counted import Counting
from chunksink.sinks.chroma.errors import translated
from chunksink.sinks.chroma.known import Known
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_SPACE = {"hnsw": {"space": "cosine"}}


def nothing() -> None:
    pass


@dataclass
class Handle:
    """An open collection, how many rows it takes at once, and how to let go of it."""

    collection: "Collection"
    most: int
    where: str
    _client: "ClientAPI"
    _release: Callable[[], None]
    _turn: Callable[[], AbstractContextManager[None]] = nullcontext
    _known: Known = field(default_factory=Known)
    _counting: Counting = field(default_factory=Counting)
    parents: dict[str, str] = field(default_factory=dict)
    """The family of each document that answers have named, as long as this is open."""

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Around every call of Chroma: its errors become ours, and embedded it is the turn of this process."""
        with self._turn(), translated(self.where):
            yield

    def load(self) -> None:
        """The vectors are about to be loaded, if they are not yet. To be told within `asking`."""
        self._known.load()

    def may_have_moved(self) -> bool:
        """Whether somebody may have written since the vectors were loaded. To be asked within `asking`."""
        return self._known.may_have_moved()

    def metadata(self) -> Mapping[str, Any]:
        """The metadata as Chroma has it now; somebody else may have changed them."""
        with self.asking():
            return self._known.metadata(self._read_metadata)

    def count(self) -> int:
        with self.asking():
            return self._counting.count(self.collection.count)

    def close(self) -> None:
        release, self._release = self._release, nothing
        release()

    def _read_metadata(self) -> Mapping[str, Any]:
        return metadata_in(self._client, self.collection.name)


def metadata_in(client: "ClientAPI", collection: str) -> Mapping[str, Any]:
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


def collection_in(client: "ClientAPI", name: str, where: str, made: dict[str, Any] | None) -> "Collection":
    """The collection; where `made` is given and there is none, a new one that bears it as metadata."""
    try:
        with translated(where):
            return client.get_collection(name, embedding_function=None)
    except BuildMissing:
        if made is None:
            raise
    return client.create_collection(name, metadata=made, configuration=_SPACE, embedding_function=None)  # type: ignore[arg-type]


def end(client: Any) -> None:
    client.close()  # not in the interface that chromadb's functions promise
