"""Errors of the sinks. The messages of `BuildMissing` and `BuildBroken` end with a remedy.

    SinkError
    ├── Transient            the same call may succeed later: wait and repeat it
    │   ├── Unreachable      nothing answers at the engine's address
    │   └── NotConfirmed     the engine accepted the work but did not confirm it in time
    └── Refused              the engine refuses this call until something is changed
        ├── WrongKey         the key is unknown, or lacks a permission
        ├── BuildMissing     the build does not exist (dropped, or never created)
        ├── BuildBroken      the build exists but cannot be read: rebuild it
        ├── OutOfResources   this machine is short of open files or memory: nothing is broken
        ├── InvalidFilter    the field does not support this filter
        └── RefusedData      something in the request is refused: a smaller part of it may be accepted

The module `errors` of each engine translates foreign exceptions into these. Any other exception from a sink is a bug
and keeps its traceback. One refused document raises nothing: `flush` returns it as a `RefusedDocument`.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from chunksink.chunkbus.errors import ChunksinkError


class SinkError(ChunksinkError):
    """An error of a sink that the user can act on."""


class Transient(SinkError):
    """The engine could not do it now; the same call may succeed later."""


class Unreachable(Transient):
    """Nothing answers at this address: start the engine, or correct the address."""


class NotConfirmed(Transient):
    """The engine did not confirm the work in time; the next run checks what was done."""


class Refused(SinkError):
    """The engine refuses this, and would refuse it again until something is changed."""

    remedy = ""
    """Appended to the message."""

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        if remedy is not None:
            self.remedy = remedy

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}: {self.remedy}" if self.remedy else message


class WrongKey(Refused):
    """The engine does not accept the key; set a valid one."""


class BuildMissing(Refused):
    """This sink has no such build."""

    remedy = "run `chunksink sync` to rebuild it"


class BuildBroken(Refused):
    """The build can no longer be read. Nothing is lost: indexes are built from the chunks."""

    remedy = "`chunksink verify --repair` rebuilds it from the chunks, nothing is lost"


class OutOfResources(Refused):
    """This machine is short of a resource; nothing is broken. Follow the message, then run the command again."""


class InvalidFilter(Refused):
    """The filter cannot be applied; use a field that can be filtered."""


class RefusedData(Refused):
    """The engine refuses something in the request. Writes try again with a smaller part, which may be accepted."""


@contextmanager
def replace_errors(ours: Callable[[BaseException], SinkError | None], secrets: Collection[str] = ()) -> Iterator[None]:
    """Translate foreign errors: raises what `ours` returns for an error, or the error itself if that is None.

    Secrets are removed from messages, because a proxy may repeat the request in its answer.
    """
    try:
        yield
    except BaseException as error:
        own = error if isinstance(error, SinkError) else ours(error)
        if own is None:
            raise
        if without_secrets(str(own), secrets) != str(own):
            own.args = (without_secrets(own.args[0], secrets),)
            raise own from None
        if own is error:
            raise
        raise own from (error if without_secrets(str(error), secrets) == str(error) else None)


@contextmanager
def on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` if the block raises anything."""
    try:
        yield
    except BaseException:
        undo()
        raise


def without_secrets(text: str, secrets: Collection[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return text
