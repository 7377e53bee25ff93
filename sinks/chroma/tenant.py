"""The vectors of one tenant, each compared with what is asked.

The graph of neighbours goes through everybody's vectors: which of its own documents a tenant gets, and how many of the
nearest are missed, depends on what others have. To compare all of a tenant's vectors is exact, and quicker than the
graph under a filter. To read them is slow, so they are kept as long as the collection is open.
"""

from collections.abc import Iterator, Sequence
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
_MOST_BYTES = 128 * 2**20  # of all tenants together


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


def own_of(collection: "Collection", filters: Sequence[Filter], known: dict[str, Own | None]) -> Own | None:
    """What is `known`, or else read; None where that are too many documents."""
    key = repr(filters)
    if key not in known:
        own = _read(collection, rows.where(filters))
        if sum(one.vectors.nbytes for one in [own, *known.values()] if one) > _MOST_BYTES:
            known.clear()
        known[key] = own
    return known.get(key)


def _read(collection: "Collection", where: Any) -> Own | None:
    if len(collection.get(where=where, limit=MOST + 1, include=[])["ids"]) > MOST:
        return None
    page: Any = collection.get(where=where, include=["embeddings"])
    order = sorted(range(len(page["ids"])), key=page["ids"].__getitem__)
    vectors = np.asarray(page["embeddings"], dtype=np.float32)
    return Own([page["ids"][row] for row in order], unit(vectors[order]) if order else vectors)
