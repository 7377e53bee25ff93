"""Filling a build of every sink from the catalog: read, project, embed, write, confirm, note the receipt.

A receipt says what an engine confirmed. It is written after the flush, never before. The engines write in parallel with
each other, and while they do the next families are read and embedded.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sqlite_utils import Database

from chunkbus.layout import BusRoot
from chunkbus.reader import PartitionReader
from rebuild.catalog import Catalog, CurrentFamily
from rebuild.digest import document_digest, family_digest
from rebuild.embed import DocumentEmbedder
from sinks.document import Document, Family, Vectors
from sinks.projection import project_family
from sinks.sink import Build, RefusedDocument

EMBEDDED_AT_ONCE = 512
"""Documents; a few seconds of work for a model on a processor, so that progress can be told."""
WRITTEN_AT_ONCE = 5000
"""Documents between flushes; an engine's batch costs a second or more, however small it is."""

Progress = Callable[[int], object]
T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """One build that is being filled, and what it is called in receipts and reports."""

    sink: str
    build_id: str
    build: Build
    holds_vectors: bool


def fill(
    root: BusRoot,
    catalog: Catalog,
    db: Database,
    targets: Sequence[Target],
    embedder: DocumentEmbedder,
    on_progress: Progress,
) -> dict[str, tuple[RefusedDocument, ...]]:
    """Writes every current family into every target. Returns what each sink refused.

    `on_progress` is given the number of documents that were just read and embedded.
    """
    with _Writers(db, targets) as writers, ExitStack() as stack:
        wanted = embedder if any(target.holds_vectors for target in targets) else None
        families = _embedded(_Records(root, stack), catalog.families(), wanted, on_progress)
        for some in _batches(families, WRITTEN_AT_ONCE, lambda family: len(family.documents)):
            writers.write(some)
        return writers.finish()


def _embedded(
    records: "_Records", families: Iterable[CurrentFamily], embedder: DocumentEmbedder | None, on_progress: Progress
) -> Iterator[Family]:
    """Families with their vectors; without, where no target wants them."""
    for some in _batches(families, EMBEDDED_AT_ONCE, lambda family: len(family.chunks)):
        projected = [records.read(family) for family in some]
        vectors = _embed(projected, embedder) if embedder else [None] * len(projected)
        on_progress(sum(map(len, projected)))
        yield from (Family(*pair) for pair in zip(projected, vectors, strict=True))


def _batches(families: Iterable[T], most: int, size: Callable[[T], int]) -> Iterator[list[T]]:
    """Whole families, of so many documents together or a little more."""
    batch: list[T] = []
    documents = 0
    for family in families:
        batch.append(family)
        documents += size(family)
        if documents >= most:
            yield batch
            batch, documents = [], 0
    if batch:
        yield batch


class _Writers:
    """One thread a target, each at most one batch behind. Receipts are noted here, in the caller's thread."""

    def __init__(self, db: Database, targets: Sequence[Target]) -> None:
        self._db = db
        self._targets = targets
        self._threads = ThreadPoolExecutor(max_workers=max(1, len(targets)), thread_name_prefix="sink")
        self._under_way: list[tuple[Target, Future[list[RefusedDocument]]]] = []
        self._families: Sequence[Family] = ()
        self._refused: dict[str, tuple[RefusedDocument, ...]] = {target.sink: () for target in targets}

    def __enter__(self) -> "_Writers":
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def write(self, families: Sequence[Family]) -> None:
        self._note()
        self._families = families
        self._under_way = [(target, self._threads.submit(_write, target.build, families)) for target in self._targets]

    def finish(self) -> dict[str, tuple[RefusedDocument, ...]]:
        self._note()
        return self._refused

    def _note(self) -> None:
        """Waits for what is under way, and notes what the engines have confirmed."""
        failed: BaseException | None = None
        for target, writing in self._under_way:
            error = writing.exception()
            if error is not None:
                failed = failed or error
                continue
            refused = writing.result()
            self._refused[target.sink] += tuple(refused)
            _note_receipts(self._db, target.build_id, self._families, refused)
        self._under_way = []
        if failed is not None:
            raise failed


def _write(build: Build, families: Sequence[Family]) -> list[RefusedDocument]:
    build.replace(families)
    return build.flush()


class _Records:
    """Reads families, keeping the partition open that the last one stood in."""

    def __init__(self, root: BusRoot, stack: ExitStack) -> None:
        self._root = root
        self._stack = stack
        self._reader: PartitionReader | None = None

    def read(self, family: CurrentFamily) -> list[Document]:
        if self._reader is None or self._reader.key != family.partition:
            self._stack.close()
            self._reader = self._stack.enter_context(PartitionReader(self._root, family.partition))
        return project_family(self._reader.record(place, hashed) for place, hashed in family.chunks)


def _embed(projected: list[list[Document]], embedder: DocumentEmbedder) -> list[Vectors]:
    rows = embedder.embed([document for documents in projected for document in documents])
    return list(np.split(rows, np.cumsum([len(documents) for documents in projected])[:-1]))


def _note_receipts(db: Database, build_id: str, families: Sequence[Family], refused: Sequence[RefusedDocument]) -> None:
    left_out: dict[str, list[str]] = {}
    for document in refused:
        left_out.setdefault(document.parent_id, []).append(document.id)
    rows = [_receipt(build_id, family.documents, left_out.get(family.parent_id, [])) for family in families]
    with db.atomic():
        db.table("receipt").insert_all(rows, replace=True)


def _receipt(build_id: str, documents: Sequence[Document], refused: list[str]) -> dict[str, Any]:
    taken = [document for document in documents if document.id not in refused]
    return {
        "build": build_id,
        "family": documents[0].parent_id,
        "family_hash": documents[0].family_hash,
        "documents": len(documents),
        "refused": " ".join(refused),
        "digest": family_digest(document_digest(document, document.text_hash) for document in taken),
    }
