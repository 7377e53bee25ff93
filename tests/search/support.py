"""Legs over real engines, and an encoder whose vectors follow from the words of a text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from chunksink.chunkbus.chunk import Record
from chunksink.search.legs import KeywordLeg, Legs, SemanticLeg
from chunksink.search.question import Mode
from chunksink.sinks.chroma import EmbeddedChromaSink
from chunksink.sinks.contract import Marker
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.document import Document, Family, Vectors
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.projection import project_family
from chunksink.sinks.reader import Hit
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import source

MODES: tuple[Mode, ...] = ("hybrid", "keyword", "semantic")

# The words of one group have the same direction.
MEANINGS = (("cat", "feline", "kitten"), ("boat", "ship", "vessel"), ("tax", "levy", "duty"))

_UNIQUE = HashEncoder(dimension=16)
DIMENSIONS = len(MEANINGS) + _UNIQUE.dimension


def meaning(text: str) -> Vectors:
    """The number of words of each group, and a small part that is unique: an approximate index loses some of many equal
    vectors."""
    words = text.lower().split()
    counts = [sum(words.count(word) for word in group) for group in MEANINGS]
    return np.array([*counts, *(0.3 * _UNIQUE.vector(text))], dtype=np.float32)


def family(name: str, *texts: str, custom: FieldSet = NO_FIELDS, **fields: Any) -> Family:
    records: list[Record] = source(name, *texts, **fields)
    documents = project_family(records, custom)
    return Family(documents, np.stack([meaning(document.text) for document in documents]))


def document(**fields: Any) -> Document:
    ids = {"id": "c", "chunk_id": "c", "parent_id": "p", "document_id": "d"}
    return Document(**ids | {"text": "text"} | fields, text_hash="sha256:0", schema_version="chunks.v1")


class Counted:
    """A reader that records the requested depths."""

    def __init__(self, reader: object, call: str) -> None:
        self._reader = reader
        self._call = call
        self.depths: list[int] = []

    def __getattr__(self, name: str) -> object:
        found = getattr(self._reader, name)
        if name != self._call:
            return found

        def counted(question: object, depth: int, *more: object, **named: object) -> list[Hit]:
            self.depths.append(depth)
            hits: list[Hit] = found(question, depth, *more, **named)
            return hits

        return counted


@contextmanager
def legs_over(
    folder: Path,
    families: Iterable[Family],
    *,
    vectors_too: bool = True,
    unavailable: dict[str, str] | None = None,
    encode: Callable[[str], Vectors] = meaning,
    fts_families: Sequence[Family] | None = None,
    store_text: bool = True,
) -> Iterator[Legs]:
    """Real engines with these families; with `fts_families` the keyword engine has these instead."""
    stored = list(families)
    with ExitStack() as stack:
        fts = FtsSink(folder / "fts")
        build = fts.create(Marker("home", "words", 1))
        build.replace(stored if fts_families is None else fts_families)
        build.flush()
        build.close()
        keyword = fts.reader("words")
        stack.callback(keyword.close)
        words = KeywordLeg(keyword, "fts", "words")
        if not vectors_too:
            yield Legs(words, None, unavailable or {})
            return
        chroma = EmbeddedChromaSink(folder / "chroma", store_text=store_text)
        vectors = chroma.create(Marker("home", "vectors", 1), DIMENSIONS)
        vectors.replace(stored)
        vectors.flush()
        vectors.close()
        reader = chroma.reader("vectors")
        stack.callback(reader.close)
        yield Legs(words, SemanticLeg(reader, encode, "chroma", "vectors"), unavailable or {})


def with_readers(legs: Legs, **readers: Any) -> Legs:
    """The same legs with other readers."""
    return replace(
        legs, **{name: replace(leg, reader=reader) for name, reader in readers.items() if (leg := getattr(legs, name))}
    )


class Failing:
    """A reader on which every call fails, or only `call`; then the other calls reach `reader`."""

    def __init__(self, error: Exception, reader: object = None, call: str | None = None) -> None:
        self._error, self._reader, self._call = error, reader, call

    def __getattr__(self, name: str) -> Any:
        if name == "capability":  # it wraps no other reader
            raise AttributeError(name)

        def fails(*_arguments: object, **_named: object) -> None:
            raise self._error

        return fails if self._call in (None, name) else getattr(self._reader, name)
