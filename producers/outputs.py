"""Folders that hold what was made from sources. Read as sources, it would take the place of what it was made from."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from chunksink.chunkbus.layout import BusRoot


@dataclass(frozen=True)
class Outputs:
    """Where a run writes, by real paths: `folders` are its bus and its home, `parts` what the bus consists of.

    Whoever names a folder has it read, whatever it is; of a bus that is written to, its parts are left out even then.
    """

    folders: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, root: BusRoot, homes: Iterable[str | os.PathLike[str]]) -> "Outputs":
        folders = (os.path.realpath(folder) for folder in (root.path, *homes))
        parts = (os.path.realpath(part) for part in (root.canonical, root.manifests, root.path / "links"))
        return cls(frozenset(folders), frozenset(parts))

    def are_own(self, real: str) -> bool:
        return real in self.folders or real in self.parts


NOWHERE = Outputs()
OWN = "this run writes there; what it holds was made from sources and is none"
BUS = "is a bus of chunks (canonical/ and manifest/ are in it), which were made from sources; name it to have it read"


def looks_like_bus(folder: str) -> bool:
    root = f"{folder.rstrip('/')}/"
    return os.path.isdir(f"{root}canonical") and os.path.isdir(f"{root}manifest")  # noqa: PTH112 (asked of each folder)
