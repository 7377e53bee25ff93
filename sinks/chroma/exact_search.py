"""Exact search: the query is compared with every vector that passes the filters.

Chroma's graph search is approximate. It may miss the best document if few pass a filter or many are alike. It also
visits the vectors of all tenants, so one tenant's results would depend on the others. Exact search has neither problem,
and is faster for a tenant. Reading vectors is slow, so those of tenants are cached while the collection is open.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chunksink.sinks.chroma import rows
from chunksink.sinks.document import Vectors
from chunksink.sinks.payload import unit
from chunksink.sinks.reader import Filter

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

MAX_OF_TENANT = 20_000
"""Documents that take about a second to read. A larger tenant is searched with the graph."""
_FEW = 1000
"""The maximum number of documents that `of_few` compares."""
_MAX_BYTES = 128 * 2**20  # cached for all tenants together


@dataclass(frozen=True, eq=False)
class Candidates:
    """Document ids and their vectors."""

    ids: Sequence[str]
    vectors: Vectors

    def nearest(self, vector: Vectors) -> Iterator[tuple[str, float]]:
        """Ids and similarities, best first; equal ones by id."""
        if self.ids:
            similar = self.vectors @ unit(np.asarray(vector, dtype=np.float32))
            yield from ((self.ids[row], float(similar[row])) for row in np.argsort(-similar, kind="stable"))

    def among(self, ids: Set[str]) -> "Candidates":
        kept = [row for row, id in enumerate(self.ids) if id in ids]
        return Candidates([self.ids[row] for row in kept], self.vectors[kept])


def of_few(collection: "Collection", filters: Sequence[Filter], more_than: int) -> Candidates | None:
    """The documents that pass the filters. None if over 1,000 pass, or if no more pass than the graph has found
    (`more_than`): then the comparison could add nothing."""
    candidates = _read(collection, filters, _FEW)
    return candidates if candidates is not None and len(candidates.ids) > more_than else None


def _read(collection: "Collection", filters: Sequence[Filter], max_documents: int) -> Candidates | None:
    """None if there are more than `max_documents`."""
    where: Any = rows.where(filters)
    if len(collection.get(where=where, limit=max_documents + 1, include=[])["ids"]) > max_documents:
        return None
    page: Any = collection.get(where=where, include=["embeddings"])
    order = sorted(range(len(page["ids"])), key=page["ids"].__getitem__)
    vectors = np.asarray(page["embeddings"], dtype=np.float32)
    return Candidates([page["ids"][row] for row in order], unit(vectors[order]) if order else vectors)


def of_tenant(
    collection: "Collection", filters: Sequence[Filter], known: dict[str, "Candidates | None"]
) -> Candidates | None:
    """The tenant's documents that pass. All of the tenant's documents are read into the cache `known` if the tenant, or
    a document that passes, is missing there."""
    tenant = [one for one in filters if one.field == "tenant_key"]
    where: Any = rows.where(filters)
    passing = None if tenant == list(filters) else set(collection.get(where=where, include=[])["ids"])
    key = repr(tenant)
    if key not in known or (passing and (cached := known[key]) and not passing.issubset(cached.ids)):
        known.pop(key, None)
        own = _read(collection, tenant, MAX_OF_TENANT)
        if sum(one.vectors.nbytes for one in [own, *known.values()] if one) > _MAX_BYTES:
            known.clear()
        known[key] = own
    own = known[key]
    return own if own is None or passing is None else own.among(passing)
