"""All vectors that pass some filters, each compared with what is asked.

The graph of neighbours is a guess: where few documents pass a filter, or many are alike, it may lead past the best. And
it goes through everybody's vectors: which of its own documents a tenant gets would depend on what others have. To
compare all is exact, and for a tenant quicker than the graph under a filter. To read the vectors is slow, so those of a
tenant are kept as long as the collection is open.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chunksink.sinks.chroma import rows
from chunksink.sinks.document import Vectors
from chunksink.sinks.payload import unit
from chunksink.sinks.reader import Filter

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

MOST_OF_TENANT = 20_000
"""Documents: to read them takes about a second. A tenant with more is searched through the graph."""
_FEW = 1000
"""So many documents are compared one by one where that is all there is."""
_MOST_BYTES = 128 * 2**20  # kept, of all tenants together


@dataclass(frozen=True, eq=False)
class Candidates:
    """Documents by id, and their vectors."""

    ids: Sequence[str]
    vectors: Vectors

    def nearest(self, vector: Vectors) -> Iterator[tuple[str, float]]:
        """Best first, each with its similarity; those of equal vectors by id."""
        if self.ids:
            similar = self.vectors @ unit(np.asarray(vector, dtype=np.float32))
            yield from ((self.ids[row], float(similar[row])) for row in np.argsort(-similar, kind="stable"))

    def among(self, ids: Set[str]) -> "Candidates":
        rows = [row for row, id in enumerate(self.ids) if id in ids]
        return Candidates([self.ids[row] for row in rows], self.vectors[rows])


Read = Callable[["Collection", Sequence[Filter], dict[str, "Candidates | None"]], "Candidates | None"]
"""Of a collection what passes some filters; None where it is not compared. A known tenant is not read again."""


def of_few(
    collection: "Collection", filters: Sequence[Filter], _known: dict[str, "Candidates | None"], *, more_than: int
) -> Candidates | None:
    """None also where there are not `more_than` so many."""
    found = _read(collection, filters, _FEW)
    return found if found is not None and len(found.ids) > more_than else None


def _read(collection: "Collection", filters: Sequence[Filter], most: int) -> Candidates | None:
    """None where that are too many documents."""
    where: Any = rows.where(filters)
    if len(collection.get(where=where, limit=most + 1, include=[])["ids"]) > most:
        return None
    page: Any = collection.get(where=where, include=["embeddings"])
    order = sorted(range(len(page["ids"])), key=page["ids"].__getitem__)
    vectors = np.asarray(page["embeddings"], dtype=np.float32)
    return Candidates([page["ids"][row] for row in order], unit(vectors[order]) if order else vectors)


def of_tenant(
    collection: "Collection", filters: Sequence[Filter], known: dict[str, "Candidates | None"]
) -> Candidates | None:
    """What is `known` of the tenant, or else read; also where it lacks any that pass, which were written since."""
    tenant = [one for one in filters if one.field == "tenant_key"]
    where: Any = rows.where(filters)
    passing = None if tenant == list(filters) else set(collection.get(where=where, include=[])["ids"])
    key = repr(tenant)
    if key not in known or (passing and (held := known[key]) and not passing.issubset(held.ids)):
        known.pop(key, None)
        own = _read(collection, tenant, MOST_OF_TENANT)
        if sum(one.vectors.nbytes for one in [own, *known.values()] if one) > _MOST_BYTES:
            known.clear()
        known[key] = own
    own = known[key]
    return own if own is None or passing is None else own.among(passing)
