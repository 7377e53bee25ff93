"""What engines are sent: vectors that they can store, in requests that they take; and what is surplus then."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from chunksink.sinks.contract import RefusedDocument
from chunksink.sinks.document import Document, Family, Vectors

T = TypeVar("T")

_NO_DIRECTION = (
    "its vector has no direction: it is zero, or holds NaN or infinity, or is so long that its length overflows float32"
)


def with_sound_vectors(family: Family) -> tuple[list[tuple[Document, Vectors]], list[RefusedDocument]]:
    """The documents whose vector can be sent, each with it, and the others with the reason: one vector that an engine
    refuses fails its whole payload."""
    if family.vectors is None:
        raise ValueError("a family without vectors was given to a sink that needs them")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        single = family.vectors.astype(np.float32, copy=False)
        squares = np.einsum("ij,ij->i", single, single)  # as engines have it: in float32
    is_sound: list[bool] = np.asarray(np.isfinite(squares) & (squares > 0)).tolist()
    rows = list(zip(family.documents, family.vectors, is_sound, strict=True))
    refused = [RefusedDocument(one.id, one.parent_id, _NO_DIRECTION) for one, _, sound in rows if not sound]
    return [(document, vector) for document, vector, sound in rows if sound], refused


def unit(vectors: Vectors) -> Vectors:
    """The same directions at length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return result


def portions(sizes: Sequence[int], most: int, most_bytes: int) -> Iterator[slice]:
    """Runs of what has these sizes. What is too large for any request goes alone."""
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
    """Families that were replaced or deleted since the last flush: what each keeps, and what was refused of it."""

    def __init__(self) -> None:
        self._kept: dict[str, set[str]] = {}
        """Ids of documents, by family."""
        self._incomplete: set[str] = set()
        self._refused: dict[str, RefusedDocument] = {}

    def begin(self, families: Iterable[Family]) -> list[Family]:
        """Before the first write; until `add`, nothing of these families is surplus. Returns those to write: of two
        versions of a family the later one."""
        last = {family.parent_id: family for family in families}
        for parent_id, family in last.items():
            self._incomplete.add(parent_id)
            if family.first:
                self._kept[parent_id] = set()
            for document in family.documents:
                self._refused.pop(document.id, None)
        return list(last.values())

    def add(self, families: Iterable[Family]) -> None:
        for family in families:
            self._kept.setdefault(family.parent_id, set()).update(document.id for document in family.documents)
            if family.last:
                self._incomplete.discard(family.parent_id)

    def delete(self, parent_ids: Iterable[str]) -> None:
        for parent_id in parent_ids:
            self._kept[parent_id] = set()
            self._incomplete.discard(parent_id)

    def refuse(self, refused: Iterable[RefusedDocument]) -> None:
        self._refused.update((one.id, one) for one in refused)

    def keeps(self, document: Document) -> bool:
        return document.id in self._kept.get(document.parent_id, ())

    def surplus(self, ids_of: Callable[[Sequence[str]], Iterable[str]]) -> list[str]:
        """Once all documents are written: ids that the build has for complete families and that these do not keep.

        `ids_of` lists the ids of all documents that the engine holds of some families.
        """
        for one in self._refused.values():  # what is held under such an id is an old version
            self._kept.get(one.parent_id, set()).discard(one.id)
        complete = self.complete()
        kept = set[str]().union(*(self._kept[parent_id] for parent_id in complete))
        return [id for id in ids_of(complete) if id not in kept]

    def finish(self) -> list[RefusedDocument]:
        """Once the surplus is gone: forget the complete families; returns the documents that were refused."""
        for parent_id in self.complete():
            del self._kept[parent_id]
        refused, self._refused = list(self._refused.values()), {}
        return refused

    def complete(self) -> list[str]:
        """Families of which the last part was written, or that were deleted."""
        return [parent_id for parent_id in self._kept if parent_id not in self._incomplete]
