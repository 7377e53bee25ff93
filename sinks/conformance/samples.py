"""Sample families for testing a sink, and what a build must contain for them."""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import msgspec
import numpy as np

from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.settings.fields import FieldOptions
from chunksink.sinks.contract import Build, Marker, Sink
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.document import Document, Family, Vectors, document_hash
from chunksink.sinks.payload import unit
from chunksink.sinks.projection import PROJECTION_VERSION, project_family

P = ParamSpec("P")
T = TypeVar("T")

DIMENSIONS = 8
FIELDS = FieldSet.of(
    {
        "project": FieldOptions(search=True, facet=True, sort=True),
        "priority": FieldOptions(type="number", sort=True),
        "due": FieldOptions(type="datetime", sort=True),
        "labels": FieldOptions(type="strings", facet=True),
        "open": FieldOptions(type="boolean", facet=True),
    }
)
"""The custom fields of the samples."""


def marker(home_id: str = "home-a") -> Marker:
    """The marker of a new build. Its id is unique, because tests share servers."""
    return Marker(home_id, f"b{uuid.uuid4().hex[:12]}", PROJECTION_VERSION)


def vector(text: str, dimensions: int = DIMENSIONS) -> Vectors:
    """A vector that depends on the text alone."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return unit(np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32))


def records(source: str, texts: Sequence[str], /, *, version: str = "1", **fields: Any) -> list[Record]:
    """The chunks of one source as a producer would write them. All ids change with the version."""
    provenance = {
        "source_uri": source,
        "source_checksum": "sha256:" + hashlib.sha256(version.encode()).hexdigest(),
        "parser": {"parser_name": "sample", "parser_version": "1"},
        "canonicalizer": {"canonicalizer_name": "sample", "canonicalizer_version": "1"},
        "inputs": [],
    }
    return [
        new_chunk(
            document_id=f"{fields.get('tenant_id', '')}:{source}@{version}",
            text=text,
            provenance=provenance,
            span_key=index,
            created_at="2024-05-01T00:00:00Z",
            fields={"chunk_index": index, "chunk_count": len(texts), **fields},
        )
        for index, text in enumerate(texts)
    ]


def family(source: str, texts: Sequence[str], /, *, version: str = "1", **fields: Any) -> Family:
    """A family of these texts with vectors."""
    return with_vectors(project_family(records(source, texts, version=version, **fields), FIELDS))


def with_vectors(documents: Sequence[Document]) -> Family:
    return Family(documents, np.stack([vector(document.text) for document in documents]))


def rewritten(one: Family) -> Family:
    """The family with all its documents named in `rewrite`."""
    return replace(one, rewrite=[document.id for document in one.documents])


def renamed(document: Document, id: str) -> Document:
    """The document under another id, with the matching hash."""
    other = msgspec.structs.replace(document, id=id, chunk_id=id)
    return msgspec.structs.replace(other, document_hash=document_hash(other.as_dict()))


def hashes_in(build: Build, *, content: bool = False) -> list[tuple[str, ...]]:
    """The sorted hashes of a build's content."""
    return sorted(stored.hashes() for stored in build.scan(content=content))


def hashes_of(families: Iterable[Family]) -> list[tuple[str, ...]]:
    """The hashes that a build of exactly these families has."""
    return sorted((d.id, d.parent_id, d.document_hash, d.text_hash) for one in families for d in one.documents)


def fill(build: Build, families: list[Family]) -> None:
    build.replace(families)
    assert build.flush() == []


@contextmanager
def reopened(connect: Callable[[], Sink], build_id: str) -> Iterator[Build]:
    """An existing build as another process opens it."""
    with closing(connect()) as sink, closing(sink.open(build_id)) as build:
        yield build


UNUSUAL_TEXTS = {
    "empty": "",
    "one character": "x",
    "line ends": "first\n\nsecond\tthird",
    "quotes": 'she said "it\'s" -- ; DROP TABLE documents; /* */ \\ \\n %s {} $parent_id',
    "markup": "<script>alert(1)</script> &amp; <mark>x</mark>",
    "emoji": "family \U0001f468\u200d\U0001f469\u200d\U0001f467 and flag \U0001f1eb\U0001f1f7",
    "right to left": "مرحبا بالعالم שלום עולם",
    "no spaces": "東京都庁の展望台は無料です。ภาษาไทยไม่มีช่องว่าง",
    "decomposed": "cafe\u0301 naïve ﬁligree",
    "separators": "a\u2028b\u2029c\u0085d\ufeffe",
    "control": "nul\x00 bell\x07 escape\x1b[31m start\x02 end\x03",
    "long": "word " * 60_000,
    "long word": "w" * 100_000,
}

RICH: dict[str, Any] = {
    "parent_id": "my own / parent",
    "tenant_id": "Ténant",
    "metadata": {
        "title": "A title",
        "authors": ["Ada", "Bob, Jr."],
        "year": 1999,
        "language": "fr",
        "tags": ["x", "y z"],
        "page_start": 3,
        "page_end": 4,
        "section": "1.2",
        "headings": ["One", 'Two "quoted"'],
        "project": "Größe = x.y",
        "priority": 0.1,
        "due": "1969-12-31T23:59:59Z",
        "labels": ["a=b", "ü", "a=b=c"],
        "open": False,
        "rest": 'kept "as it is"',
        "answer": 42,
    },
    "source": {"path": "/data/folder/a.pdf", "mime_type": "application/pdf", "size_bytes": 2**40, "source_type": "pdf"},
    "locator": {
        "timestamp_start": 1093.1000000000001,
        "timestamp_end": 2,
        "speaker": "S",
        "slide_number": 0,
        "sheet_name": "Übersicht",
    },
    "content_truncated": False,
    "start_offset": {"segment_id": 1, "ordinal": 2, "byte_offset": 3},
}


def in_another_thread(call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Make the call in a new thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call, *arguments, **named).result()
