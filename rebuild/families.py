"""Reads families from their partitions, at the places that the catalog records, and projects them into documents."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import PartitionReader, Place
from chunksink.embeddings.context import context_hash, context_of
from chunksink.embeddings.encoder import Passage
from chunksink.rebuild.catalog import Catalog, FamilyChunk, HashedFamily, TextPlace
from chunksink.rebuild.catalog_rows import hash_of_line
from chunksink.rebuild.schema import marks
from chunksink.rebuild.state import State
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.document import Document, family_hash
from chunksink.sinks.fields import sink_id
from chunksink.sinks.projection import order_in_family, project_family

PART = 5000
"""Documents. A larger family is read in parts of this size, so that memory does not grow with it."""
KEPT_DOCUMENTS = 5000
"""About how many documents a `FamilyReader` keeps in memory."""
LONG_TEXT = 8192
"""Characters. A text counts as one more document for each block of this length."""


def passage_of(document: Document) -> Passage:
    """What is embedded for a document. Its key is the hash of the text, followed by the hash of the context; models
    without context ignore the second."""
    context = context_of(document.title, document.headings)
    return Passage(document.text_hash + context_hash(context).hex(), document.text, context)


@dataclass(frozen=True, eq=False)
class FamilyDocuments:
    """The documents of a family, or of a part of a large one. `family_hash` is valid in the last part only."""

    family: str
    reading_id: int
    documents: Sequence[Document]
    first: bool = True
    last: bool = True
    earlier: Sequence[str] = ()
    """Document hashes of the earlier parts."""

    @cached_property
    def family_hash(self) -> str:
        return family_hash([*self.earlier, *self.document_hashes()])

    @property
    def hashed(self) -> HashedFamily:
        return self.family, self.reading_id, self.family_hash

    @property
    def label(self) -> str:
        return label_of(self.documents[0])

    @cached_property
    def size(self) -> int:
        """Number of documents, where long texts count as several."""
        return sum(1 + len(document.text) // LONG_TEXT for document in self.documents)

    def document_hashes(self) -> list[str]:
        return [document.document_hash for document in self.documents]


def _record(reader: PartitionReader, chunk: FamilyChunk) -> Record:
    """The chunk. Raises PartitionChanged if its line differs from the catalog."""
    line = reader.line(chunk.place)
    if hash_of_line(line) != chunk.line:
        raise PartitionChanged(f"{reader.key} at byte {chunk.place.offset}: another chunk is there now")
    record: Record = orjson.loads(line)
    return record


def _part(reader: PartitionReader, chunks: Sequence[FamilyChunk], start: int, fields: FieldSet) -> list[Document]:
    """The documents of a part of a family, whose chunks are in order."""

    def id_at(position: int) -> str | None:
        inside = 0 <= position < len(chunks)
        return sink_id(_record(reader, chunks[position])["chunk_id"]) if inside else None

    records = (_record(reader, chunk) for chunk in chunks[start : start + PART])
    return project_family(records, fields, position=start, before=id_at(start - 1), after=id_at(start + PART))


def passages_at(reader: PartitionReader, places: Iterable[TextPlace]) -> list[Passage]:
    """The passages at these places of one partition. Raises PartitionChanged if another text is at one of them."""
    records = [reader.record(place.place, place.text_hash) for place in places]
    return [passage_of(document) for record in records for document in project_family([record])]


def label_of(document: Document) -> str:
    return document.source_uri or document.path or document.document_id


def source_names(db: Any, root: BusRoot, families: Sequence[str]) -> dict[str, str]:
    """The names of sources by family: from receipts, else from their chunks, else the family key."""
    labels = f"select family, max(label) from receipt where family in ({marks(families)}) group by family"
    names = dict(db.execute(labels, list(families)).fetchall())
    for family in families:
        if not names.get(family) and (document := any_document(db, root, family)) is not None:
            names[family] = label_of(document)
    return {family: names.get(family) or family for family in families}


def any_document(db: Any, root: BusRoot, family: str) -> Document | None:
    """Any document of this family; None if it has no chunk, or if its partition has changed."""
    select = (
        "select partition, offset, length, text_hash from chunk join chunk_line using (id) where family = ? limit 1"
    )
    for partition, offset, length, text_hash in db.execute(select, [family]).fetchall():
        with suppress(OSError, PartitionChanged), PartitionReader(root, partition) as reader:
            [document] = project_family([reader.record(Place(offset, length), text_hash)])
            return document
    return None


class FamilyReader:
    """Reads families of one bus root. Keeps recent ones in memory, since a compared family is often written next."""

    def __init__(self, root: BusRoot, catalog: Catalog, fields: FieldSet = NO_FIELDS) -> None:
        self._root = root
        self._catalog = catalog
        self._fields = fields
        self._kept: dict[tuple[str, int], FamilyDocuments] = {}
        self._kept_documents = 0

    def with_state(self, state: State) -> "FamilyReader":
        """The same reader with another connection, for another thread."""
        return FamilyReader(self._root, Catalog(state), self._fields)

    def hash_families(self, keys: Sequence[str]) -> None:
        """Record the hashes of these families."""
        self._catalog.note_hashes([part.hashed for part in self.families(keys) if part.last])

    def families(self, keys: Sequence[str] | None = None) -> Iterator[FamilyDocuments]:
        """The current versions of these families, or of all; large ones in parts. Raises PartitionChanged if the chunks
        differ from the catalog."""
        with ExitStack() as stack:
            reader: PartitionReader | None = None
            for family in self._catalog.families(keys):
                if kept := self._kept.get((family.family, family.reading_id)):
                    yield kept
                    continue
                with self._marking_if_changed(family.partition):
                    if reader is None or reader.key != family.partition:
                        stack.close()
                        reader = stack.enter_context(PartitionReader(self._root, family.partition))
                    chunks: Sequence[FamilyChunk] = family.chunks
                    if len(chunks) > PART:  # `project_family` sorts one part only
                        chunks = sorted(chunks, key=lambda chunk: order_in_family(_record(reader, chunk)))
                hashes: list[str] = []
                for start in range(0, len(chunks), PART):
                    with self._marking_if_changed(family.partition):
                        documents = _part(reader, chunks, start, self._fields)
                    last = start + PART >= len(chunks)
                    earlier = tuple(hashes) if last else ()
                    part = FamilyDocuments(family.family, family.reading_id, documents, start == 0, last, earlier)
                    if part.first and last:
                        self._keep(part)
                    hashes += part.document_hashes()
                    yield part

    def passages(self, places: Sequence[TextPlace]) -> Iterator[Passage]:
        """The passages at these places, which are sorted by partition. Raises PartitionChanged as `families` does."""
        for partition, members in groupby(places, key=lambda place: place.partition):
            with self._marking_if_changed(partition), PartitionReader(self._root, partition) as reader:
                some = passages_at(reader, members)
            yield from some

    @contextmanager
    def _marking_if_changed(self, partition: str) -> Iterator[None]:
        """If the block finds that the partition differs from the catalog, mark it, so that the next refresh reads it
        again, and raise PartitionChanged."""
        try:
            yield
        except (PartitionChanged, FileNotFoundError) as error:
            self._catalog.mark_outdated(partition)
            raise PartitionChanged(f"partition {partition} was rewritten meanwhile; run again: {error}") from error

    def _keep(self, family: FamilyDocuments) -> None:
        if self._kept_documents >= KEPT_DOCUMENTS:
            self._kept.clear()
            self._kept_documents = 0
        self._kept[family.family, family.reading_id] = family
        self._kept_documents += family.size
