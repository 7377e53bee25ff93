"""The vectors of one tenant, each compared with what is asked.

The graph of neighbours goes through everybody's vectors: which of its own documents a tenant gets, and how many of the
nearest are missed, depends on what others have. To compare all of a tenant's vectors is exact, and quicker than the
graph under a filter; to read them is slow, so they are kept as long as the collection is open.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chunksink.sinks.chroma import rows
from chunksink.sinks.document import Vectors
from chunksink.sinks.payload import unit
from chunksink.sinks.reader import Filter

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

MOST = 20_000
"""Documents of a tenant: to read them takes about a second. One with more is searched through the graph."""
_MOST_BYTES = 128 * 2**20  # of all tenants together; who has not asked for longest is forgotten


@dataclass(frozen=True, eq=False)
class Own:
    """All documents of a tenant, by id."""

    ids: Sequence[str]
    vectors: Vectors

    def nearest(self, vector: Vectors) -> Iterator[tuple[str, float]]:
        """Best first, each with its similarity; those of equal vectors by id."""
        if self.ids:
            similar = self.vectors @ unit(np.asarray(vector, dtype=np.float32))
            yield from ((self.ids[row], float(similar[row])) for row in np.argsort(-similar, kind="stable"))


class Tenants:
    """Those who asked last."""

    def __init__(self) -> None:
        self._known: dict[str, Own | None] = {}
        self._lock = threading.Lock()

    def get(self, filters: Sequence[Filter], read: Callable[[], Own | None]) -> Own | None:
        """None where that are too many documents."""
        key = repr(filters)
        with self._lock:
            known = key in self._known
            own = self._known.pop(key, None)
        if not known:
            own = read()
        with self._lock:
            self._known[key] = own
            while sum(one.vectors.nbytes for one in self._known.values() if one) > _MOST_BYTES and len(self._known) > 1:
                del self._known[next(iter(self._known))]
        return own


def own_of(collection: "Collection", filters: Sequence[Filter]) -> Own | None:
    where: Any = rows.where(filters)
    if len(collection.get(where=where, limit=MOST + 1, include=[])["ids"]) > MOST:
        return None
    page: Any = collection.get(where=where, include=["embeddings"])
    order = sorted(range(len(page["ids"])), key=page["ids"].__getitem__)
    vectors = np.asarray(page["embeddings"], dtype=np.float32)
    return Own([page["ids"][row] for row in order], unit(vectors[order]) if order else vectors)
