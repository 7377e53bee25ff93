"""Optional methods of sinks, builds and readers: one small protocol each, looked up with `capability`.

    settings = capability(sink, SupportsSettings)
    if settings is not None:
        changed = settings.update_settings(build_id)

An object has a capability if it has all methods of the protocol.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Protocol, TypeVar, cast

from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Vectors
from chunksink.sinks.reader import Filter, Reader

C = TypeVar("C")
RENAME_ADVICE = (
    "give your index another name (the option `index` of Meilisearch, `schema` of PostgreSQL, `folder` of jsonl)"
)


class SupportsReader(Protocol):
    """A sink that can be searched. The reader's capabilities show how, such as `KeywordReader` and `VectorReader`."""

    def reader(self, build_id: str) -> Reader:
        """Open a build for searches. Raises `BuildMissing`."""


class SupportsPublicName(Protocol):
    """A sink that shows its live build to other programs under a fixed public name."""

    def shown(self) -> Marker | None:
        """The marker of the build under the public name; None if there is none or it cannot be read. Raises `Refused`
        for a build that no sink created, if the sink can tell."""


@dataclass(frozen=True)
class ChangedSettings:
    names: tuple[str, ...] = ()
    vectors_in_doubt: bool = False
    """Documents may have been stored without their vectors before this change. The caller compares all vectors."""


class SupportsSettings(Protocol):
    """A sink whose builds have settings that can change while they are in use.

    `dimensions` is the length of the build's vectors, if it has any.
    """

    def update_settings(self, build_id: str, dimensions: int | None = None) -> ChangedSettings:
        """Apply the configured settings to a build."""

    def settings_due(self, build_id: str, dimensions: int | None = None) -> list[str]:
        """The names of the settings that `update_settings` would change."""

    def unusable_settings(self, build_id: str | None) -> str:
        """Why this build's engine would refuse the configured settings; "" if it would accept them or cannot tell.
        `build_id` is None if there is no build yet."""


class SupportsSearchSettings(Protocol):
    """A build with search settings or indexes that are adjusted after writes."""

    def search_settings_due(self) -> list[str]:
        """The names of the settings and indexes that are missing or do not fit the build."""

    def update_search_settings(self) -> list[str]:
        """Adjust the settings and indexes for readers that open the build afterwards. Returns the changed names."""


class SupportsNearest(Protocol):
    """A reader whose engine finds near vectors approximately, so that it may miss some."""

    def nearest(self, vector: Vectors, limit: int) -> list[str]:
        """The ids of the nearest documents, as a search without filters finds them."""

    def index_size(self) -> int | None:
        """How many vectors a search can visit, including deleted ones. None if the number is
        unknown, or if the engine keeps no deleted vectors, so that its number of documents says the same."""


class SupportsAddress(Protocol):
    """A sink whose builds other programs can open directly."""

    def address(self, build_id: str) -> dict[str, str]:
        """Where the build is: `path`, `url`, `index` and the like. A sink may return the place of the live build
        instead. Does not call the engine."""


class SupportsVersion(Protocol):
    """A sink that knows the version of its engine."""

    def version(self) -> str:
        """The engine, its version and its address, as text for people."""


class SupportsWriteCheck(Protocol):
    """A sink that can find out whether a sync could create builds."""

    def check_writable(self) -> None:
        """Raises the error that would end such a sync. Leaves nothing behind."""


class SupportsPrepare(Protocol):
    """A sink that can prepare for a large write."""

    def prepare(self) -> None:
        """Prepare for many writes to the next build that is created. Does not call the engine."""


class SupportsWarmUp(Protocol):
    """A build whose first call takes long, because it opens the build."""

    def warm_up(self) -> None:
        """Open the build, and change nothing. Called in another thread while vectors are computed, before the first
        write. Errors are ignored: the write meets and reports them."""


class SupportsScrub(Protocol):
    """A build whose files keep deleted text for a while."""

    def scrub(self) -> None:
        """Erase all deleted text from the files. Call it after a flush."""


class SupportsUnchanged(Protocol):
    """A build that detects foreign writes without reading its content."""

    def is_unchanged(self) -> bool:
        """Whether nobody has written to it since our last writer closed it. False if unknown."""


class SupportsFamilies(Protocol):
    """A keyword reader that quickly finds the family of a document."""

    def families(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The family of each of these documents, by id. Documents without text are left out."""


class SupportsPatterns(Protocol):
    """A keyword reader that lists the families whose fields match patterns. It may refuse some patterns with
    `InvalidFilter`."""

    def sources(self, filters: Sequence[Filter], limit: int) -> list[str]:
        """The families of all documents that pass; at most `limit`."""


def capability(owner: object, kind: type[C]) -> C | None:
    """`owner` (a sink, build or reader) typed as `kind`; None if it lacks that capability."""
    methods = (name for base in kind.__mro__ for name, value in vars(base).items() if isinstance(value, FunctionType))
    # Not `isinstance`, which would miss methods that an object delegates.
    has_all = all(hasattr(owner, name) for name in methods if not name.startswith("_"))
    return cast(C, owner) if has_all else None
