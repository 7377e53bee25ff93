"""The sink document: one chunk as every sink stores it, whatever the engine. `projection` makes it.

Plain data and two hashes; no engine, no file. Absent values are None or empty and are not stored.
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
    """What a sink holds of one chunk. `fields.PROJECTION` says what each field means.

    It is made of a valid chunk, so every engine can hold it: no string has U+0000 or a lone surrogate, every number is
    exact, and `parent_id` is 64 lower-case hex digits. Sinks rely on that and check none of it.
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


def document_hash(fields: Mapping[str, Any]) -> str:
    """Hash of everything that is stored of a document (`Document.fields()`). `text_hash` takes the place of the text,
    so that a sink that keeps no texts can compute it too."""
    return json_hash({name: value for name, value in fields.items() if name not in ("text", "document_hash")})


def hashes_of_content(document: Document) -> tuple[str, str]:
    """Document hash and text hash of what is stored, whatever hashes are stored with it."""
    hashed = text_hash(document.text)
    return document_hash(document.fields() | {"text_hash": hashed}), hashed


def family_hash(document_hashes: Iterable[str]) -> str:
    """Hash of a family, from the hashes of its documents in any order; "" where there are none. It changes exactly when
    something of the family must be written."""
    hashes = sorted(document_hashes)
    return json_hash(hashes) if hashes else ""


@dataclass(frozen=True, eq=False)
class Family:
    """Documents of one family, and for sinks that want them one vector a document, in the same order.

    A row that is not finite says that this document has no vector: a sink that wants vectors refuses it.
    """

    documents: Sequence[Document]
    vectors: Vectors | None = None
    rewrite: Collection[str] = ()
    """Ids of documents to write although the build seems to hold them: a scan found that they differ."""
    first: bool = True
    """False for a further part of a large family: the parts before it stay."""
    last: bool = True
    """False while parts are still to come: nothing of the old family is removed before the last one."""

    def __post_init__(self) -> None:
        if len({document.parent_id for document in self.documents}) != 1:
            raise ValueError("a family is one or more documents of one parent_id")
        if self.vectors is not None and len(self.vectors) != len(self.documents):
            raise ValueError(f"{len(self.vectors)} vectors for {len(self.documents)} documents")

    @property
    def parent_id(self) -> str:
        return self.documents[0].parent_id
