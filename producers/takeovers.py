"""Folders of one name in different runs: the later one would take over what the earlier one gave, and nobody would see.

Which folders were read is remembered, and of each file which bytes: so a family is known to come from the file that
last had its bytes. A folder that was moved goes on as before, since nothing is left at its old place.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from chunksink.chunkbus.layout import BusRoot
from chunksink.producers.errors import IngestRefused
from chunksink.producers.families import Family, family_of, key_of_source
from chunksink.producers.folders import above_of
from chunksink.producers.memory import Memory
from chunksink.producers.names import is_same_file
from chunksink.producers.shelves import Shelves
from chunksink.producers.sources import Scope
from chunksink.producers.wanted import Source, Wanted


def refuse_takeovers(wanted: Wanted, root: BusRoot, memory: Memory, shelves: Shelves, tenant: str | None) -> None:
    """Before anything is written: no source may stand for what came from another file that is still there."""
    own = [*wanted.scopes, *(Scope(file.uri, file.path) for file in wanted.alone())]
    others = _Others(own, memory, tenant)
    if not others:
        return
    standing = _Standing(root, memory, shelves, tenant)
    for source in wanted:
        for other in others.paths(source):
            if standing.is_from(other, source):
                raise IngestRefused(
                    f"{other} was read as {source.uri!r} and is still there; {source.location} would be called the "
                    "same and replace it; nothing was written. Give a base folder that holds both (--base DIR), or "
                    f"read them for different tenants (--tenant NAME); if {other} is not meant any more, move it away"
                )


class _Others:
    """Folders, and files that were named alone, of earlier runs whose sources have names that this run's may have."""

    def __init__(self, own: list[Scope], memory: Memory, tenant: str | None) -> None:
        mine = {(scope.prefix, scope.folder.resolve()) for scope in own}
        above = {prefix for scope in own for prefix in (*above_of(scope.prefix), scope.prefix)}
        below = tuple(scope.prefix for scope in own if scope.prefix[-1:] in ("", "/"))
        self._folders: defaultdict[str, set[Path]] = defaultdict(set)
        for _, place in memory.places(tenant):
            is_near = place.prefix in above or place.prefix.startswith(below)
            if is_near and (place.prefix, place.folder) not in mine:
                self._folders[place.prefix].add(place.folder)

    def __bool__(self) -> bool:
        return bool(self._folders)

    def paths(self, source: Source) -> Iterator[Path]:
        """Other files that are called like this one, and are there."""
        for prefix in dict.fromkeys((*above_of(source.uri), source.uri)):
            for folder in sorted(self._folders.get(prefix, ())):
                path = folder / source.uri.removeprefix(prefix)
                if path.exists() and not is_same_file(path, source.location):
                    yield path


class _Standing:
    """What stands in the bus of the sources of a tenant, and where it was read."""

    def __init__(self, root: BusRoot, memory: Memory, shelves: Shelves, tenant: str | None) -> None:
        self._root, self._memory, self._shelves, self._tenant = root, memory, shelves, tenant

    def is_from(self, other: Path, source: Source) -> bool:
        """Whether what stands under the source's name came from the other file."""
        found, checksum = self._checksum(source)
        if not found:
            return False
        mine, theirs = self._memory.last_reading(source.location), self._memory.last_reading(str(other))
        if mine is None:
            return True
        if theirs is None or theirs[0] != checksum:
            return False
        return mine[0] != checksum or mine[1] < theirs[1]

    def _checksum(self, source: Source) -> tuple[bool, str | None]:
        """Whether something stands that was read under this name, and of which bytes."""
        if source.kind.chunker is None:
            came = (family for family in self._shelves.families.came_from(source.uri) if family.tenant == self._tenant)
            gave = self._memory.gave(source.uri, self._tenant)
            return next(came, None) is not None, gave.reading[0] if gave is not None and gave.reading else None
        family = self._document(key_of_source(source.uri, self._tenant))
        if family is None or family.origin != source.uri:
            return False, None
        return True, family.version[0]

    def _document(self, key: str) -> Family | None:
        """In any partition: where a family counts does not depend on which of them it is in."""
        if (family := self._shelves.find(key)) is not None:
            return family
        for partition in self._root.partition_keys():
            file = self._root.manifest_file(partition)
            if partition not in self._shelves.existing and os.path.isfile(file):  # noqa: PTH113
                row = self._memory.family(partition, file.read_bytes(), key)
                if row is not None:
                    return family_of(row)
        return None
