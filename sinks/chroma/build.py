"""A build in Chroma, opened for writing.

A write is done when Chroma answers. `flush` then removes the old documents of replaced and deleted families.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from chunksink.sinks.chroma import rows
from chunksink.sinks.chroma.errors import Address, StaleIndex
from chunksink.sinks.chroma.handle import EF_SEARCH, Handle, ef_search, marker_in, metadata_of
from chunksink.sinks.contract import NO_PARENT, Marker, RefusedDocument, Stored
from chunksink.sinks.document import Document, Family, Vectors
from chunksink.sinks.errors import BuildBroken, RefusedData
from chunksink.sinks.payload import Replacements, batches, with_usable_vectors

PAGE = 5000  # Chroma fails above 32,766 rows
REQUEST_BYTES = 32 * 2**20  # a server accepts 40 MiB
_SAMPLES = 20
"""How many vectors `_require_vectors` reads."""

_Write = tuple[Document, Vectors, bool]
"""A document, its vector, and whether to rewrite it even if the build seems to have it."""


class ChromaBuild:
    def __init__(self, handle: Handle, store_text: bool) -> None:
        self._handle = handle
        self._store_text = store_text
        self._is_served = isinstance(handle.where, Address)
        self._replacements = Replacements()

    def marker(self) -> Marker | None:
        return marker_in(self._handle.metadata())

    def sign(self, marker: Marker) -> None:
        with self._handle.calling() as collection:
            collection.modify(metadata=metadata_of(marker))

    def search_settings_due(self) -> list[str]:
        return [] if self._handle.metadata().get(EF_SEARCH) == ef_search(self.count()) else [EF_SEARCH]

    def update_search_settings(self) -> list[str]:
        due = self.search_settings_due()
        if due:
            graph: Any = {"hnsw": {EF_SEARCH: ef_search(self.count())}}
            with self._handle.calling() as collection:
                collection.modify(configuration=graph)
        return due

    def count(self) -> int:
        return self._handle.count()

    def is_unchanged(self) -> bool:
        return self._handle.is_sealed()

    def warm_up(self) -> None:
        self._handle.opened()  # no call: it may save vectors, and after a kill only intents show that (ADR 0053)

    def replace(self, families: Sequence[Family]) -> int:
        latest = self._replacements.begin(families)
        by_id: dict[str, _Write] = {}  # an id in two families goes to the later one
        for family in latest:
            usable, refused = with_usable_vectors(family)
            self._replacements.refuse(refused)
            by_id |= {one.id: (one, vector, one.id in family.rewrite) for one, vector in usable}
        writes = list(by_id.values())
        width = len(writes[0][1]) if writes else 0
        documents = [document for document, *_ in writes]
        parts = rows.request_slices(documents, width, min(self._handle.opened().max_rows, PAGE), REQUEST_BYTES)
        sent = sum(self._write(writes[part]) for part in parts)
        # `flush` looks for surplus documents of all these families, even if they seem new: that costs 1 % of the write.
        self._replacements.add(latest)
        return sent

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._replacements.delete(parent_ids)

    def flush(self) -> list[RefusedDocument]:
        for ids in batches(self._replacements.surplus(self._ids_of), PAGE):
            with self._handle.calling() as collection:
                collection.delete(ids=list(ids))
        return self._replacements.finish()

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        yield from rows.read(self.page, PAGE, content=content, parent_ids=parent_ids)
        if NO_PARENT in parent_ids:  # no condition selects rows without a parent
            yield from (stored for stored in self.scan(content=content) if stored.parent_id == NO_PARENT)

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        if content and self._is_served:
            self._require_vectors(self.count())  # before the first document: until then errors are retried
        yield from rows.read(self.page, PAGE, content=content, vectors=vectors)

    def _require_vectors(self, documents: int) -> None:
        """Raise if vectors are missing. A server that has lost its vectors still serves the documents, which are stored
        separately. For embedded builds `seal` detects that."""
        for offset in range(0, documents, documents // _SAMPLES + 1):
            self.page(offset, 1, content=False, vectors=True)

    def page(self, offset: int, limit: int, content: bool, vectors: bool, where: rows.Where = None) -> rows.Page:
        """A page of rows, as Chroma returns it."""
        include = ["metadatas"]
        if content and self._store_text:
            include.append("documents")
        if vectors:
            include.append("embeddings")
        try:
            with self._handle.calling() as collection:
                found: Any = collection.get(where=where, limit=limit, offset=offset, include=include)  # type: ignore[arg-type]
        except StaleIndex as error:
            if not self._is_served:
                raise
            raise BuildBroken(f"Chroma at {self._handle.where} has lost vectors") from error
        return {name: found[name] for name in ("ids", "metadatas", "documents", "embeddings")}

    def close(self) -> None:
        self._handle.close()

    def _write(self, writes: Sequence[_Write]) -> int:
        """Send the documents that differ from the stored ones, and return how many. For a document with the same vector
        inputs, only metadata are sent, which leaves the vector graph unchanged. A refused request is halved until the
        refused document is isolated."""
        whole: list[tuple[Document, Vectors]] = []
        metadata_only: list[Document] = []
        try:
            with self._handle.calling() as collection:
                found: Any = collection.get(ids=[document.id for document, *_ in writes], include=["metadatas"])
                old = {id: metadata or {} for id, metadata in zip(found["ids"], found["metadatas"], strict=True)}
                for document, vector, rewrite in writes:
                    known = {} if rewrite else old.get(document.id, {})
                    if any(known.get(name) != value for name, value in rows.vector_inputs(document).items()):
                        whole.append((document, vector))
                    elif known.get("document_hash") != document.document_hash:
                        metadata_only.append(document)
                if metadata_only:
                    collection.update(
                        ids=[one.id for one in metadata_only],
                        metadatas=[rows.metadata(one, old[one.id]) for one in metadata_only],
                    )
                if whole:
                    collection.upsert(
                        ids=[one.id for one, _ in whole],
                        embeddings=np.stack([vector for _, vector in whole]),
                        metadatas=[rows.metadata(one, old.get(one.id, ())) for one, _ in whole],
                        documents=[one.text for one, _ in whole] if self._store_text else None,
                    )
        except RefusedData as error:
            if len(writes) == 1:
                [(document, *_)] = writes
                self._replacements.refuse([RefusedDocument(document.id, document.parent_id, str(error))])
                return 0
            middle = len(writes) // 2
            return self._write(writes[:middle]) + self._write(writes[middle:])
        return len(whole) + len(metadata_only)

    def _ids_of(self, parent_ids: Sequence[str]) -> Iterator[str]:
        """Reads ids only: with metadata, Chroma takes twenty times as long."""
        for where in rows.conditions_for_families(parent_ids):
            with self._handle.calling() as collection:
                yield from collection.get(where=where, include=[])["ids"]
        if NO_PARENT in parent_ids:
            yield from (one.id for one in self.of_families([NO_PARENT]))
