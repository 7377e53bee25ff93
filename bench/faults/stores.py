"""Reads the vector stores directly, and damages them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np


class Row(NamedTuple):
    source: str
    text: str
    model: str


class Store(Protocol):
    """The place of a tool's documents below a trial's folder."""

    def rows(self, folder: Path) -> list[Row]: ...

    def sources(self, folder: Path) -> set[str]:
        """The sources that a reader finds."""
        ...

    def lose(self, folder: Path, share: float, rng: random.Random) -> None:
        """Deletes a share of all rows."""
        ...

    def path(self, folder: Path) -> Path: ...


@dataclass(frozen=True)
class ChromaStore:
    below: str
    """A pattern that names the folder of the store; the newest match counts."""
    source: str
    """The field with the name of the source."""

    def path(self, folder: Path) -> Path:
        return folder / self.below.partition("/*")[0]

    def rows(self, folder: Path) -> list[Row]:
        with self._collection(folder) as collection:
            if collection is None:
                return []
            found = collection.get(include=["metadatas", "documents", "embeddings"])
        signs = np.asarray(found["embeddings"])[:, 0] > 0 if found["ids"] else []
        return [
            Row(Path(str(fields[self.source])).name, text or "", "a" if sign else "b")
            for fields, text, sign in zip(found["metadatas"], found["documents"], signs, strict=True)
        ]

    def sources(self, folder: Path) -> set[str]:
        with self._collection(folder) as collection:
            found = [] if collection is None else collection.get(include=["metadatas"])["metadatas"]
        return {Path(str(fields[self.source])).name for fields in found}

    def lose(self, folder: Path, share: float, rng: random.Random) -> None:
        with self._collection(folder) as collection:
            ids = collection.get(include=[])["ids"]
            collection.delete(rng.sample(ids, round(len(ids) * share)))

    @contextmanager
    def _collection(self, folder: Path) -> Iterator[Any]:
        """The only collection; None if there is none. A new engine, which sees what others have written."""
        import chromadb
        from chromadb.api.shared_system_client import SharedSystemClient

        found = sorted(folder.glob(f"{self.below}/chroma.sqlite3"), key=lambda file: file.stat().st_mtime)
        if not found:
            yield None
            return
        client = chromadb.PersistentClient(str(found[-1].parent))
        try:
            collections = client.list_collections()
            yield collections[0] if collections else None
        finally:
            SharedSystemClient.clear_system_cache()


class LanceStore:
    def path(self, folder: Path) -> Path:
        return folder / "store"

    def rows(self, folder: Path) -> list[Row]:
        return [
            Row(row["source"], row["text"], "a" if row["embedding"][0] > 0 else "b")
            for row in self._read(folder, ["source", "text", "embedding"])
        ]

    def sources(self, folder: Path) -> set[str]:
        return {row["source"] for row in self._read(folder, ["source"])}

    def lose(self, folder: Path, share: float, rng: random.Random) -> None:
        ids = [row["id"] for row in self._read(folder, ["id"])]
        lost = rng.sample(ids, round(len(ids) * share))
        self._table(folder).delete(f"id in ({', '.join(map(str, lost))})")

    def _read(self, folder: Path, columns: list[str]) -> list[dict[str, Any]]:
        table = self._table(folder)
        found: list[dict[str, Any]] = [] if table is None else table.search().select(columns).limit(None).to_list()
        return found

    def _table(self, folder: Path) -> Any:
        import lancedb

        store = lancedb.connect(str(self.path(folder)))
        return store.open_table("faults") if "faults" in store.list_tables().tables else None
