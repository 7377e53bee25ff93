"""Translates Chroma's errors into ours. Only this module depends on the texts of Chroma's messages."""

import json
import re
from contextlib import AbstractContextManager
from functools import partial

from chunksink.chunkbus.shortage import shortage
from chunksink.sinks.errors import (
    BuildBroken,
    BuildMissing,
    NotConfirmed,
    OutOfResources,
    Refused,
    RefusedData,
    SinkError,
    Transient,
    Unreachable,
    WrongKey,
    replace_errors,
)


class StaleIndex(Transient):
    """The vector index in this process is older than the documents: open it again."""


_BROKEN = ("hnsw", "segment", "corrupt", "malformed", "not a database", "pickle")
_DISK = re.compile(
    "disk i/o error|database or disk is full|failed to apply logs to the metadata segment$", re.IGNORECASE
)
"""Messages on a full disk. Not retried: the failed call keeps its lock, so a second call might wait forever."""
_BUSY = ("locked", "busy", "timed out", "timeout")


class Address(str):
    """The address of a server, and the secrets to remove from messages about it."""

    secrets: tuple[str, ...] = ()


def translate_errors(where: str) -> AbstractContextManager[None]:
    """`where` is the folder or the `Address` for the message."""
    return replace_errors(partial(_ours, where), where.secrets if isinstance(where, Address) else ())


def _ours(where: str, error: BaseException) -> SinkError | None:
    is_embedded = not isinstance(where, Address)
    if is_embedded and _DISK.search(str(error)):
        return OutOfResources(
            f"Chroma at {where} cannot write ({error}): make room on that disk, then run the command again. If the "
            "disk is not full, `chunksink verify --repair` rebuilds the build from the chunks"
        )
    if is_embedded and (remedy := shortage(error)) is not None:
        return OutOfResources(f"Chroma at {where} lacks resources ({error}): {remedy}, then run the command again")
    if type(error).__name__ == "PanicException":  # from the embedded engine; not an `Exception`
        return BuildBroken(f"Chroma crashed on {where} ({error})")
    return _of_exception(error, where) if isinstance(error, Exception) else None


def _of_exception(error: Exception, where: str) -> SinkError | None:
    import chromadb.errors
    import httpx

    if isinstance(error, AttributeError) and isinstance(error.__context__, Exception):
        return _of_exception(error.__context__, where)  # Chroma failed to start, then failed again while stopping
    status = _status(error)
    if isinstance(error, chromadb.errors.NotFoundError):
        return BuildMissing(f"Chroma at {where} has no such build ({error})")
    if isinstance(error, chromadb.errors.AuthorizationError | chromadb.errors.ChromaAuthError) or status in (401, 403):
        return WrongKey(f"Chroma at {where} does not accept the credentials: correct them")
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return NotConfirmed(
            f"Chroma at {where} did not answer in time ({_reason(error)}). Check whether it hangs or is overloaded, or "
            "increase the sink's `timeout` or `search_timeout`"
        )
    if isinstance(error, httpx.TransportError) or isinstance(error.__context__, httpx.TransportError):
        return Unreachable(f"Chroma does not answer at {where} ({error}): start it, or correct the address")
    if isinstance(error, chromadb.errors.RateLimitError) or status in (429, 502, 503, 504):
        return Transient(f"Chroma at {where} is overloaded or restarting ({_reason(error)}). See its log")
    if isinstance(error, chromadb.errors.InternalError) or (status is not None and status >= 500):
        return _internal(str(error), where)
    if isinstance(error, json.JSONDecodeError) or status in (*range(300, 400), 404, 405):
        return not_chroma(where, _reason(error) if status is None else f"status {status}")
    of_data = chromadb.errors.ChromaError | ValueError | TypeError | OverflowError
    if isinstance(error, of_data) or status in (400, 413, 422):
        return RefusedData(f"Chroma refuses the request: {error}")
    return None


def not_chroma(where: str, answered: str) -> Refused:
    return Refused(f"the server at {where} is not Chroma ({answered}): correct the address, or check the proxy")


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _internal(message: str, where: str) -> SinkError:
    lower = message.lower()
    if "error finding id" in lower:
        return StaleIndex(f"the vectors of {where} changed after this reader was opened: open it again")
    if any(word in lower for word in _BUSY):
        return Transient(f"Chroma at {where} is busy ({message})")
    if any(word in lower for word in _BROKEN):
        return BuildBroken(f"the vector index at {where} cannot be read ({message})")
    return Transient(f"Chroma at {where} failed ({message})")


def _status(error: Exception) -> int | None:
    """The HTTP status. If Chroma has no class for it, it raises a plain Exception with httpx's error as context."""
    context = error if hasattr(error, "response") else error.__context__
    status = getattr(getattr(context, "response", None), "status_code", None)
    return status if isinstance(status, int) else None
