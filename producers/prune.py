"""Which families' sources have vanished. Asked for by name, since a folder that is not mounted looks just like that."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from chunksink.producers.errors import IngestRefused
from chunksink.producers.patterns import NONE, Patterns
from chunksink.producers.places import Places
from chunksink.producers.sources import Former, Scope
from chunksink.producers.wanted import Wanted


def refuse_unsure(wanted: Wanted, places: Places) -> None:
    """Every folder named must be readable to its last folder, and be the one that was read before."""
    for failure in wanted.failures:
        if failure.source_uri.endswith("/"):
            raise IngestRefused(
                f"{failure.source_uri} cannot be listed, so nobody knows what vanished there; nothing was written. "
                "Mend its permissions, or leave --prune out"
            )
    places.refuse_others()


def refuse_emptied(wanted: Wanted, places: Places, withdrawn: int, allowed: int) -> None:
    """A folder without any source may be one that is not mounted: who has emptied one says how many go."""
    for scope in wanted.scopes:
        if wanted.holds(scope):
            continue
        if not places.was_read(scope.folder):
            raise IngestRefused(
                f"{scope.folder} holds no source, and nothing was ever read from it, so that --prune has nothing to go "
                "by; nothing was written. Is it the right one, and mounted? If it is, leave --prune out this time"
            )
        found = "holds no source" if scope.folder.exists() else "is not there"
        if withdrawn > allowed:
            raise IngestRefused(
                f"{scope.folder} {found}, and --prune would withdraw all that came from it; nothing was written. Is it "
                f"mounted? If that is on purpose, say --allow-deletions {withdrawn}"
            )


def is_sure(wanted: Wanted, places: Places) -> bool:
    """Whether what is not found in the folders named has vanished."""
    try:
        refuse_unsure(wanted, places)
    except IngestRefused:
        return False
    return True


@dataclass(frozen=True)
class Missing:
    """How many sources are not found any more and keep their chunks, and the first of them: by their files, but for
    those that their files do not hold any more."""

    NAMED: ClassVar[int] = 5

    sources: int = 0
    first: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vanished:
    """What is no source any more in the folders that were named: it is not there, or is `excluded` now.

    `outputs` begin the names of what was left out since the run writes it: it may have been read before.
    """

    scopes: Collection[Scope]
    outputs: tuple[str, ...] = ()
    excluded: Patterns = NONE
    former: tuple[Former, ...] = ()
    """What is in these folders and was read by other names."""
    is_read: Callable[[str], bool] = lambda _uri: False
    """Whether the run reads what is called so."""

    def holds(self, origin: str) -> bool:
        paths = [(path, scope.folder) for scope in self.scopes if (path := scope.path_of(origin)) is not None]
        if not paths:
            return any(self._has_moved(origin, former) for former in self.former)
        is_folder = origin.endswith("/")  # of records
        return origin.startswith(self.outputs) or not any(self._is_source(*path, is_folder) for path in paths)

    def _has_moved(self, origin: str, former: Former) -> bool:
        """To its name of now, or away. What is there and is not read by that name stays what it is."""
        now, path = former.name_now(origin), former.place.path_of(origin)
        return now is not None and path is not None and (self.is_read(now) or not path.exists())

    def _is_source(self, path: Path, folder: Path, is_folder: bool) -> bool:
        if not path.exists() or path.is_dir() != is_folder:  # nor is a link to nothing
            return False
        lies_in = path if is_folder else path.parent
        return not _is_linked(lies_in, folder) and not self.excluded.cover_or_above(path, folder)


def _is_linked(inner: Path, folder: Path) -> bool:
    """Links to folders are not followed, but where they are named."""
    return any(place.is_symlink() for place in (inner, *inner.parents) if place != folder and folder in place.parents)
