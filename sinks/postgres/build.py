"""A build in PostgreSQL, opened for writing."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from chunksink.sinks.contract import NO_PARENT, Marker, RefusedDocument, Stored
from chunksink.sinks.document import FIELDS, Document, Family, Vectors
from chunksink.sinks.payload import Replacements, with_usable_vectors
from chunksink.sinks.postgres import PostgresOptions, schema, vocabulary, words
from chunksink.sinks.postgres.connection import Connection, Server, Statement, rows
from chunksink.sinks.postgres.errors import OF_DOCUMENTS, reason_of, translate_errors
from chunksink.sinks.postgres.schema import BuildTable, TableComment

_PAGE = 2000
_CONTENT_PAGE = 500
_BUILD_MEMORY = sql.SQL(
    "SELECT set_config('maintenance_work_mem', "
    "greatest(pg_size_bytes(current_setting('maintenance_work_mem')) / 1024, 1024 * 1024)::text, true)"
)
"""At least 1 GB. A vector index that does not fit into this memory takes many times longer to create."""
_HASHES = sql.SQL("id, parent_id, document_hash, text_hash")
_CONTENT = sql.SQL("id, parent_id, {}, coalesce(words = '', true)").format(schema.COLUMNS)


class PostgresBuild:
    """Each call to `replace` is one transaction. Readers see either the old family or the new one, unless a large
    family is written in parts."""

    def __init__(self, server: Server, build: BuildTable, options: PostgresOptions) -> None:
        self._server, self._build, self._options = server, build, options
        self._connection: Connection | None = None
        self._replacements = Replacements()
        self._language = self._comment().language
        with translate_errors(server.where):
            self._has_vocabulary = vocabulary.exists(self._connected(), build)

    def marker(self) -> Marker | None:
        return self._comment().marker

    def sign(self, marker: Marker) -> None:
        with translate_errors(self._server.where):
            TableComment(marker, self._language).write(self._connected(), self._build)

    def count(self) -> int:
        return int(self._rows(sql.SQL("SELECT count(*) FROM {}").format(self._build.table))[0][0])

    def replace(self, families: Sequence[Family]) -> int:
        by_id: dict[str, tuple[Document, Vectors, bool]] = {}
        with self._replacements.in_transaction(families) as latest:
            for family in latest:
                usable, unusable = with_usable_vectors(family)
                by_id |= {one.id: (one, vector, one.id in family.rewrite) for one, vector in usable}
                self._replacements.refuse(unusable)
            with translate_errors(self._server.where), self._connected().transaction():
                changed = self._changed(by_id)
                self._replacements.refuse(self._write(changed))
                self._replacements.add(latest)
                ids = self._replacements.surplus(lambda some: (one.id for one in self.of_families(some)))
                delete = sql.SQL("DELETE FROM {} WHERE id = ANY(%s)").format(self._build.table)
                self._connected().execute(delete, [ids])
        return len(changed)

    def delete(self, parent_ids: Sequence[str]) -> None:
        delete = sql.SQL("DELETE FROM {} WHERE {}").format(self._build.table, _in_families(parent_ids))
        with translate_errors(self._server.where):
            self._connected().execute(delete, [list(parent_ids)])

    def flush(self) -> list[RefusedDocument]:
        """Every call is committed already."""
        return self._replacements.finish()

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        select = sql.SQL("SELECT {} FROM {} WHERE {}").format(
            _CONTENT if content else _HASHES, self._build.table, _in_families(parent_ids)
        )
        for row in self._rows(select, [list(parent_ids)]):
            yield _stored(row, content)

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        """Pages in the order of ids, which need no open transaction."""
        columns = _CONTENT if content else _HASHES
        if vectors:
            columns = columns + sql.SQL(", embedding")
        size = _CONTENT_PAGE if content or vectors else _PAGE
        select = sql.SQL("SELECT {} FROM {} WHERE id > %s ORDER BY id LIMIT {}").format(
            columns, self._build.table, sql.Literal(size)
        )
        last = ""
        while True:
            page = self._rows(select, [last])
            for row in page:
                yield _stored(row, content, vectors)
            if len(page) < size:
                return
            last = page[-1][0]

    def scrub(self) -> None:
        """Removes deleted rows and their words from the tables. The server's log and backups keep them for a while."""
        with translate_errors(self._server.where):
            if self._has_vocabulary:
                vocabulary.remove_unused(self._connected(), self._build, self._language)
            self._connected().execute(sql.SQL("VACUUM {}").format(self._build.table))

    def search_settings_due(self) -> list[str]:
        """What search still lacks, such as indexes: a new build gets them after its first documents."""
        with translate_errors(self._server.where):
            return list(schema.missing(self._connected(), self._build, self._options))

    def update_search_settings(self) -> list[str]:
        with translate_errors(self._server.where):
            return complete(self._connected(), self._build, self._options)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _changed(self, by_id: dict[str, tuple[Document, Vectors, bool]]) -> list[tuple[Document, Vectors]]:
        """The documents that differ from the stored ones, and those to rewrite."""
        select = sql.SQL("SELECT {} FROM {} WHERE id = ANY(%s)").format(_HASHES, self._build.table)
        stored = {row[0]: row for row in rows(self._connected(), select, [list(by_id)])}
        return [
            (one, vector)
            for one, vector, rewrite in by_id.values()
            if rewrite or stored.get(one.id) != (one.id, one.parent_id, one.document_hash, one.text_hash)
        ]

    def _write(self, changed: Sequence[tuple[Document, Vectors]]) -> list[RefusedDocument]:
        """Write these documents. Returns those that the server does not accept, found by halving."""
        if not changed:
            return []
        connection = self._connected()
        try:
            with connection.transaction():
                schema.create_staging_table(connection, self._build, self._language)
                found: set[str] = set()
                with connection.cursor() as cursor, cursor.copy("COPY staged FROM STDIN (FORMAT BINARY)") as copy:
                    copy.set_types(schema.STAGED_TYPES)
                    for one, vector in changed:
                        indexed = words.indexed(one)
                        copy.write_row(schema.staged_row(one, vector, indexed))
                        found.update(*(text.split(" ") for text in indexed))
                connection.execute(schema.upsert(self._build))
                if self._has_vocabulary:
                    vocabulary.add(connection, self._build, found)
        except OF_DOCUMENTS as error:
            if len(changed) == 1:
                document = changed[0][0]
                return [RefusedDocument(document.id, document.parent_id, reason_of(error))]
        else:
            return []
        half = len(changed) // 2
        return self._write(changed[:half]) + self._write(changed[half:])

    def _comment(self) -> TableComment:
        with translate_errors(self._server.where):
            return TableComment.read(self._connected(), self._build)

    def _rows(self, statement: Statement, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with translate_errors(self._server.where):
            return rows(self._connected(), statement, values)

    def _connected(self) -> Connection:
        """A lost connection is opened again by the next call."""
        if self._connection is None or self._connection.closed:
            self._connection = self._server.connect()
        return self._connection


def _in_families(parent_ids: Sequence[str]) -> Statement:
    """The condition for the rows of these families, with one placeholder for their list. Foreign rows may have no
    family."""
    return sql.SQL("parent_id = ANY(%s) OR parent_id IS NULL" if NO_PARENT in parent_ids else "parent_id = ANY(%s)")


def complete(connection: Connection, build: BuildTable, options: PostgresOptions) -> list[str]:
    """Create what is missing for searches. Returns the names."""
    missing = schema.missing(connection, build, options)
    for statement in missing.values():
        try:
            _create_index(connection, statement)
        except psycopg.errors.DiskFull:  # not the disk but the workers' shared memory, of which containers have little
            _create_index(connection, statement, workers=0)
    if missing:
        connection.execute(sql.SQL("ANALYZE {}").format(build.table))
    return list(missing)


def _create_index(connection: Connection, statement: Statement, workers: int | None = None) -> None:
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = 0")
        connection.execute(_BUILD_MEMORY)
        if workers is not None:
            connection.execute(f"SET LOCAL max_parallel_maintenance_workers = {workers}")
        connection.execute(statement)


def _stored(row: Sequence[Any], content: bool, vectors: bool = False) -> Stored:
    vector = row[-1].to_numpy() if vectors and row[-1] is not None else None
    if not content:
        return Stored(row[0], row[1] or "", row[2] or "", row[3] or "", vector=vector)
    *columns, has_no_words = row[2 : 3 + len(FIELDS)]
    stored = Stored.with_content(row[0], row[1] or "", lambda: Document.from_fields(schema.fields_of(columns)), vector)
    if has_no_words and stored.document is not None and any(words.indexed(stored.document)):
        return replace(stored, damage="its index entry has no words, so keyword searches do not find it")
    return stored
