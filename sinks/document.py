"""The sink document: one chunk as every sink stores it, whatever the engine. `projection` makes it.

Plain data and two hashes; no engine, no file. Absent values are None or empty and are not stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from chunksink.chunkbus.canonical import json_hash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    Vectors = Any  # numpy is slow to import, and many commands need none


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a sink holds of one chunk. What each field means stands in `fields.PROJECTION`."""

    id: str
    chunk_id: str
    parent_id: str
    family_hash: str = ""
    document_hash: str = ""
    text_hash: str
    document_id: str
    chunk_index: int | None = None
    chunk_count: int | None = None
    previous_id: str | None = None
    next_id: str | None = None
    tenant_id: str | None = None
    tenant_key: str | None = None
    schema_version: str

    title: str | None = None
    headings: tuple[str, ...] = ()
    text: str
    language: str | None = None
    tags: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    year: int | None = None
    content_truncated: bool | None = None
    token_count: int | None = None

    source_uri: str | None = None
    path: str | None = None
    filename: str | None = None
    extension: str | None = None
    source_folder: str | None = None
    source_type: str | None = None
    file_type: str | None = None
    mime_type: str | None = None
    size_bytes: int | None = None
    modified_at_epoch: int | None = None

    page_start: int | None = None
    page_end: int | None = None
    slide_number: int | None = None
    sheet_name: str | None = None
    timestamp_start: float | None = None
    timestamp_end: float | None = None
    speaker: str | None = None
    section: str | None = None
    anchor: str | None = None
    char_start: int | None = None
    char_end: int | None = None
    start_offset: str | None = None
    end_offset: str | None = None

    def fields(self) -> dict[str, Any]:
        """The fields that say something, ready for JSON: what engines are sent."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> "Document":
        """The document that these fields were taken from; unknown ones are left out, None is absent."""
        known = {name: value for name, value in fields.items() if name in FIELDS and value is not None}
        return msgspec.convert(known, cls)

    @classmethod
    def if_ours(cls, fields: Mapping[str, Any]) -> "Document | None":
        """The same; None where no sink has written these fields."""
        try:
            return cls.from_fields(fields)
        except ValueError:
            return None


FIELDS = Document.__struct_fields__
NAMES = frozenset(FIELDS)
LISTS = ("headings", "tags", "authors")

# Ids say where a document stands and hashes follow from the rest: `family_hash` answers for both.
_IDS = ("id", "chunk_id", "parent_id", "document_id", "previous_id", "next_id", "tenant_id", "tenant_key")
_HASHES = ("family_hash", "document_hash", "text_hash")
_UNHASHED = frozenset(_IDS + _HASHES)


def document_hash(fields: Mapping[str, Any]) -> str:
    """Hash of what a document says, of `Document.fields()`: without ids, hashes, and whatever is absent."""
    return json_hash({name: value for name, value in fields.items() if name not in _UNHASHED})


def family_hash(parent_id: str, documents: Iterable[tuple[str, str, str]]) -> str:
    """Hash of all that must be rewritten when it changes, from the (id, document_id, document_hash) of a family.

    The ids are in it, for an edit that leaves every text alone can still give all chunks new ids, and an index
    that kept the old ones would not be the one a rebuild makes. The `parent_id` is in it so that no two families
    ever share a hash: surplus is removed by `family_hash NOT IN [all hashes of the batch]`, and two files that
    swapped their contents would otherwise protect each other's old chunks.
    """
    return json_hash([parent_id, sorted(documents)])


@dataclass(frozen=True, eq=False)
class Family:
    """All documents of one family, and for sinks that want them one vector a document, in the same order.

    A row that is not finite says that this document has no vector: a sink that wants vectors refuses it.
    """

    documents: Sequence[Document]
    vectors: Vectors | None = None

    def __post_init__(self) -> None:
        if len({(document.parent_id, document.family_hash) for document in self.documents}) != 1:
            raise ValueError("a family is one or more documents of one parent_id and one family_hash")
        if self.vectors is not None and len(self.vectors) != len(self.documents):
            raise ValueError(f"{len(self.vectors)} vectors for {len(self.documents)} documents")

    @property
    def parent_id(self) -> str:
        return self.documents[0].parent_id

    @property
    def family_hash(self) -> str:
        return self.documents[0].family_hash
