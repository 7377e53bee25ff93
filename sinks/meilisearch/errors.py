"""Translates Meilisearch's errors into ours. Only this module depends on its error codes."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from chunksink.sinks.errors import (
    BuildMissing,
    NotConfirmed,
    Refused,
    RefusedData,
    SinkError,
    Transient,
    Unreachable,
    WrongKey,
    replace_errors,
)

_TRANSIENT = frozenset((408, 425, 429))
"""HTTP statuses below 500 that are transient; all from 500 are."""
_ENGINE_ERRORS = frozenset(("internal", "system"))
"""Types of errors that no document caused."""
_FILTER_ERRORS = frozenset(
    ("invalid_document_filter", "invalid_search_filter", "invalid_search_facets", "invalid_search_distinct")
)
_NOT_FILTERABLE = "is not filterable"


class TooLarge(RefusedData):
    """The payload is too large for the server."""


def translate_errors(where: str, key: str | None = None) -> AbstractContextManager[None]:
    """Translates errors of httpx and of Meilisearch's client. `where` is the server's address, for the message."""
    return replace_errors(partial(_ours, where), (key,) if key else ())


def answer_error(status: int, body: Mapping[str, Any], where: str) -> SinkError:
    """The error for an answer that is not a success."""
    message, code = str(body.get("message") or f"status {status}"), str(body.get("code") or "")
    if status in (401, 403):
        return WrongKey(
            f"Meilisearch at {where} does not accept the key, or the key lacks a permission ({message}). Set "
            "MEILI_MASTER_KEY (or the variable in the sink's option `key_variable`) to a key with the actions "
            "indexes.*, settings.*, documents.*, tasks.get, stats.get, version and search"
        )
    if (index_error := _index_error(code, message, where)) is not None:
        return index_error
    if status in _TRANSIENT or status >= 500:
        return Transient(f"Meilisearch at {where} is overloaded or restarting ({message}). See its log")
    if status == 413:
        return TooLarge(f"Meilisearch refuses the request: {message}")
    if not code:
        return not_meilisearch(where, f"status {status}")
    return RefusedData(f"Meilisearch refuses the request: {message}")


def not_meilisearch(where: str, answered: str) -> Refused:
    return Refused(f"the server at {where} is not Meilisearch ({answered}): correct the address, or check the proxy")


def task_error(error: Mapping[str, Any] | None, where: str) -> SinkError:
    """The error for a failed task."""
    error = error or {}
    message, code = str(error.get("message") or "no reason given"), str(error.get("code") or "")
    if (index_error := _index_error(code, message, where)) is not None:
        return index_error
    if error.get("type") in _ENGINE_ERRORS:
        return Transient(f"Meilisearch at {where} failed: {message}")
    return RefusedData(message)


def _index_error(code: str, message: str, where: str) -> SinkError | None:
    """The error for a missing index, or for one whose settings lack a filter that we need; else None."""
    if code == "index_not_found":
        return BuildMissing(f"Meilisearch at {where}: {message.removesuffix('.')}")
    if code in _FILTER_ERRORS and _NOT_FILTERABLE in message:
        reason = message.split("\n", 1)[0]
        return RefusedData(
            f"the index settings on Meilisearch at {where} differ from the settings file ({reason}). To restore them, "
            "run `chunksink settings apply` or `chunksink sync`"
        )
    return None


def _ours(where: str, error: BaseException) -> SinkError | None:
    import httpx
    import requests
    from meilisearch import errors as client

    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | client.MeilisearchCommunicationError):
        return Unreachable(f"Meilisearch does not answer at {where} ({error}): start it, or correct the address")
    if isinstance(error, httpx.TimeoutException | client.MeilisearchTimeoutError):
        return NotConfirmed(
            f"Meilisearch at {where} did not answer in time ({type(error).__name__}). Check whether it hangs or is "
            "overloaded, or increase the sink's `timeout` or `search_timeout`"
        )
    if isinstance(error, httpx.TransportError | requests.RequestException):
        return Unreachable(f"the connection to Meilisearch at {where} broke ({error})")
    if isinstance(error, client.MeilisearchApiError):
        return answer_error(error.status_code, {"message": error.message, "code": error.code}, where)
    return None
