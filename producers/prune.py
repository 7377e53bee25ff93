"""Which families' sources have vanished. Asked for by name, since a folder that is not mounted looks just like that."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from producers.errors import IngestRefused
from producers.exclusions import NONE, Exclusions
from producers.sources import Scope
from producers.wanted import Wanted


def refuse_empty(wanted: Wanted) -> None:
    """Every folder named must hold a source and be readable to its last folder."""
    for failure in wanted.failures:
        if failure.source_uri.endswith("/"):
            raise IngestRefused(
                f"{failure.source_uri} cannot be listed, so nobody knows what vanished there; nothing was written. "
                "Mend its permissions, or leave --prune out"
            )
    for scope in wanted.scopes:
        if not wanted.holds(scope):
            raise IngestRefused(
                f"{scope.folder} holds no source, and --prune would withdraw all that came from it; nothing was "
                "written. Is it mounted? Leave --prune out, or see `chunksink retire-partition`"
            )


@dataclass(frozen=True)
class Vanished:
    """What is no source any more in the folders that were named: it is not there, or is `excluded` now.

    `outputs` begin the names of what was left out since the run writes it: it may have been read before.
    """

    scopes: Collection[Scope]
    outputs: tuple[str, ...] = ()
    excluded: Exclusions = NONE

    def holds(self, origin: str) -> bool:
        paths = [(path, scope.folder) for scope in self.scopes if (path := scope.path_of(origin)) is not None]
        if not paths:
            return False
        return origin.startswith(self.outputs) or not any(self._is_source(*path) for path in paths)

    def _is_source(self, path: Path, folder: Path) -> bool:
        is_there = path.exists() or path.is_symlink()
        return is_there and not self.excluded.cover_or_above(path, folder)
