"""A keyword build, opened for writing."""

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from chunksink.sinks.contract import Marker, RefusedDocument, Stored
from chunksink.sinks.document import FIELDS, Document, Family
from chunksink.sinks.errors import BuildBroken, Transient
from chunksink.sinks.fts import index_check, schema
from chunksink.sinks.fts.errors import translate_errors
from chunksink.sinks.fts.query import is_spaceless
from chunksink.sinks.fts.reader import read_marker
from chunksink.sinks.payload import Replacements, batches

_PAGE = 2000
_KEYS = 400
"""Keys in a statement. They are not passed as a JSON list, in which SQLite may cut text (`schema.JSON_MEMBERS`)."""

_COLUMNS = tuple(schema.COLUMN_TYPES)
_UPSERT = (
    f"INSERT INTO documents ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "
    f"ON CONFLICT(id) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in _COLUMNS if c != 'id')}"
)
_HASHES = "id, parent_id, document_hash, text_hash"


class FtsBuild:
    """Each call to `replace` is one transaction. Readers see either the old family or the new one, unless a large
    family is written in parts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = schema.connect(path, prepare=_prepare)
        self._replacements = Replacements()

    def marker(self) -> Marker | None:
        with translate_errors(self._path):
            return read_marker(self._connection)

    def sign(self, marker: Marker) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM marker")
            connection.execute(
                "INSERT INTO marker (home_id, build_id, projection_version, stamp) VALUES (?, ?, ?, ?)",
                [marker.home_id, marker.build_id, marker.projection_version, marker.stamp],
            )

    def count(self) -> int:
        with translate_errors(self._path):
            return int(self._connection.execute("SELECT count(*) FROM documents").fetchone()[0])

    def replace(self, families: Sequence[Family]) -> int:
        with self._replacements.in_transaction(families) as latest, self._transaction() as connection:
            index_check.rebuild_if_requested(connection)
            changed = self._changed(latest)
            schema.remove_from_indexes(connection, self._rows("id", list(changed)))
            connection.executemany(_UPSERT, map(_row, changed.values()))
            schema.add_to_indexes(connection, self._rows("id", list(changed)))
            self._replacements.add(latest)
            surplus = self._replacements.surplus(lambda families: (one.id for one in self.of_families(families)))
            self._delete(connection, self._rows("id", surplus))
        return len(changed)

    def delete(self, parent_ids: Sequence[str]) -> None:
        with self._transaction() as connection:
            index_check.rebuild_if_requested(connection)
            self._delete(connection, self._rows("parent_id", parent_ids))

    def flush(self) -> list[RefusedDocument]:
        """Nothing to do: each call has committed to disk, and SQLite accepts every document."""
        return []

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        columns = ", ".join(FIELDS) if content else _HASHES
        for some in batches(parent_ids, _KEYS):
            select = f"SELECT {columns} FROM documents WHERE parent_id IN ({', '.join('?' * len(some))})"
            with translate_errors(self._path):
                rows = self._connection.execute(select, some).fetchall()
            yield from (_stored(row, content, "") for row in rows)

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        damage = self._damage() if content else ""
        columns = ", ".join(FIELDS) if content else _HASHES
        statement = f"SELECT row, {columns} FROM documents WHERE row > ? ORDER BY row LIMIT {_PAGE}"
        last: float = -math.inf  # foreign rows may have negative numbers
        while True:
            with translate_errors(self._path):
                page = self._connection.execute(statement, [last]).fetchall()
            for row in page:
                yield _stored(row, content, damage)
            if len(page) < _PAGE:
                return
            last = page[-1]["row"]

    def scrub(self) -> None:
        """FTS5 keeps the words of deleted rows until it merges its parts. SQLite keeps their pages until VACUUM."""
        with translate_errors(self._path):
            for index in schema.INDEXES:
                self._connection.execute(f"INSERT INTO {index}({index}) VALUES ('optimize')")
            self._connection.execute("VACUUM")
            busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise Transient(f"{self._path} is being read, so its log still has deleted text. Run the command again")

    def close(self) -> None:
        self._connection.close()

    def _damage(self) -> str:
        """Why searches may miss documents; "" if they miss none. Requests a repair from the next write. Raises
        `BuildBroken` for damage that no write can repair."""
        with self._transaction() as connection:
            if broken := index_check.broken_table(connection):
                raise BuildBroken(f"{self._path} is damaged ({broken:.200})")
            if not (damage := index_check.damage(connection)):
                return ""
            index_check.request_rebuild(connection)
        return f"{self._path}: {damage}, so a search may miss documents"

    def _changed(self, families: Sequence[Family]) -> dict[str, Document]:
        """By id: the documents that differ from the stored ones, and those to rewrite."""
        documents = {document.id: document for family in families for document in family.documents}
        stored = {row["id"]: tuple(row) for row in schema.by_id(self._connection, _HASHES, list(documents))}
        rewrite = set[str]().union(*(family.rewrite for family in families))
        return {
            id: one
            for id, one in documents.items()
            if id in rewrite or stored.get(id) != (id, one.parent_id, one.document_hash, one.text_hash)
        }

    def _rows(self, column: str, values: Sequence[str]) -> list[int]:
        rows: list[int] = []
        for some in batches(values, _KEYS):
            select = f"SELECT row FROM documents WHERE {column} IN ({', '.join('?' * len(some))})"
            rows += [row for (row,) in self._connection.execute(select, some)]
        return rows

    def _delete(self, connection: sqlite3.Connection, rows: Sequence[int]) -> None:
        schema.remove_from_indexes(connection, rows)
        connection.execute(f"DELETE FROM documents WHERE row IN {schema.JSON_MEMBERS}", [json.dumps(rows)])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with translate_errors(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.execute("INSERT INTO writing VALUES (1)")
                yield self._connection
                self._connection.execute("DELETE FROM writing")
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _prepare(connection: sqlite3.Connection) -> None:
    schema.prepare(connection)
    # A commit returns when it is on disk, so flush has nothing to do.
    connection.execute("PRAGMA synchronous = FULL")
    # Fails now if a table is missing.
    connection.execute(f"SELECT 1 FROM {', '.join(schema.ALL_TABLES)} LIMIT 0")


def _row(document: Document) -> list[Any]:
    fields = document.as_dict()
    for name in schema.AS_JSON:
        if name in fields:
            fields[name] = orjson.dumps(fields[name]).decode()
    fields["spaceless"] = any(is_spaceless(fields[name]) for name in schema.SEARCHED if name in fields)
    return [fields.get(column) for column in _COLUMNS]


def _stored(row: sqlite3.Row, content: bool, damage: str) -> Stored:
    names = (row["id"], row["parent_id"])
    if not content:
        return Stored(*names, row["document_hash"] or "", row["text_hash"] or "")
    return Stored.with_content(*names, lambda: Document.from_fields(schema.fields_of(row)), damage=damage)
