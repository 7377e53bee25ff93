"""Translates PostgreSQL's errors into ours. Only this module depends on its error codes."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from chunksink.sinks.errors import BuildBroken, BuildMissing, Refused, SinkError, Transient, Unreachable, WrongKey

_TRANSIENT_CLASSES = frozenset(("08", "40", "53", "55", "57", "58"))
"""Connection, transaction conflict, resources, locks, operator intervention, system error."""
_BUSY = ("too many", "remaining connection slots", "starting up", "shutting down")
_LOGIN = ("authentication failed", "no password supplied", "no pg_hba.conf entry", "role ")
_STATEMENT_TIMEOUT = "57014"
OF_DOCUMENTS = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded)
"""Errors that the content of a document can cause."""


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Translates errors of psycopg. `where` is the server's address without a password, for the message."""
    try:
        yield
    except psycopg.Error as error:
        raise _ours(error, where) from error


def connect_error(error: psycopg.Error, where: str) -> SinkError:
    """The error for a failed connection. Such errors have no code, and messages may be in the server's language."""
    reason = reason_of(error)
    if 'database "' in reason and "does not exist" in reason:
        return Refused(f"PostgreSQL at {where} has no such database ({reason}). Create it, or correct the option `url`")
    if any(words in reason for words in _BUSY):  # first: "too many connections for role" also has "role "
        return Transient(f"PostgreSQL at {where} does not accept connections now ({reason})")
    if "permission denied" in reason:
        return _lacks_permission(where, reason)
    if any(words in reason for words in _LOGIN):
        return WrongKey(
            f"PostgreSQL at {where} does not accept the login ({reason}). Correct the user and the password in the "
            "option `url`, or in PGUSER and PGPASSWORD"
        )
    return Unreachable(f"PostgreSQL does not answer at {where} ({reason}). Start it, or correct the option `url`")


def missing_extension(where: str) -> Refused:
    return Refused(
        f"the database at {where} has no extension `vector`, and this role cannot create it. A superuser, or the "
        "administrator of a managed database, must install pgvector and run: CREATE EXTENSION vector"
    )


def hidden_extension(where: str, role: str, schema: str, search_path: str) -> Refused:
    """The error if the extension exists in this schema, but is not found on the role's search path."""
    path = f"{search_path}, {schema}" if search_path.strip('"') else schema
    return Refused(
        f"the role does not find the type `vector` in PostgreSQL at {where}: the schema of pgvector is not on its "
        f"search path. Let the administrator run: GRANT USAGE ON SCHEMA {schema} TO {role}; "
        f"ALTER ROLE {role} SET search_path = {path}"
    )


def missing_permission(where: str, action: str, statement: str) -> WrongKey:
    return WrongKey(
        f"the role may not {action} in PostgreSQL at {where}. Use another role, or let the administrator run: "
        f"{statement}"
    )


def overdue(where: str, seconds: float) -> Transient:
    """The error for a search whose connection was ended."""
    return Transient(
        f"PostgreSQL at {where} did not answer a search within {seconds:g} s. Increase the option `search_timeout`, or "
        "find out what the server waits for"
    )


def _ours(error: psycopg.Error, where: str) -> SinkError:
    code, reason = error.sqlstate or "", reason_of(error)
    if code == "42P01":
        return BuildMissing(f"PostgreSQL at {where} no longer has this build ({reason})")
    if code in ("42703", "42804", "XX001", "XX002"):
        return BuildBroken(f"a build in PostgreSQL at {where} is damaged ({reason})")
    if code == "42501":
        return _lacks_permission(where, reason)
    if code == "42704" and "vector" in reason:
        return Refused(
            f"pgvector's type `vector` does not exist in PostgreSQL at {where}, or is not on the role's search path. "
            "Run `chunksink doctor`, which names the statement that corrects it"
        )
    if code == "25006":
        return Refused(
            f"PostgreSQL at {where} is a replica or read-only ({reason}). Set the option `url` to the primary, or list "
            "all hosts in it and add target_session_attrs=read-write"
        )
    if code == _STATEMENT_TIMEOUT:
        return Transient(f"PostgreSQL at {where} took too long ({reason}). Increase the option `statement_timeout`")
    if code == "53100":
        return Transient(
            f"the disk of PostgreSQL at {where} is full ({reason}). Free disk space, then run the command again"
        )
    if code[:2] in _TRANSIENT_CLASSES or (not code and isinstance(error, psycopg.OperationalError)):
        return Transient(f"PostgreSQL at {where} cannot process the request now ({reason}). See its log")
    if not code and isinstance(error, psycopg.InterfaceError):
        return Transient(f"the connection to PostgreSQL at {where} was lost ({reason})")
    return Refused(f"PostgreSQL at {where} refuses the request ({code} {reason})")


def _lacks_permission(where: str, reason: str) -> WrongKey:
    return WrongKey(f"the role lacks a permission in PostgreSQL at {where} ({reason}). Grant it, or change the role")


def reason_of(error: psycopg.Error) -> str:
    """The message without the detail, which may contain the text of documents."""
    return error.diag.message_primary or " ".join(str(error).split())[:300]
