"""The reference sink: dictionaries in this process. What it does is what the others must do, told shortly.

Like a server with a queue it takes work in `replace` and `delete` and does it in `flush`.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from chunksink.chunkbus.canonical import text_hash
from chunksink.sinks.contract import NO_PARENT, Marker, RefusedDocument, Stored
from chunksink.sinks.document import Document, Family, Vectors, document_hash
from chunksink.sinks.errors import BuildMissing, Refused
from chunksink.sinks.payload import sound_rows, unit
from chunksink.sinks.reader import FacetValue, FamiliesOf, Filter, Hit, Piece, Value, members, nobodys, require_facets
from chunksink.sinks.values import HALF


class Shelf:
    """The content of one build."""

    def __init__(self, dimensions: int | None) -> None:
        self.dimensions = dimensions
        self.marker: Marker | None = None
        self.documents: dict[str, Document] = {}
        self.vectors: dict[str, Vectors] = {}
        self.lock = threading.Lock()


class MemorySink:
    """Builds in this process, for tests and for comparing."""

    name = "memory"

    def __init__(self, *, wants_vectors: bool = True) -> None:
        self.wants_vectors = wants_vectors
        self.live: str | None = None
        self._shelves: dict[str, Shelf] = {}

    def create(self, marker: Marker, dimensions: int | None = None) -> "MemoryBuild":
        shelf = self._shelves.setdefault(marker.build_id, Shelf(dimensions))
        if shelf.marker is None:
            shelf.marker = marker
        return MemoryBuild(shelf, self.wants_vectors)

    def open(self, build_id: str) -> "MemoryBuild":
        return MemoryBuild(self._shelf(build_id), self.wants_vectors)

    def reader(self, build_id: str) -> "MemoryReader":
        return MemoryReader(self._shelf(build_id))

    def builds(self) -> list[str]:
        return sorted(self._shelves)

    def flip(self, old: str | None, new: str) -> None:
        self._shelf(new)
        if self.live not in (old, new):
            raise Refused(
                f"{self.live} is live in the memory sink, not {old}: look at the pointer again before flipping"
            )
        self.live = new

    def shown(self) -> Marker | None:
        return self._shelves[self.live].marker if self.live in self._shelves else None

    def drop(self, build_id: str) -> None:
        self._shelves.pop(build_id, None)

    def close(self) -> None:
        pass

    def _shelf(self, build_id: str) -> Shelf:
        if build_id not in self._shelves:
            raise BuildMissing(f"the memory sink holds no build {build_id}: rebuild")
        return self._shelves[build_id]


class MemoryBuild:
    def __init__(self, shelf: Shelf, wants_vectors: bool) -> None:
        self._shelf = shelf
        self._wants_vectors = wants_vectors
        self._queue: list[Callable[[], None]] = []
        self._keep: dict[str, str] = {}
        self._refused: list[RefusedDocument] = []

    def marker(self) -> Marker | None:
        return self._shelf.marker

    def sign(self, marker: Marker) -> None:
        self._shelf.marker = marker

    def count(self) -> int:
        return len(self._shelf.documents)

    def replace(self, families: Sequence[Family]) -> None:
        for family in families:
            self._queue.append(partial(self._add, family))

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._queue.append(lambda: self._remove(set(parent_ids)))

    def flush(self) -> list[RefusedDocument]:
        for work in self._queue:
            work()
        self._prune()
        refused, self._refused = self._refused, []
        self._queue, self._keep = [], {}
        return refused

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        with self._shelf.lock:
            documents, rows = list(self._shelf.documents.values()), dict(self._shelf.vectors)
        for document in documents:
            yield Stored(
                id=document.id,
                parent_id=document.parent_id or NO_PARENT,
                family_hash=document.family_hash,
                document_hash=document_hash(document.fields()) if content else document.document_hash,
                text_hash=text_hash(document.text) if content else document.text_hash,
                document=document if content else None,
                vector=rows.get(document.id) if vectors else None,
            )

    def close(self) -> None:
        self._queue = []

    def _add(self, family: Family) -> None:
        rows = list(range(len(family.documents)))
        if self._wants_vectors:
            rows, refused = sound_rows(family, self._shelf.dimensions)
            self._refused += refused
        with self._shelf.lock:
            for row in rows:
                document = family.documents[row]
                self._shelf.documents[document.id] = document
                if self._wants_vectors and family.vectors is not None:
                    self._shelf.vectors[document.id] = unit(family.vectors[row])
        self._keep[family.parent_id] = family.family_hash

    def _remove(self, parents: set[str]) -> None:
        self._take([d.id for d in self._shelf.documents.values() if d.parent_id in parents])

    def _prune(self) -> None:
        keep = self._keep
        documents = self._shelf.documents.values()
        self._take([d.id for d in documents if keep.get(d.parent_id, d.family_hash) != d.family_hash])

    def _take(self, ids: list[str]) -> None:
        with self._shelf.lock:
            for id in ids:
                del self._shelf.documents[id]
                self._shelf.vectors.pop(id, None)


class MemoryReader:
    """Answers by looking at everything."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def marker(self) -> Marker | None:
        return self._shelf.marker

    def get(self, ids: Sequence[str]) -> list[Document]:
        return [found for id in ids if (found := self._shelf.documents.get(id)) is not None]

    def similarities(self, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        wanted = set(ids)
        return {hit.id: hit.score for hit in self.query(vector, len(self._shelf.documents)) if hit.id in wanted}

    def query(
        self, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), families: FamiliesOf = nobodys
    ) -> list[Hit]:
        del families  # nothing is quicker than to look
        asked = unit(np.asarray(vector, dtype=np.float32))
        with self._shelf.lock:
            rows = [
                (d, self._shelf.vectors[d.id])
                for d in self._shelf.documents.values()
                if d.id in self._shelf.vectors and d.text
            ]
        passing = [(d, row) for d, row in rows if all(condition.passes(d) for condition in filters)]
        hits = [Hit(d.id, d.parent_id, float(asked @ row)) for d, row in passing]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]

    def search(self, query: str, limit: int = 10, filters: Sequence[Filter] = (), *, every: bool = False) -> list[Hit]:
        del every
        hits = [Hit(d.id, d.parent_id, float(score)) for d, score in self._found(query, filters)]
        return sorted(hits, key=lambda hit: (-hit.score, hit.parent_id, hit.id))[:limit]

    def snippets(self, query: str, ids: Sequence[str]) -> dict[str, tuple[Piece, ...]]:
        del query, ids
        return {}

    def most_score(self, query: str) -> float | None:
        return float(len(set(query.split())))

    def meant(self, query: str, filters: Sequence[Filter] = ()) -> dict[str, str]:
        del query, filters
        return {}

    def facets(
        self, query: str, fields: Sequence[str], filters: Sequence[Filter] = (), limit: int = 100
    ) -> dict[str, list[FacetValue]]:
        require_facets(fields)
        answer = {}
        for field in fields:
            families: dict[Value, set[str]] = {}
            for document, _ in self._found(query, filters):
                for value in members(getattr(document, field)):
                    families.setdefault(value, set()).add(document.parent_id)
            values = [FacetValue(value, len(parents)) for value, parents in families.items()]
            answer[field] = sorted(values, key=lambda one: (-one.families, one.value))[: max(0, limit)]
        return answer

    def _found(self, query: str, filters: Sequence[Filter]) -> list[tuple[Document, int]]:
        """Documents that hold one of the words, and how many of them; all for a blank query."""
        asked = set(HALF.sub(" ", query).lower().split())
        with self._shelf.lock:
            documents = list(self._shelf.documents.values())
        passing = [d for d in documents if all(condition.passes(d) for condition in filters)]
        scored = [(d, len(asked & set(f"{d.title} {d.text}".lower().split()))) for d in passing]
        return [(d, score) for d, score in scored if score or not query.strip()]

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        pass
