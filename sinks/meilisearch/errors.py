"""Meilisearch's errors as ours, once: here its codes are known, and nowhere else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from chunksink.sinks.errors import (
    MAKE_ANEW,
    BuildMissing,
    NotConfirmed,
    Refused,
    SinkError,
    Transient,
    Unreachable,
    WrongKey,
)

_LATER = frozenset((408, 425, 429))
"""And all from 500 on."""
_OF_THE_ENGINE = frozenset(("internal", "system"))
"""Types of errors for which the document is not to blame."""
_OF_FILTERS = frozenset(
    ("invalid_document_filter", "invalid_search_filter", "invalid_search_facets", "invalid_search_distinct")
)
_LACKING = "is not filterable"


class RefusedData(Refused):
    """Meilisearch refuses something in what was sent; a smaller part of it may go through."""


class TooLarge(RefusedData):
    """The server takes smaller payloads only."""


@contextmanager
def translated(where: str, key: str | None = None) -> Iterator[None]:
    """`where` is the server's address, for the message. Knows the errors of httpx and of Meilisearch's own client.

    Whoever stands between may answer with what it was sent: no message holds the key.
    """
    try:
        yield
    except Exception as error:
        ours = error if isinstance(error, SinkError) else _ours(error, where)
        if ours is None:
            raise
        reason = str(ours)
        if key and key in reason:
            raise type(ours)(reason.replace(key, "[key]")) from None
        if ours is error:
            raise
        raise ours from (None if key and key in str(error) else error)


def of_answer(status: int, body: Mapping[str, Any], where: str) -> SinkError:
    """What an answer that is no success says."""
    message, code = str(body.get("message") or f"status {status}"), str(body.get("code") or "")
    if status in (401, 403):
        return WrongKey(
            f"Meilisearch at {where} does not accept the key, or the key may not do this ({message}): set "
            "MEILI_MASTER_KEY, or the environment variable that the sink's option `key_variable` names, to a key with "
            "the actions indexes.*, settings.*, documents.*, tasks.get, stats.get, version and search"
        )
    if (of_index := _of_index(code, message, where)) is not None:
        return of_index
    if status in _LATER or status >= 500:
        return Transient(f"Meilisearch at {where} is overloaded or restarting ({message}); its log may say why")
    if status == 413:
        return TooLarge(f"Meilisearch refuses it: {message}")
    if not code:
        return not_meilisearch(where, f"status {status}")
    return RefusedData(f"Meilisearch refuses it: {message}")


def not_meilisearch(where: str, answered: str) -> Refused:
    """Of an answer in words that it does not use. Nothing that was sent is to blame for it."""
    return Refused(
        f"what answers at {where} is no Meilisearch ({answered}): correct the address, or what stands between"
    )


def of_task(error: Mapping[str, Any] | None, where: str) -> SinkError:
    """What the error of a failed task says."""
    error = error or {}
    message, code = str(error.get("message") or "no reason given"), str(error.get("code") or "")
    if (of_index := _of_index(code, message, where)) is not None:
        return of_index
    if error.get("type") in _OF_THE_ENGINE:
        return Transient(f"Meilisearch at {where} failed: {message}")
    return RefusedData(message)


def _of_index(code: str, message: str, where: str) -> SinkError | None:
    """An index that is not there, or whose settings do not let us filter by what we must."""
    if code == "index_not_found":
        return BuildMissing(f"Meilisearch at {where}: {message} To have it again, {MAKE_ANEW}")
    if code in _OF_FILTERS and _LACKING in message:
        reason = message.split("\n", 1)[0]
        return RefusedData(
            f"the index settings on Meilisearch at {where} are not those of the settings file ({reason}): run "
            "`chunksink settings apply`, or `chunksink sync`, which brings them back"
        )
    return None


def _ours(error: Exception, where: str) -> SinkError | None:
    import httpx
    import requests
    from meilisearch import errors as client

    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | client.MeilisearchCommunicationError):
        return Unreachable(f"no Meilisearch answers at {where} ({error}): start it, or correct the address")
    if isinstance(error, httpx.TimeoutException | client.MeilisearchTimeoutError):
        return NotConfirmed(
            f"Meilisearch at {where} did not answer in time ({type(error).__name__}): see whether it hangs or has too "
            "much to do; `timeout` and `search_timeout` of the sink are the seconds that it is given"
        )
    if isinstance(error, httpx.TransportError | requests.RequestException):
        return Unreachable(f"the connection to Meilisearch at {where} broke ({error})")
    if isinstance(error, client.MeilisearchApiError):
        return of_answer(error.status_code, {"message": error.message, "code": error.code}, where)
    return None
