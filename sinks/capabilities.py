"""What only some sinks, builds and readers can do: one small protocol each, asked for through `capability`.

    settings = capability(sink, SupportsSettings)
    if settings is not None:
        changed = settings.update_settings(build_id)

A sink has a capability when it has all of its methods. A wrapper answers for what it wraps, see `Wrapper`.
"""

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Protocol, TypeGuard, TypeVar

from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Vectors
from chunksink.sinks.reader import Reader

C = TypeVar("C")


class SupportsReader(Protocol):
    """A sink that searches can ask. Which searches is a capability of the reader: `KeywordReader`, `VectorReader`,
    `HybridReader`, `SupportsFamilies`."""

    def reader(self, build_id: str) -> Reader:
        """Open a build for searches; `BuildMissing` where it is not."""


class SupportsPublicName(Protocol):
    """A sink that shows one of its builds to other programs, under a name that a flip leaves the same."""

    def shown(self) -> Marker | None:
        """The marker of the build under the public name; None where it has none. `Refused` if no sink made it."""


class SupportsSettings(Protocol):
    """A sink whose builds have settings that can change while they are in use."""

    def update_settings(self, build_id: str, dimensions: int | None = None) -> list[str]:
        """Give a build the configured settings; returns the names of those that changed.

        `dimensions` is the length of the build's vectors, if it holds any.
        """

    def settings_due(self, build_id: str, dimensions: int | None = None) -> list[str]:
        """The names of those that `update_settings` would change."""


class SupportsSearchSettings(Protocol):
    """A build whose search has settings that follow from what it holds. No file names them."""

    def search_settings_due(self) -> list[str]:
        """The names of those that do not fit it."""

    def update_search_settings(self) -> list[str]:
        """Make them fit; returns the names of those that changed. Readers have them when they open the build."""


class SupportsNearest(Protocol):
    """A reader whose engine looks for near vectors in an index of its own, which may miss some."""

    def nearest(self, vector: Vectors, limit: int) -> list[str]:
        """The ids of the nearest documents, as a search without filters finds them."""

    def index_size(self) -> int | None:
        """How many vectors the index has, deleted ones that it still goes through among them; None if not known."""


class SupportsAddress(Protocol):
    """A sink whose builds other programs can open themselves."""

    def address(self, build_id: str) -> dict[str, str]:
        """Where the build is: `path`, `url`, `index` and the like. Asks nothing of the engine."""


class SupportsVersion(Protocol):
    """A sink that knows the version of its engine."""

    def version(self) -> str:
        """The engine, its version and where it answers, in words."""


class SupportsPrepare(Protocol):
    """A sink that can get ready for much writing."""

    def prepare(self) -> None:
        """Much will be written to the next build that is created: start what helps. Asks nothing of the engine."""


class SupportsScrub(Protocol):
    """A build whose files still hold deleted text for a while."""

    def scrub(self) -> None:
        """After a flush: erase from its files all that was ever deleted."""


class SupportsUnchanged(Protocol):
    """A build that can tell whether it was written to, without being asked what it holds."""

    def is_unchanged(self) -> bool:
        """Whether nobody has written to it since our last writer closed it. False where that is not known."""


class SupportsFamilies(Protocol):
    """A keyword reader that knows quickly which family a document is of."""

    def families(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The families of those of these documents that have a text, by their ids."""


class Wrapper(Protocol):
    """What wraps a sink, build or reader, and has the capabilities of what it wraps."""

    def capability(self, kind: type[C]) -> C | None:
        """As the function `capability`, for what is wrapped."""


def capability(owner: object, kind: type[C]) -> C | None:
    """`owner` (a sink, a build or a reader) as something that can do `kind`; None if it cannot."""
    if _has(owner, Wrapper):
        return owner.capability(kind)
    return owner if _has(owner, kind) else None


def required(owner: object, kind: type[C]) -> C:
    """The same, of one that is known to have it."""
    found = capability(owner, kind)
    if found is None:
        raise TypeError(f"{owner!r} is no {kind.__name__}")
    return found


def _has(owner: object, kind: type[C]) -> TypeGuard[C]:
    """By `hasattr`, as `isinstance` would not see the methods that an object delegates to another one."""
    return all(hasattr(owner, method) for method in _methods(kind))


def _methods(kind: type) -> set[str]:
    found = (name for base in kind.__mro__ for name, value in vars(base).items() if isinstance(value, FunctionType))
    return {name for name in found if not name.startswith("_")}
