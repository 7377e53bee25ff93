"""Search in a build: words by PostgreSQL's text search, vectors by pgvector."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from psycopg import sql

from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Document, Vectors
from chunksink.sinks.errors import on_failure
from chunksink.sinks.fts.keyword_methods import KeywordMethods
from chunksink.sinks.payload import unit
from chunksink.sinks.postgres import schema
from chunksink.sinks.postgres.connection import Connections, rows
from chunksink.sinks.postgres.filters import condition
from chunksink.sinks.postgres.schema import BuildTable, TableComment, is_storable
from chunksink.sinks.postgres.search import Search
from chunksink.sinks.reader import FamiliesOf, Filter, Hit, no_families


class PostgresReader(KeywordMethods):
    """No two threads use the same connection at the same time."""

    def __init__(self, connections: Connections, build: BuildTable) -> None:
        self._connections, self._build = connections, build
        with on_failure(connections.close):
            self.refresh()

    def marker(self) -> Marker | None:
        with self._connections.reserved() as connection:
            return TableComment.read(connection, self._build).marker

    def query(
        self, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), families: FamiliesOf = no_families
    ) -> list[Hit]:
        """A tenant's documents are all compared, because a vector index of all tenants would miss some."""
        del families  # each row has its family
        exactly = any(one.field == "tenant_key" for one in filters)
        hits = [] if exactly else self._nearest(vector, limit, filters, self._by_index)
        # With filters the index may end its search early.
        return hits if len(hits) == limit else self._nearest(vector, limit, filters, _EXACTLY)

    def nearest(self, vector: Vectors, limit: int) -> list[str]:
        return [hit.id for hit in self.query(vector, limit)]

    def index_size(self) -> int | None:
        return None

    def similarities(self, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        statement = sql.SQL("SELECT id, 1 - (embedding <=> %s) FROM {} WHERE id = ANY(%s) AND embedding IS NOT NULL")
        with self._connections.reserved() as connection:
            values = [unit(vector), list(filter(is_storable, ids))]
            return dict(rows(connection, statement.format(self._build.table), values))

    def get(self, ids: Sequence[str]) -> list[Document]:
        statement = sql.SQL("SELECT {} FROM {} WHERE id = ANY(%s)").format(schema.COLUMNS, self._build.table)
        with self._connections.reserved() as connection:
            found = rows(connection, statement, [list(filter(is_storable, ids))])
        stored = (Document.if_ours(schema.fields_of(row)) for row in found)
        documents = {document.id: document for document in stored if document is not None}
        return [documents[id] for id in ids if id in documents]

    def families(self, ids: Sequence[str]) -> dict[str, str]:
        statement = sql.SQL("SELECT id, parent_id FROM {} WHERE id = ANY(%s) AND text <> ''").format(self._build.table)
        with self._connections.reserved() as connection:
            return dict(rows(connection, statement, [list(filter(is_storable, ids))]))

    def refresh(self) -> None:
        """Reads the language and the type of the vector index again. Answers always show the newest documents."""
        with self._connections.reserved() as connection:
            self._language = TableComment.read(connection, self._build).language
            dimensions = schema.halfvec_dimensions(connection, self._build)
        half = sql.SQL("embedding::halfvec({0}) <=> %s::halfvec({0})").format(sql.SQL(str(dimensions)))
        self._by_index: sql.Composable = half if dimensions else sql.SQL("embedding <=> %s")

    def close(self) -> None:
        self._connections.close()

    @contextmanager
    def _searching(self, filters: Sequence[Filter]) -> Iterator[Search]:
        with self._connections.reserved() as connection:
            yield Search(connection, self._build, self._language, filters)

    def _nearest(self, vector: Vectors, limit: int, filters: Sequence[Filter], by: sql.Composable) -> list[Hit]:
        found = condition(filters)
        statement = sql.SQL(
            "SELECT id, parent_id, 1 - (embedding <=> %s) FROM {} WHERE text <> '' AND embedding IS NOT NULL AND {} "
            "ORDER BY {} LIMIT %s"
        ).format(self._build.table, found.text, by)
        asked = unit(vector)
        with self._connections.reserved() as connection:
            hits = [Hit(*row) for row in rows(connection, statement, [asked, *found.values, asked, limit])]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))


_EXACTLY = sql.SQL("(embedding <=> %s) + 0, id")
"""An ORDER BY that no index supports, so that all vectors are compared."""
