"""Filling a build of every sink from the catalog: read, project, embed, write, confirm, note the receipt.

A receipt says what an engine confirmed. It is written after the flush, never before.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any

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

FAMILIES_IN_BATCH = 256

Progress = Callable[[int], object]


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
    """Writes every current family into every target. Returns what each sink refused."""
    refused: dict[str, tuple[RefusedDocument, ...]] = {target.sink: () for target in targets}
    with ExitStack() as stack:
        records = _Records(root, stack)
        families = catalog.families()
        while batch := list(islice(families, FAMILIES_IN_BATCH)):
            projected = [records.read(family) for family in batch]
            written = [Family(*pair) for pair in zip(projected, _embed(projected, embedder), strict=True)]
            for target in targets:
                target.build.replace(written)
                left_out = target.build.flush()
                refused[target.sink] += tuple(left_out)
                _note_receipts(db, target.build_id, projected, left_out)
            on_progress(sum(map(len, projected)))
    return refused


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


def _note_receipts(
    db: Database, build_id: str, projected: list[list[Document]], refused: list[RefusedDocument]
) -> None:
    left_out: dict[str, list[str]] = {}
    for document in refused:
        left_out.setdefault(document.parent_id, []).append(document.id)
    rows = [_receipt(build_id, documents, left_out.get(documents[0].parent_id, [])) for documents in projected]
    with db.atomic():
        db.table("receipt").insert_all(rows, replace=True)


def _receipt(build_id: str, documents: list[Document], refused: list[str]) -> dict[str, Any]:
    taken = [document for document in documents if document.id not in refused]
    return {
        "build": build_id,
        "family": documents[0].parent_id,
        "family_hash": documents[0].family_hash,
        "documents": len(documents),
        "refused": " ".join(refused),
        "digest": family_digest(document_digest(document, document.text_hash) for document in taken),
    }
