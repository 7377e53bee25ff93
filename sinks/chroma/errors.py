"""Chroma's errors as ours, once: here the words of Chroma's messages are known, and nowhere else.

chromadb is imported by whoever calls Chroma; until then none of its errors can occur.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from chunksink.chunkbus.shortage import shortage
from chunksink.sinks.errors import (
    MAKE_ANEW,
    MEND,
    BuildBroken,
    BuildMissing,
    NotConfirmed,
    OutOfResources,
    Refused,
    SinkError,
    Transient,
    Unreachable,
    WrongKey,
)


class RefusedData(Refused):
    """Chroma refuses something in what was sent; a smaller part of it may go through."""


class StaleIndex(Transient):
    """The vector index in this process is behind the documents: open it again."""


_BROKEN = ("hnsw", "segment", "corrupt", "malformed", "not a database", "pickle")
_BUSY = ("locked", "busy", "timed out", "timeout")


class Address(str):
    """Where a server is; no message about it holds one of its secrets."""

    secrets: tuple[str, ...] = ()

    def without_secrets(self, text: str) -> str:
        """A proxy may answer with what it was sent."""
        for secret in self.secrets:
            text = text.replace(secret, "[key]")
        return text


@contextmanager
def translated(where: str) -> Iterator[None]:
    """`where` names folder or address for the message."""
    try:
        yield
    except BaseException as error:
        is_here = not isinstance(where, Address) and not isinstance(error, SinkError)
        if is_here and (remedy := shortage(error)) is not None:
            raise OutOfResources(f"Chroma at {where} cannot work ({error}): {remedy}, and run it again") from error
        if _is_panic(error):
            raise BuildBroken(f"Chroma gave up on {where} ({error}): {MEND}") from error
        if not isinstance(error, Exception):
            raise
        ours = error if isinstance(error, SinkError) else _ours(error, where)
        if ours is None:
            raise
        told = where.without_secrets(str(ours)) if isinstance(where, Address) else str(ours)
        if told != str(ours):
            raise type(ours)(told) from None
        if ours is error:
            raise
        raise ours from error


def _is_panic(error: BaseException) -> bool:
    """Of the engine within this process, as on a page of its database that is damaged: no Exception, and no bug."""
    return type(error).__name__ == "PanicException"


def _ours(error: Exception, where: str) -> SinkError | None:
    import chromadb.errors
    import httpx

    if isinstance(error, AttributeError) and isinstance(error.__context__, Exception):
        return _ours(error.__context__, where)  # of an engine that did not start, and so cannot be stopped
    status = _status(error)
    if isinstance(error, chromadb.errors.NotFoundError):
        return BuildMissing(f"Chroma at {where} does not hold it ({error}): {MAKE_ANEW}")
    if isinstance(error, chromadb.errors.AuthorizationError | chromadb.errors.ChromaAuthError) or status in (401, 403):
        return WrongKey(f"Chroma at {where} does not accept the credentials: correct them")
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return NotConfirmed(
            f"Chroma at {where} did not answer in time ({_reason(error)}): see whether it hangs or has too much to do; "
            "`timeout` and `search_timeout` of the sink are the seconds that it is given"
        )
    if isinstance(error, httpx.TransportError) or isinstance(error.__context__, httpx.TransportError):
        return Unreachable(f"no Chroma answers at {where} ({error}): start it, or correct the address")
    if isinstance(error, chromadb.errors.RateLimitError) or status in (429, 502, 503, 504):
        return Transient(f"Chroma at {where} is overloaded or restarting ({_reason(error)}); its log may say why")
    if isinstance(error, chromadb.errors.InternalError) or (status is not None and status >= 500):
        return _internal(str(error), where)
    if isinstance(error, json.JSONDecodeError) or status in (*range(300, 400), 404, 405):
        return no_chroma(where, _reason(error) if status is None else f"status {status}")
    if isinstance(error, chromadb.errors.ChromaError | ValueError | TypeError | OverflowError) or status in (
        400,
        413,
        422,
    ):
        return RefusedData(f"Chroma refuses it: {error}")
    return None


def no_chroma(where: str, answered: str) -> Refused:
    return Refused(f"what answers at {where} is no Chroma ({answered}): correct the address, or what stands between")


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _internal(message: str, where: str) -> SinkError:
    lower = message.lower()
    if "error finding id" in lower:
        return StaleIndex(f"the vectors of {where} changed behind this reader: open it again")
    if any(word in lower for word in _BUSY):
        return Transient(f"Chroma at {where} is busy ({message})")
    if any(word in lower for word in _BROKEN):
        return BuildBroken(f"the vector index at {where} cannot be read ({message}): {MEND}")
    return Transient(f"Chroma at {where} failed ({message})")


def _status(error: Exception) -> int | None:
    """The HTTP status: where Chroma knows no name for it, it raises a bare Exception from within httpx's error."""
    context = error if hasattr(error, "response") else error.__context__
    status = getattr(getattr(context, "response", None), "status_code", None)
    return status if isinstance(status, int) else None
