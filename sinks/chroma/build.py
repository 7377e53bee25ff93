"""A build in Chroma, for its writer. Writes are done when Chroma has answered; surplus goes at `flush`."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chunksink.sinks.chroma import rows
from chunksink.sinks.chroma.errors import Address, RefusedData, StaleIndex
from chunksink.sinks.chroma.handle import EF_SEARCH, Handle, ef_search, marker_in, metadata_of
from chunksink.sinks.contract import NO_PARENT, Marker, RefusedDocument, Stored
from chunksink.sinks.document import Document, Family, Vectors
from chunksink.sinks.errors import BuildBroken
from chunksink.sinks.payload import Replacements, batches, with_sound_vectors

PAGE = 5000  # above 32,766 rows Chroma cannot answer
REQUEST_BYTES = 32 * 2**20  # a server takes 40 MiB
_LOOKS = 20
"""For vectors, spread over a build."""


class ChromaBuild:
    def __init__(self, handle: Handle, store_text: bool) -> None:
        self._handle = handle
        self._store_text = store_text
        self._is_served = isinstance(handle.where, Address)
        self._replacements = Replacements()

    def marker(self) -> Marker | None:
        return marker_in(self._handle.metadata())

    def sign(self, marker: Marker) -> None:
        with self._handle.asking() as collection:
            collection.modify(metadata=metadata_of(marker))

    def search_settings_due(self) -> list[str]:
        return [] if self._handle.metadata().get(EF_SEARCH) == ef_search(self.count()) else [EF_SEARCH]

    def update_search_settings(self) -> list[str]:
        due = self.search_settings_due()
        if due:
            graph: Any = {"hnsw": {EF_SEARCH: ef_search(self.count())}}
            with self._handle.asking() as collection:
                collection.modify(configuration=graph)
        return due

    def count(self) -> int:
        return self._handle.count()

    def is_unchanged(self) -> bool:
        return self._handle.is_sealed()

    def replace(self, families: Sequence[Family]) -> int:
        last = self._replacements.begin(families)
        taken: dict[str, tuple[Document, Vectors, bool]] = {}  # an id that occurs twice goes to the later family
        for family in last:
            sound, refused = with_sound_vectors(family)
            self._replacements.refuse(refused)
            for document, vector in sound:
                taken[document.id] = document, vector, document.id in family.rewrite
        documents, vectors, rewritten = zip(*taken.values(), strict=True) if taken else ((), (), ())
        width = len(vectors[0]) if vectors else 0
        parts = rows.slices(documents, width, min(self._handle.opened().most, PAGE), REQUEST_BYTES)
        sent = sum(self._write(documents[part], vectors[part], rewritten[part]) for part in parts)
        # Also families that the build did not hold: flush then looks for old chunks that are not there, which costs
        # less than a hundredth of the writing.
        self._replacements.add(last)
        return sent

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._replacements.delete(parent_ids)

    def flush(self) -> list[RefusedDocument]:
        for ids in batches(self._replacements.surplus(self._ids_of), PAGE):
            self._delete(ids)
        return self._replacements.finish()

    def held(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        yield from rows.read(self.page, PAGE, content=content, parent_ids=parent_ids)
        if NO_PARENT in parent_ids:  # no condition selects rows without a parent
            yield from (found for found in self.scan(content=content) if found.parent_id == NO_PARENT)

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        if content and self._is_served:
            self._require_vectors(self.count())  # before the first document, for until then all of it is tried again
        yield from rows.read(self.page, PAGE, content=content, vectors=vectors)

    def _require_vectors(self, documents: int) -> None:
        """Documents and vectors lie apart, and a server that has lost its vectors goes on with the documents. In a
        folder of our own the seal tells."""
        for offset in range(0, documents, documents // _LOOKS + 1):
            self.page(offset, 1, content=False, vectors=True)

    def page(self, offset: int, limit: int, content: bool, vectors: bool, where: rows.Where = None) -> rows.Page:
        """Some of what a scan reads, as Chroma gives it."""
        include = ["metadatas"]
        if content and self._store_text:
            include.append("documents")
        if vectors:
            include.append("embeddings")
        try:
            with self._handle.asking() as collection:
                found: Any = collection.get(where=where, limit=limit, offset=offset, include=include)  # type: ignore[arg-type]
        except StaleIndex as error:
            if not self._is_served:
                raise
            raise BuildBroken(
                f"Chroma at {self._handle.where} holds documents without their vectors: `chunksink verify --repair` "
                "writes them again, nothing is computed again"
            ) from error
        return {name: found[name] for name in ("ids", "metadatas", "documents", "embeddings")}

    def close(self) -> None:
        self._handle.close()

    def _write(self, documents: Sequence[Document], vectors: Sequence[Vectors], rewritten: Sequence[bool]) -> int:
        """Send what the build does not hold as it is, and return how many that was; where only metadata differ, those
        alone, which leaves the graph of vectors as it is. What Chroma refuses is halved until the document is found
        that it does not take."""
        try:
            with self._handle.asking() as collection:
                found: Any = collection.get(ids=[document.id for document in documents], include=["metadatas"])
                old = {id: held or {} for id, held in zip(found["ids"], found["metadatas"], strict=True)}
                whole, metadata_only = [], []
                for row, document in enumerate(documents):
                    held = {} if rewritten[row] else old.get(document.id, {})
                    if held.get("parent_id") != document.parent_id or held.get("text_hash") != document.text_hash:
                        whole.append(row)
                    elif held.get("document_hash") != document.document_hash:
                        metadata_only.append(row)
                if metadata_only:
                    collection.update(
                        ids=[documents[row].id for row in metadata_only],
                        metadatas=[rows.metadata(documents[row], old[documents[row].id]) for row in metadata_only],
                    )
                if whole:
                    collection.upsert(
                        ids=[documents[row].id for row in whole],
                        embeddings=np.stack([vectors[row] for row in whole]),
                        metadatas=[rows.metadata(documents[row], old.get(documents[row].id, ())) for row in whole],
                        documents=[documents[row].text for row in whole] if self._store_text else None,
                    )
        except RefusedData as error:
            if len(documents) == 1:
                self._replacements.refuse([RefusedDocument(documents[0].id, documents[0].parent_id, str(error))])
                return 0
            middle = len(documents) // 2
            halves = (slice(middle), slice(middle, None))
            return sum(self._write(documents[half], vectors[half], rewritten[half]) for half in halves)
        return len(whole) + len(metadata_only)

    def _ids_of(self, parent_ids: Sequence[str]) -> Iterator[str]:
        """Without their metadata, which take Chroma twenty times as long."""
        for where in rows.of_families(parent_ids):
            with self._handle.asking() as collection:
                yield from collection.get(where=where, include=[])["ids"]
        if NO_PARENT in parent_ids:
            yield from (one.id for one in self.held([NO_PARENT]))

    def _delete(self, ids: Sequence[str]) -> None:
        with self._handle.asking() as collection:
            collection.delete(ids=list(ids))
