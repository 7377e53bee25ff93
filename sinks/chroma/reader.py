"""Vector search in a Chroma build."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from chunksink.chunkbus.shared_resource import Shared
from chunksink.sinks.chroma import exact_search, rows
from chunksink.sinks.chroma.errors import StaleIndex
from chunksink.sinks.chroma.handle import Handle, marker_in
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import NO_TEXT, Document, Vectors
from chunksink.sinks.payload import batches, unit
from chunksink.sinks.reader import FamiliesOf, Filter, Hit, no_families

_TRIES = 4
_PAGE = 5000
_MAX_KNOWN = 100_000
"""Documents whose families are cached: about 30 MB."""
_MAX_VECTOR_BYTES = 2**26
"""Size of the cached vectors. Chroma returns vectors as Python lists, which takes 3 ms for a hundred."""


class ChromaReader:
    """An embedded reader keeps the vectors that it loaded. If an answer contains documents that were removed since, or
    needs vectors that were added since, the build is opened again and the call repeated."""

    def __init__(self, open_: Callable[[], Handle]) -> None:
        self._open = open_
        self._handle = Shared(open_())

    def marker(self) -> Marker | None:
        with self._in_use() as handle:
            return marker_in(handle.metadata())

    def query(
        self, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), families: FamiliesOf = no_families
    ) -> list[Hit]:
        for _ in range(_TRIES - 1):
            with suppress(StaleIndex):
                hits, removed = self._search(vector, limit, filters, families)
                if not removed:
                    return hits
            self._handle.replace(self._open())
        return self._search(vector, limit, filters, families)[0]

    def nearest(self, vector: Vectors, limit: int) -> list[str]:
        return [hit.id for hit in self.query(vector, limit)]

    def index_size(self) -> int | None:
        """The size of the graph as last saved; None for a server."""
        with self._in_use() as handle:
            return handle.graph_size()

    def get(self, ids: Sequence[str]) -> list[Document]:
        found: dict[str, Document] = {}
        with self._in_use() as handle:
            for some in batches(list(dict.fromkeys(ids)), _PAGE):
                with handle.calling() as collection:
                    page: Any = collection.get(ids=list(some), include=["metadatas", "documents"])
                for id, metadata, text in zip(page["ids"], page["metadatas"], page["documents"], strict=True):
                    if (document := rows.document(id, metadata, text)) is not None:
                        found[id] = document
        return [found[id] for id in ids if id in found]

    def similarities(self, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        for _ in range(_TRIES - 1):
            with suppress(StaleIndex):
                return self._similarities(vector, ids)
            self._handle.replace(self._open())
        return self._similarities(vector, ids)

    def _similarities(self, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        requested = unit(np.asarray(vector, dtype=np.float32))
        with self._in_use() as handle:
            known = {} if handle.may_have_changed() else handle.vectors
            found = {id: stored for id in ids if (stored := known.get(id)) is not None}
            for some in batches(list(dict.fromkeys(id for id in ids if id not in found)), _PAGE):
                with handle.calling() as collection:
                    handle.mark_loaded()
                    page: Any = collection.get(ids=list(some), include=["embeddings"])
                if page["ids"]:
                    stored = unit(np.asarray(page["embeddings"], dtype=np.float32))
                    found.update(zip(page["ids"], stored, strict=True))
            if len(known) > _MAX_VECTOR_BYTES // requested.nbytes:
                known.clear()
            known.update(found)
        return {id: float(stored @ requested) for id, stored in found.items()}

    def refresh(self) -> None:
        """Opens the build again only if somebody wrote to it, because opening blocks other queries."""
        with self._in_use() as handle, handle.calling():
            changed = handle.may_have_changed()
        if changed:
            self._handle.replace(self._open())

    def close(self) -> None:
        self._handle.close()

    def _search(
        self, vector: Vectors, limit: int, filters: Sequence[Filter], families: FamiliesOf
    ) -> tuple[list[Hit], int]:
        """The hits, and how many results were removed meanwhile. Documents without text are not hits: if there are any,
        more results are requested."""
        compare = partial(self._compare, vector, limit, filters, families)
        is_of_tenant = any(one.field == "tenant_key" for one in filters)
        if is_of_tenant and (of_tenant := compare()) is not None:
            return of_tenant
        requested = limit
        while True:
            with self._in_use() as handle:
                with handle.calling() as collection:
                    handle.mark_loaded()
                    answer: Any = collection.query(
                        query_embeddings=[rows.as_vector(vector)],  # type: ignore[arg-type]
                        n_results=requested,
                        where=rows.where(filters),
                        include=["distances"],
                    )
                    changed = handle.may_have_changed()
                found = list(zip(answer["ids"][0], answer["distances"][0], strict=True))
                parents = _parents_of(handle, answer["ids"][0], families, changed=changed)
            hits = [Hit(id, parent, 1.0 - distance) for id, distance in found if (parent := parents.get(id))]
            without_text = sum(not parent for parent in parents.values())
            if not without_text or len(hits) >= limit or len(found) < requested:
                break
            requested = limit + 2 * (len(found) - len(hits))
        if len(found) < requested and (of_few := compare(more_than=len(found))) is not None:
            return of_few
        return hits[:limit], len(found) - len(parents)

    def _compare(
        self,
        vector: Vectors,
        limit: int,
        filters: Sequence[Filter],
        families: FamiliesOf,
        more_than: int | None = None,
    ) -> tuple[list[Hit], int] | None:
        """Like `_search`, but exact: among the tenant's documents or, with `more_than`, among all that pass the
        filters. None if that would add nothing or take too long."""
        with self._in_use() as handle:
            with handle.calling() as collection:
                handle.mark_loaded()
                if more_than is None:
                    compared = exact_search.of_tenant(collection, filters, handle.tenants)
                else:
                    compared = exact_search.of_few(collection, filters, more_than)
                changed = handle.may_have_changed()
            if compared is None:
                return None
            return _first(handle, compared.nearest(vector), limit, families, changed=changed)

    @contextmanager
    def _in_use(self) -> Iterator[Handle]:
        with self._handle.use() as handle:
            if handle is None:
                raise RuntimeError("this reader is closed: open another one")
            yield handle


def _first(
    handle: Handle, nearest: Iterator[tuple[str, float]], limit: int, families: FamiliesOf, *, changed: bool
) -> tuple[list[Hit], int]:
    """The first `limit` hits with a text, and how many of the documents looked up for them were removed meanwhile."""
    hits: list[Hit] = []
    removed = 0
    while len(hits) < limit and not removed and (some := dict(islice(nearest, limit))):
        parents = _parents_of(handle, list(some), families, changed=changed)
        hits += [Hit(id, parent, score) for id, score in some.items() if (parent := parents.get(id))]
        removed = len(some) - len(parents)
    return hits[:limit], removed


def _parents_of(handle: Handle, ids: Sequence[str], families: FamiliesOf, *, changed: bool) -> dict[str, str]:
    """The families of the documents that still exist; "" for a document without text.

    Reading the metadata of a hundred documents takes ten times as long as the search. So they are read only for
    documents whose family neither the cache nor `families` knows. If the build `changed`, Chroma is asked whether the
    other documents still exist. "" is not cached, because the document may get a text.
    """
    known = handle.parents
    named = {id: parent for id in ids if (parent := known.get(id)) is not None}
    named |= families([id for id in ids if id not in named])
    unknown = [id for id in ids if id not in named]
    without_text: dict[str, str] = {}
    if unknown or changed:
        with handle.calling() as collection:
            if changed and named:
                named = {id: named[id] for id in collection.get(ids=list(named), include=[])["ids"]}
            page: Any = {"ids": [], "metadatas": []}
            if unknown:
                page = collection.get(ids=unknown, include=["metadatas"])
        stored = {id: metadata for id, metadata in zip(page["ids"], page["metadatas"], strict=True) if metadata}
        without_text = {id: "" for id, metadata in stored.items() if metadata.get("text_hash") == NO_TEXT}
        parents = {id: str(metadata.get("parent_id", "")) for id, metadata in stored.items()}
        named |= {id: parent for id, parent in parents.items() if id not in without_text}
    if len(known) + len(named) > _MAX_KNOWN:
        known.clear()
    known.update(named)
    return named | without_text
