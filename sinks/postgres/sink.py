"""The PostgreSQL sink: builds in the tables of a schema, and a view of the live one."""

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import sql

from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import Refused
from chunksink.sinks.postgres import PostgresOptions, schema, vocabulary
from chunksink.sinks.postgres.build import PostgresBuild, complete
from chunksink.sinks.postgres.connection import Connection, Connections, Server, rows
from chunksink.sinks.postgres.errors import translate_errors
from chunksink.sinks.postgres.reader import PostgresReader
from chunksink.sinks.postgres.schema import BuildTable, TableComment


class PostgresSink:
    """Builds in one schema of a database. Other programs read the live build through the view `documents`."""

    name = "postgres"
    wants_vectors = True

    def __init__(self, options: PostgresOptions) -> None:
        self._server = Server(options.url, options.statement_timeout, options.search_timeout)
        self._options, self._schema = options, options.schema

    def create(self, marker: Marker, dimensions: int | None = None) -> PostgresBuild:
        """A new build gets its search indexes after its first documents: that takes a fraction of the time."""
        build = BuildTable(self._schema, marker.build_id)
        with self._connected() as connection, connection.transaction():
            schema.ensure_schema(connection, self._server.where, self._schema, self._options.language)
            if marker.build_id not in schema.build_ids(connection, self._schema):
                schema.create_table(connection, build, dimensions)
                vocabulary.create(connection, build)
                if (protection := schema.missing(connection, build, self._options).get(schema.PROTECTION)) is not None:
                    connection.execute(protection)
            if TableComment.read(connection, build).marker is None:
                TableComment(marker, self._options.language).write(connection, build)
        return self.open(marker.build_id)

    def open(self, build_id: str) -> PostgresBuild:
        return PostgresBuild(self._server, BuildTable(self._schema, build_id), self._options)

    def reader(self, build_id: str) -> PostgresReader:
        return PostgresReader(Connections(self._server, self._options.pool_size), BuildTable(self._schema, build_id))

    def builds(self) -> list[str]:
        with self._connected() as connection:
            return schema.build_ids(connection, self._schema)

    def flip(self, old: str | None, new: str) -> None:
        """Also creates search indexes that are missing because a run was killed."""
        build = BuildTable(self._schema, new)
        with self._connected() as connection:
            TableComment.read(connection, build)
            complete(connection, build, self._options)
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(hashtext('chunksink flip'))")
                live = schema.live(connection, self._schema)
                if live == build.name:
                    return
                if live is not None and (old is None or live != BuildTable(self._schema, old).name):
                    raise Refused(
                        f"the view {self._schema}.{schema.VIEW} in PostgreSQL at {self._server.where} shows {live}. "
                        "Another home may use this schema: set another one with the option `schema`"
                    )
                schema.show(connection, build, self._options.row_security)

    def shown(self) -> Marker | None:
        with self._connected() as connection:
            live = schema.live(connection, self._schema)
            if live is None:
                return None
            marker = None
            if live.startswith(schema.PREFIX):
                build = BuildTable(self._schema, live.removeprefix(schema.PREFIX))
                marker = TableComment.read(connection, build).marker
        if marker is None:
            raise Refused(
                f"the view {self._schema}.{schema.VIEW} in PostgreSQL at {self._server.where} shows {live}, which no "
                "sink created. Set another schema with the option `schema`"
            )
        return marker

    def drop(self, build_id: str) -> None:
        """Also drops the view if it shows this build."""
        with self._connected() as connection:
            build = BuildTable(self._schema, build_id)
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(build.table))
            vocabulary.drop(connection, build)

    def address(self, build_id: str) -> dict[str, str]:
        return {"server": self._server.where, "table": f"{self._schema}.{BuildTable(self._schema, build_id).name}"}

    def check_writable(self) -> None:
        """Prepares the database as a sync does, in a transaction that is rolled back."""
        with self._connected() as connection, connection.transaction(force_rollback=True):
            schema.ensure_schema(connection, self._server.where, self._schema, self._options.language)

    def version(self) -> str:
        extension = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        versions = sql.SQL(f"SELECT current_setting('server_version'), ({extension})")
        with self._connected() as connection:
            server, vector = rows(connection, versions)[0]
        return f"PostgreSQL {server} with pgvector {vector or '(not created yet)'} at {self._server.where}"

    def close(self) -> None:
        """Nothing to do: each call closes its own connection."""

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        connection = self._server.connect()
        try:
            with translate_errors(self._server.where):
                yield connection
        finally:
            connection.close()
