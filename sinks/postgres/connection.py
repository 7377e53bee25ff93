"""Connections to the server. Each is used by one thread at a time."""

import os
import select
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from chunksink.sinks.errors import Refused, on_failure
from chunksink.sinks.postgres.errors import connect_error, overdue, translate_errors

Connection = psycopg.Connection[tuple[Any, ...]]
Statement = sql.SQL | sql.Composed

_OLDEST = 150000
_KEEPALIVES: dict[str, int] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""If the other machine is gone, the connection ends after a minute instead of two hours."""
_SETTINGS = "-c client_min_messages=warning -c jit=off -c temp_buffers=64MB"
"""Without `jit`: compiling a statement takes longer than running any of ours."""
_READS_ONLY = "SET default_transaction_read_only = on; SET plan_cache_mode = force_custom_plan"
"""Plans are custom: a generic plan would parse the query again for each document that it ranks."""
_EF_SEARCH = 400
"""How many neighbours HNSW keeps while it searches. A larger number finds more of the nearest and takes longer."""


@dataclass(frozen=True)
class Server:
    """Where the server is. `url` may be empty: then libpq's variables and defaults apply."""

    url: str = ""
    statement_timeout: float = 0.0
    """Seconds per statement; 0 for no limit."""
    search_timeout: float = 10.0
    """Seconds per search. The client ends the search, because a server that is gone cannot."""

    @property
    def where(self) -> str:
        """The address without user and password."""
        try:
            parts = conninfo_to_dict(self.url)
        except psycopg.Error:
            return "the address in `url`"
        host, port = parts.get("host", "its default address"), parts.get("port", "")
        return f"{host}{f':{port}' if port else ''}{'/' + str(parts['dbname']) if 'dbname' in parts else ''}"

    def connect(self) -> Connection:
        """A new connection without an open transaction. Its vectors are numpy arrays if the extension exists."""
        try:
            settings = f"-c statement_timeout={int(self.statement_timeout * 1000)} {_SETTINGS}"
            given = conninfo_to_dict(self.url)
            options = f"{given.get('options') or ''} {settings}".strip()
            timeout = given.get("connect_timeout") or 10
            usual: dict[str, Any] = {**_KEEPALIVES, "application_name": "chunksink"}
            others = {name: value for name, value in usual.items() if name not in given}
            info = make_conninfo(self.url, options=options, connect_timeout=timeout, **others)
            connection = psycopg.connect(info, autocommit=True)
        except psycopg.Error as error:
            raise connect_error(error, self.where) from None  # the cause may show the password
        with on_failure(connection.close):
            if connection.info.server_version < _OLDEST:
                raise Refused(f"PostgreSQL at {self.where} is too old: chunksink needs version 15 or later")
            with translate_errors(self.where):
                prepare_vectors(connection)
        return connection


def wrong_url(url: str) -> str | None:
    """Why the option `url` is not an address; None if it is one. Does not quote it: it may contain a password."""
    try:
        for host in str(conninfo_to_dict(url).get("host", "")).split(","):
            if not host.startswith("/"):  # the folder of a socket
                host.encode("idna")  # as a connection does
    except (psycopg.Error, UnicodeError):
        return "`url` must be postgresql://USER@HOST:PORT/DATABASE, or empty for PGHOST and libpq's other variables"
    return None


def prepare_vectors(connection: Connection) -> None:
    """Make vectors numpy arrays on this connection. Does nothing while the extension is missing."""
    with suppress(psycopg.ProgrammingError):
        register_vector(connection)


class Connections:
    """At most `most` connections, each used by one thread at a time."""

    def __init__(self, server: Server, most: int) -> None:
        self.where = server.where
        self._server = server
        self._free = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._deadlines: dict[Connection, float] = {}
        self._closed = threading.Event()
        threading.Thread(target=self._end_overdue, daemon=True).start()

    @contextmanager
    def reserved(self) -> Iterator[Connection]:
        """A connection that only reads. Each statement sees the state at its start."""
        with self._free, translate_errors(self.where):
            connection = self._borrow()
            deadline = time.monotonic() + self._server.search_timeout
            with self._lock:
                self._deadlines[connection] = deadline
            try:
                yield connection
            except psycopg.Error as error:
                if connection.closed and time.monotonic() > deadline:
                    raise overdue(self.where, self._server.search_timeout) from error
                raise
            finally:
                self._return(connection)

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _borrow(self) -> Connection:
        """An idle connection that the server has not closed, or a new one."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._opened()
            is_readable, _, _ = select.select([connection], [], [], 0)
            if not is_readable:
                return connection
            connection.close()  # an idle connection is only readable if the server has ended it

    def _opened(self) -> Connection:
        connection = self._server.connect()
        with on_failure(connection.close):
            connection.execute(_READS_ONLY)
            with suppress(psycopg.Error):  # an old pgvector has no iterative scan
                connection.execute(f"SET hnsw.ef_search = {_EF_SEARCH}")
                connection.execute("SET hnsw.iterative_scan = strict_order")
        return connection

    def _return(self, connection: Connection) -> None:
        with self._lock:
            del self._deadlines[connection]
            if not self._closed.is_set() and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()

    def _end_overdue(self) -> None:
        """End connections whose search takes too long. Their threads get the error `overdue`."""
        while not self._closed.wait(self._server.search_timeout / 20):
            with self._lock:
                now = time.monotonic()
                for connection in [one for one, deadline in self._deadlines.items() if deadline < now]:
                    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as ours:
                        ours.shutdown(socket.SHUT_RDWR)


def rows(connection: Connection, statement: Statement, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return connection.execute(statement, values).fetchall()
