"""The sink document: one chunk as every engine stores it. `projection` creates it.

Plain data and two hashes. Absent values are None or empty and are not stored.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from chunksink.chunkbus.canonical import json_hash, text_hash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    Vectors = Any  # numpy is slow to import, and many commands need none


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One chunk as a sink stores it. `fields.PROJECTION` defines each field.

    Every engine can store it, because it comes from a valid chunk: no string has U+0000 or a lone surrogate, every
    number is exact, and `parent_id` is 64 lower-case hex digits. Sinks may rely on that.
    """

    id: str
    chunk_id: str
    parent_id: str
    document_hash: str = ""
    text_hash: str
    document_id: str
    chunk_index: int | None = None
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

    fields: dict[str, Any] = {}
    """The custom fields, by name: strings, numbers, booleans, and lists of strings."""
    fields_text: str | None = None
    metadata: str | None = None

    def __hash__(self) -> int:
        return hash((self.id, self.document_hash))

    def as_dict(self) -> dict[str, Any]:
        """The fields that have a value, ready for JSON."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> "Document":
        """The inverse of `as_dict`. Ignores unknown fields."""
        return msgspec.convert({name: value for name, value in fields.items() if value is not None}, cls)

    @classmethod
    def if_ours(cls, fields: Mapping[str, Any]) -> "Document | None":
        """Like `from_fields`, but None if the fields are not those of a sink document."""
        try:
            return cls.from_fields(fields)
        except ValueError:
            return None


FIELDS = Document.__struct_fields__
NAMES = frozenset(FIELDS)
LISTS = ("headings", "tags", "authors")
CUSTOM = "fields."
"""The prefix of a custom field's name in filters and facets, and in engines without nested fields."""


NO_TEXT = text_hash("")
"""The `text_hash` of a document without text."""


def document_hash(fields: Mapping[str, Any]) -> str:
    """Hash of `Document.as_dict()`. `text_hash` replaces the text, so that a sink without texts can compute it too."""
    return json_hash({name: value for name, value in fields.items() if name not in ("text", "document_hash")})


def hashes_of_content(document: Document) -> tuple[str, str]:
    """Document hash and text hash, computed from the content instead of the stored hashes."""
    of_text = text_hash(document.text)
    return document_hash(document.as_dict() | {"text_hash": of_text}), of_text


def family_hash(document_hashes: Iterable[str]) -> str:
    """Hash of a family from its document hashes in any order; "" for no documents. It changes exactly when the family
    must be written."""
    hashes = sorted(document_hashes)
    return json_hash(hashes) if hashes else ""


@dataclass(frozen=True, eq=False)
class Family:
    """All documents of one source, or a part of them. For sinks that want vectors: one vector per document, in order.

    A row with NaN or infinity means that the document has no vector: a sink that wants vectors refuses it.
    """

    documents: Sequence[Document]
    vectors: Vectors | None = None
    rewrite: Collection[str] = ()
    """Ids of documents to write even if the build seems to have them: a scan found that they differ."""
    first: bool = True
    """False for a later part of a large family: the earlier parts stay."""
    last: bool = True
    """False while more parts follow: no old document is removed before the last one."""

    def __post_init__(self) -> None:
        if len({document.parent_id for document in self.documents}) != 1:
            raise ValueError("a family is one or more documents of one parent_id")
        if self.vectors is not None and len(self.vectors) != len(self.documents):
            raise ValueError(f"{len(self.vectors)} vectors for {len(self.documents)} documents")

    @property
    def parent_id(self) -> str:
        return self.documents[0].parent_id
