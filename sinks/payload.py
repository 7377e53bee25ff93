"""Helpers for writing to engines: they check vectors, limit the size of requests, and find surplus documents."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from chunksink.sinks.contract import RefusedDocument
from chunksink.sinks.document import Document, Family, Vectors

T = TypeVar("T")

_NO_DIRECTION = "its vector has no direction: it is zero, contains NaN or infinity, or its length overflows float32"


def with_usable_vectors(family: Family) -> tuple[list[tuple[Document, Vectors]], list[RefusedDocument]]:
    """The documents with usable vectors, and the others as refused. One bad vector would fail a whole request."""
    if family.vectors is None:
        raise ValueError("this sink needs vectors, and the family has none")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        single = family.vectors.astype(np.float32, copy=False)
        squares = np.einsum("ij,ij->i", single, single)  # in float32, as the engines compute it
    is_usable: list[bool] = np.asarray(np.isfinite(squares) & (squares > 0)).tolist()
    rows = list(zip(family.documents, family.vectors, is_usable, strict=True))
    refused = [RefusedDocument(one.id, one.parent_id, _NO_DIRECTION) for one, _, usable in rows if not usable]
    return [(document, vector) for document, vector, usable in rows if usable], refused


def unit(vectors: Vectors) -> Vectors:
    """The vectors scaled to length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return result


def slices_by_size(sizes: Sequence[int], max_items: int, max_bytes: int) -> Iterator[slice]:
    """Slices of at most `max_items` items and `max_bytes` bytes. A larger item gets a slice of its own."""
    start = total = 0
    for position, size in enumerate(sizes):
        if position > start and (position - start >= max_items or total + size > max_bytes):
            yield slice(start, position)
            start, total = position, 0
        total += size
    if start < len(sizes):
        yield slice(start, len(sizes))


def batches(items: Sequence[T], max_items: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), max_items):
        yield items[start : start + max_items]


class Replacements:
    """Tracks, between flushes, which documents each replaced or deleted family keeps, and which were refused. A family
    in parts is tracked until its last part is written."""

    def __init__(self) -> None:
        self._kept: dict[str, set[str]] = {}
        """Document ids by family."""
        self._incomplete: set[str] = set()
        self._refused: dict[str, RefusedDocument] = {}

    def begin(self, families: Iterable[Family]) -> list[Family]:
        """Call it before the first write. Returns the families to write: the last version of each.

        No document of a family is surplus until `add` gets its last part.
        """
        latest = {family.parent_id: family for family in families}
        for parent_id, family in latest.items():
            self._incomplete.add(parent_id)
            if family.first:
                self._kept[parent_id] = set()
            for document in family.documents:
                self._refused.pop(document.id, None)
        return list(latest.values())

    def add(self, families: Iterable[Family]) -> None:
        for family in families:
            self._kept.setdefault(family.parent_id, set()).update(document.id for document in family.documents)
            if family.last:
                self._incomplete.discard(family.parent_id)

    @contextmanager
    def in_transaction(self, families: Iterable[Family]) -> Iterator[list[Family]]:
        """For an engine with transactions. Yields what `begin` returns. In the block the caller writes the families,
        calls `add` and removes the surplus. An error rolls all of it back, so the families count as not added."""
        latest = self.begin(families)
        try:
            yield latest
        except BaseException:
            self.begin(latest)
            raise
        self._forget_complete()

    def delete(self, parent_ids: Iterable[str]) -> None:
        for parent_id in parent_ids:
            self._kept[parent_id] = set()
            self._incomplete.discard(parent_id)

    def refuse(self, refused: Iterable[RefusedDocument]) -> None:
        self._refused.update((one.id, one) for one in refused)

    def keeps(self, document: Document) -> bool:
        return document.id in self._kept.get(document.parent_id, ())

    def surplus(self, ids_of: Callable[[Sequence[str]], Iterable[str]]) -> list[str]:
        """The ids to remove: stored ones that the complete families no longer have. Call it after all writes.

        `ids_of` lists the ids that the engine stores for some families.
        """
        for one in self._refused.values():  # a document stored under this id is an old version
            self._kept.get(one.parent_id, set()).discard(one.id)
        complete = self.complete()
        kept = set[str]().union(*(self._kept[parent_id] for parent_id in complete))
        return [id for id in ids_of(complete) if id not in kept]

    def finish(self) -> list[RefusedDocument]:
        """Forget the complete families, once the surplus is removed. Returns the refused documents."""
        self._forget_complete()
        refused, self._refused = list(self._refused.values()), {}
        return refused

    def _forget_complete(self) -> None:
        for parent_id in self.complete():
            del self._kept[parent_id]

    def complete(self) -> list[str]:
        """Families that were deleted, or whose last part was written."""
        return [parent_id for parent_id in self._kept if parent_id not in self._incomplete]
