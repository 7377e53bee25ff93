"""The reference sink: dictionaries in this process. It is a short example of what the others must do.

Like a server with a queue, it accepts work in `replace` and `delete` and does it in `flush`.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from chunksink.sinks.contract import NO_PARENT, Marker, RefusedDocument, Stored
from chunksink.sinks.document import Document, Family, Vectors, hashes_of_content
from chunksink.sinks.errors import BuildMissing, Refused
from chunksink.sinks.payload import Replacements, unit, with_usable_vectors
from chunksink.sinks.reader import FamiliesOf, Filter, Hit, no_families


class MemoryContent:
    """The content of one build."""

    def __init__(self) -> None:
        self.marker: Marker | None = None
        self.documents: dict[str, Document] = {}
        self.vectors: dict[str, Vectors] = {}
        self.lock = threading.Lock()


class MemorySink:
    """Builds in this process, for tests and comparisons."""

    name = "memory"

    def __init__(self, *, wants_vectors: bool = True) -> None:
        self.wants_vectors = wants_vectors
        self.live: str | None = None
        self._contents: dict[str, MemoryContent] = {}

    def create(self, marker: Marker, dimensions: int | None = None) -> "MemoryBuild":
        content = self._contents.setdefault(marker.build_id, MemoryContent())
        if content.marker is None:
            content.marker = marker
        return MemoryBuild(content, self.wants_vectors)

    def open(self, build_id: str) -> "MemoryBuild":
        return MemoryBuild(self.content(build_id), self.wants_vectors)

    def reader(self, build_id: str) -> "MemoryReader":
        return MemoryReader(self.content(build_id))

    def builds(self) -> list[str]:
        return sorted(self._contents)

    def flip(self, old: str | None, new: str) -> None:
        self.content(new)
        if self.live not in (old, new):
            raise Refused(
                f"{self.live} is live in the memory sink, not {old}: look at the pointer again before flipping"
            )
        self.live = new

    def shown(self) -> Marker | None:
        return self._contents[self.live].marker if self.live in self._contents else None

    def drop(self, build_id: str) -> None:
        self._contents.pop(build_id, None)

    def close(self) -> None:
        pass

    def content(self, build_id: str) -> MemoryContent:
        if build_id not in self._contents:
            raise BuildMissing(f"the memory sink has no build {build_id}")
        return self._contents[build_id]


class MemoryBuild:
    def __init__(self, content: MemoryContent, wants_vectors: bool) -> None:
        self.content = content
        self._wants_vectors = wants_vectors
        self._queue: list[Callable[[], None]] = []
        self._replacements = Replacements()

    def marker(self) -> Marker | None:
        return self.content.marker

    def sign(self, marker: Marker) -> None:
        self.content.marker = marker

    def count(self) -> int:
        return len(self.content.documents)

    def replace(self, families: Sequence[Family]) -> int:
        for family in families:
            self._queue.append(partial(self._add, family))
        return sum(
            self.content.documents.get(document.id) != document or document.id in family.rewrite
            for family in families
            for document, _ in self._sound(family)[0]
        )

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._queue.append(partial(self._replacements.delete, list(parent_ids)))

    def flush(self) -> list[RefusedDocument]:
        for work in self._queue:
            work()
        self._prune()
        self._queue = []
        return self._replacements.finish()

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        wanted = set(parent_ids)
        return (found for found in self.scan(content=content) if found.parent_id in wanted)

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        with self.content.lock:
            documents, rows = list(self.content.documents.values()), dict(self.content.vectors)
        for document in documents:
            yield Stored(
                document.id,
                document.parent_id or NO_PARENT,
                *(hashes_of_content(document) if content else (document.document_hash, document.text_hash)),
                document=document if content else None,
                vector=rows.get(document.id) if vectors else None,
            )

    def close(self) -> None:
        self._queue = []

    def _add(self, family: Family) -> None:
        self._replacements.begin([family])
        sound, refused = self._sound(family)
        self._replacements.refuse(refused)
        with self.content.lock:
            for document, vector in sound:
                self.content.documents[document.id] = document
                if vector is not None:
                    self.content.vectors[document.id] = unit(vector)
        self._replacements.add([family])

    def _sound(self, family: Family) -> tuple[Sequence[tuple[Document, Vectors | None]], list[RefusedDocument]]:
        if self._wants_vectors and family.vectors is not None:
            return with_usable_vectors(family)
        return [(document, None) for document in family.documents], []

    def _prune(self) -> None:
        self._take(self._replacements.surplus(self.ids_of))

    def ids_of(self, parent_ids: Sequence[str]) -> Iterator[str]:
        return (one.id for one in self.of_families(parent_ids))

    def _take(self, ids: list[str]) -> None:
        with self.content.lock:
            for id in ids:
                del self.content.documents[id]
                self.content.vectors.pop(id, None)


class MemoryReader:
    """Answers by comparing all documents."""

    def __init__(self, content: MemoryContent) -> None:
        self.content = content

    def marker(self) -> Marker | None:
        return self.content.marker

    def get(self, ids: Sequence[str]) -> list[Document]:
        return [found for id in ids if (found := self.content.documents.get(id)) is not None]

    def similarities(self, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        wanted = set(ids)
        return {hit.id: hit.score for hit in self.query(vector, len(self.content.documents)) if hit.id in wanted}

    def query(
        self, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), families: FamiliesOf = no_families
    ) -> list[Hit]:
        del families  # nothing is faster than reading all
        query = unit(np.asarray(vector, dtype=np.float32))
        with self.content.lock:
            rows = [
                (d, self.content.vectors[d.id])
                for d in self.content.documents.values()
                if d.id in self.content.vectors and d.text
            ]
        passing = [(d, row) for d, row in rows if all(condition.passes(d) for condition in filters)]
        hits = [Hit(d.id, d.parent_id, float(query @ row)) for d, row in passing]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        pass
