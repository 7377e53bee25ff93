"""Filling a build of every sink from the catalog: read, project, embed, write, confirm, note the receipt.

A receipt says what an engine confirmed. It is written after the flush, never before.
"""

from collections.abc import Callable
from contextlib import ExitStack
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


def fill(
    root: BusRoot,
    catalog: Catalog,
    db: Database,
    builds: dict[str, tuple[Build, bool]],
    embedder: DocumentEmbedder | None,
    on_progress: Progress,
) -> list[RefusedDocument]:
    """Writes every current family into every build. `builds`: sink name to (build, whether it wants vectors)."""
    refused: list[RefusedDocument] = []
    with ExitStack() as stack:
        records = _Records(root, stack)
        families = catalog.families()
        while batch := list(islice(families, FAMILIES_IN_BATCH)):
            projected = [records.read(family) for family in batch]
            vectors = _embed(projected, embedder)
            for sink, (build, wants_vectors) in builds.items():
                found = zip(projected, vectors, strict=True)
                build.replace([Family(documents, rows if wants_vectors else None) for documents, rows in found])
                left_out = build.flush()
                refused += left_out
                _note_receipts(db, sink, build, projected, left_out)
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


def _embed(projected: list[list[Document]], embedder: DocumentEmbedder | None) -> list[Vectors | None]:
    if embedder is None:
        return [None] * len(projected)
    rows = embedder.embed([document for documents in projected for document in documents])
    return list(np.split(rows, np.cumsum([len(documents) for documents in projected])[:-1]))


def _note_receipts(
    db: Database, sink: str, build: Build, projected: list[list[Document]], refused: list[RefusedDocument]
) -> None:
    marker = build.marker()
    assert marker is not None, f"the build of {sink} lost its marker while it was filled"
    left_out: dict[str, list[str]] = {}
    for document in refused:
        left_out.setdefault(document.parent_id, []).append(document.id)
    rows = [_receipt(marker.build_id, documents, left_out.get(documents[0].parent_id, [])) for documents in projected]
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
