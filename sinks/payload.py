"""Requests to engines: usable vectors, limited sizes, and which old documents are surplus afterwards."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from chunksink.sinks.contract import RefusedDocument
from chunksink.sinks.document import Document, Family, Vectors

T = TypeVar("T")

_NO_DIRECTION = "its vector has no direction: it is zero, contains NaN or infinity, or its length overflows float32"


def with_usable_vectors(family: Family) -> tuple[list[tuple[Document, Vectors]], list[RefusedDocument]]:
    """Documents with usable vectors, and the refused others: one bad vector would fail its whole payload."""
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


def slices_by_size(sizes: Sequence[int], most: int, most_bytes: int) -> Iterator[slice]:
    """Slices of at most `most` items and `most_bytes` bytes. An item that is too large goes alone."""
    start = total = 0
    for position, size in enumerate(sizes):
        if position > start and (position - start >= most or total + size > most_bytes):
            yield slice(start, position)
            start, total = position, 0
        total += size
    if start < len(sizes):
        yield slice(start, len(sizes))


def batches(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]


class Replacements:
    """Families replaced or deleted since the last flush: the documents that each keeps, and the refused ones."""

    def __init__(self) -> None:
        self._kept: dict[str, set[str]] = {}
        """Document ids by family."""
        self._incomplete: set[str] = set()
        self._refused: dict[str, RefusedDocument] = {}

    def begin(self, families: Iterable[Family]) -> list[Family]:
        """Call it before the first write. Until `add`, no document of these families is surplus. Returns the families
        to write: the later version of each."""
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
        """Surrounds a transaction that writes families, adds them, and removes their surplus. Yields what `begin`
        returns. After an error the families are as at their beginning, because nothing was written."""
        latest = self.begin(families)
        try:
            yield latest
        except BaseException:
            self.begin(latest)
            raise
        self.finish()

    def delete(self, parent_ids: Iterable[str]) -> None:
        for parent_id in parent_ids:
            self._kept[parent_id] = set()
            self._incomplete.discard(parent_id)

    def refuse(self, refused: Iterable[RefusedDocument]) -> None:
        self._refused.update((one.id, one) for one in refused)

    def keeps(self, document: Document) -> bool:
        return document.id in self._kept.get(document.parent_id, ())

    def surplus(self, ids_of: Callable[[Sequence[str]], Iterable[str]]) -> list[str]:
        """Stored ids that the complete families no longer have. Call it when all documents are written.

        `ids_of` lists the ids that the engine stores for some families.
        """
        for one in self._refused.values():  # a document stored under this id is an old version
            self._kept.get(one.parent_id, set()).discard(one.id)
        complete = self.complete()
        kept = set[str]().union(*(self._kept[parent_id] for parent_id in complete))
        return [id for id in ids_of(complete) if id not in kept]

    def finish(self) -> list[RefusedDocument]:
        """Forget the complete families, once the surplus is removed. Returns the refused documents."""
        for parent_id in self.complete():
            del self._kept[parent_id]
        refused, self._refused = list(self._refused.values()), {}
        return refused

    def complete(self) -> list[str]:
        """Families that were deleted, or whose last part was written."""
        return [parent_id for parent_id in self._kept if parent_id not in self._incomplete]
