"""Where the sources of a partition were read from: a name says only how a folder is called, not which one it is."""

import posixpath
from collections.abc import Iterator
from pathlib import Path

from chunksink.producers.errors import IngestRefused
from chunksink.producers.memory import Memory
from chunksink.producers.placement import Placement
from chunksink.producers.sources import Former, Scope
from chunksink.producers.wanted import Wanted


class Places:
    """The folders that a run reads, and files that were named alone, beside those of earlier runs."""

    def __init__(self, wanted: Wanted, memory: Memory, placement: Placement, tenant: str | None) -> None:
        self._wanted, self._memory, self._placement, self._tenant = wanted, memory, placement, tenant
        self._folders = [Scope(scope.prefix, scope.folder.resolve()) for scope in wanted.scopes]
        self._files = [Scope(file.uri, file.path.resolve()) for file in wanted.alone()]

    def refuse_others(self) -> None:
        """What another folder gave under these names is not in this one, and did not vanish."""
        for _, place in self._others():
            raise IngestRefused(
                f"{place.prefix or 'all that was found'} was read from {place.folder} too, and --prune would withdraw "
                "what came from there; nothing was written. Name both in one run, or give a base folder that holds "
                "both (--base DIR), or read them for different tenants (--tenant NAME); if "
                f"{place.folder} was moved or removed, ingest once without --prune"
            )

    def read_for_others(self) -> Iterator[tuple[str | None, list[Scope]]]:
        """Which of these folders and files were read for other tenants too."""
        for tenant in self._memory.tenants():
            if tenant == self._tenant:
                continue
            places = [place for _, place in self._known(tenant)]
            folders = [place for place in places if place.is_folder]
            named: dict[str, list[Scope]] = {}  # by name, for a run may name thousands
            for place in places:
                named.setdefault(place.prefix, []).append(place)
            shared = [own for own in self._folders if any(_is_common(own, place) for place in places)]
            shared += [
                own
                for own in self._files
                if any(_is_common(own, place) for place in (*folders, *named.get(own.prefix, ())))
            ]
            if shared:
                yield tenant, shared

    def are_all(self) -> bool:
        """Whether the run reads all that was ever read into these partitions; False where nobody knows."""
        if any(self._known(tenant) for tenant in self._memory.tenants() if tenant != self._tenant):
            return False
        known = [place for _, place in self._known(self._tenant)]
        files = {file.folder for file in self._files}
        return bool(known) and all(self._is_mine(place) or place.folder in files for place in known)

    def was_read(self, folder: Path) -> bool:
        """Whether an earlier run read it, what it is in, or something in it."""
        real = folder.resolve()
        known = (place.folder for _, place in self._known(self._tenant))
        return any(real.is_relative_to(other) or other.is_relative_to(real) for other in known)

    def gone(self) -> Iterator[Scope]:
        """Other folders that were read into these partitions and are not there any more: as one that was renamed, or
        is not mounted. What other folders call so too is theirs."""
        shared = [place for _, place in self._known(self._tenant)]
        gone = {place.prefix: place for place in shared if place.is_folder and not place.folder.exists()}
        there = [*self._folders, *(place for place in shared if place.folder.exists())]
        for place in gone.values():
            is_within = any(other.prefix != place.prefix and _holds(other, place) for other in gone.values())
            if not is_within and not self._is_mine(place) and not any(_overlap(place, other) for other in there):
                yield place

    def former(self) -> tuple[Former, ...]:
        """What is in these folders and was read by another name, as it was named alone or below another base."""
        return tuple(Former(place, name) for _, place in self._renamed() for name in self._names_now(place))

    def note(self, *, prunes: bool) -> None:
        """Others that are not there any more are forgotten: these have their names now. So are former names, where
        what was called so is withdrawn."""
        gone = [(partition, place) for partition, place in self._others() if not place.folder.exists()]
        if prunes:
            gone += [found for found in self._renamed() if any(map(self._is_read, self._names_now(found[1])))]
        self._memory.note_places(self._placement.name, self._tenant, [*self._folders, *self._files], gone)

    def _known(self, tenant: str | None) -> list[tuple[str, Scope]]:
        """What was read for a tenant, with the partition or rule where that shares partitions with this run's."""
        return [found for found in self._memory.places(tenant) if self._placement.shares(found[0])]

    def _others(self) -> Iterator[tuple[str, Scope]]:
        """Of the same names, from elsewhere."""
        for partition, place in self._known(self._tenant):
            overlapping = [own for own in self._folders if _overlap(own, place)]
            if overlapping and not any(_is_same(own, place) for own in overlapping):
                yield partition, place

    def _renamed(self) -> Iterator[tuple[str, Scope]]:
        """A name that another folder or file has too, which is still there, is no former one."""
        shared = self._known(self._tenant)
        mine = [(partition, place) for partition, place in shared if self._is_mine(place)]
        others = [place for _, place in shared if not self._is_mine(place) and place.folder.exists()]
        for partition, place in mine:
            owns = (*self._folders, *self._files)
            is_own = any(place.prefix.startswith(own.prefix) and _is_same(own, place) for own in owns)
            if not is_own and not any(_overlap(place, other) for other in others):
                yield partition, place

    def _names_now(self, place: Scope) -> Iterator[str]:
        for own in self._folders:
            if place.folder.is_relative_to(own.folder):
                yield posixpath.normpath(own.prefix + place.folder.relative_to(own.folder).as_posix())

    def _is_read(self, name: str) -> bool:
        """Whether the run reads that file, or anything below that folder."""
        return self._wanted.get(name) is not None or self._wanted.holds(Scope(f"{name}/", Path()))

    def _is_mine(self, place: Scope) -> bool:
        return any(place.folder.is_relative_to(own.folder) for own in self._folders)


def _holds(folder: Scope, other: Scope) -> bool:
    return folder.is_folder and other.prefix.startswith(folder.prefix)


def _overlap(one: Scope, other: Scope) -> bool:
    return _holds(one, other) or _holds(other, one)


def _is_common(one: Scope, other: Scope) -> bool:
    return (one.prefix == other.prefix or _overlap(one, other)) and _is_same(one, other)


def _is_same(one: Scope, other: Scope) -> bool:
    """Whether they give one place to a name that is below both."""
    longer = max(one.prefix, other.prefix, key=len)
    return one.path_of(longer) == other.path_of(longer)
