"""Reads the vector stores directly, and damages them."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    id: Any
    source: str
    text: str
    model: str


@dataclass(frozen=True)
class ChromaStore:
    below: str
    """The folder of the store in a trial's folder."""
    source: str
    """The field with the name of the source."""

    def sources(self, folder: Path) -> set[str]:
        """The sources that a reader finds, even while another process writes."""
        with self._collection(folder) as collection:
            found = collection.get(include=["metadatas"])["metadatas"]
        return {Path(fields[self.source]).name for fields in found}

    def rows(self, folder: Path) -> list[Row]:
        with self._collection(folder) as collection:
            if collection is None:
                return []
            found = collection.get(include=["metadatas", "documents", "embeddings"])
        rows = zip(found["ids"], found["metadatas"], found["documents"], found["embeddings"], strict=True)
        return [Row(id, Path(fields[self.source]).name, text, _model(vector)) for id, fields, text, vector in rows]

    def writes(self, folder: Path) -> list[int]:
        """A value that differs after every write. It is cheap enough to read a thousand times a second."""
        found = []
        for file in (folder / self.below).rglob("chroma.sqlite3"):
            with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                found += [row[0] for row in database.execute("SELECT max(seq_id) FROM embeddings_queue")]
        return found

    def delete(self, folder: Path, ids: list[Any]) -> None:
        with self._collection(folder) as collection:
            collection.delete(ids)

    @contextmanager
    def _collection(self, folder: Path) -> Iterator[Any]:
        """The only collection of the newest store, or None. Each call opens a new engine, so that it sees the writes of
        other processes."""
        import chromadb
        from chromadb.api.shared_system_client import SharedSystemClient

        found = sorted((folder / self.below).rglob("chroma.sqlite3"), key=lambda file: file.stat().st_mtime)
        if not found:
            yield None
            return
        try:
            yield next(iter(chromadb.PersistentClient(str(found[-1].parent)).list_collections()), None)
        finally:
            SharedSystemClient.clear_system_cache()


class LanceStore:
    below = "store"

    def sources(self, folder: Path) -> set[str]:
        return {row.source for row in self.rows(folder)}

    def rows(self, folder: Path) -> list[Row]:
        table = self._table(folder)
        found = [] if table is None else table.search().limit(None).to_list()
        return [Row(row["id"], row["source"], row["text"], _model(row["embedding"])) for row in found]

    def writes(self, folder: Path) -> list[int]:
        return [len(list((folder / self.below).glob("*.lance/_versions/*")))]

    def delete(self, folder: Path, ids: list[Any]) -> None:
        self._table(folder).delete(f"id in ({', '.join(map(str, ids))})")

    def _table(self, folder: Path) -> Any:
        import lancedb

        store = lancedb.connect(str(folder / self.below))
        return store.open_table("faults") if "faults" in store.list_tables().tables else None


Store = ChromaStore | LanceStore


def lose(store: Store, folder: Path, share: float, rng: random.Random) -> None:
    """Deletes a share of all rows."""
    ids = sorted(row.id for row in store.rows(folder))
    store.delete(folder, rng.sample(ids, round(len(ids) * share)))


def _model(vector: Any) -> str:
    return "a" if vector[0] > 0 else "b"
