"""Which folders hold one source, a JSON file for each of its records: a family may lie in several of these files."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from sqlite3 import Connection

from chunksink.producers.errors import SourceFailed
from chunksink.producers.kinds import ROWS, Kind
from chunksink.producers.records.nested import Way
from chunksink.producers.sources import Found, Scope, SourceFile
from chunksink.producers.tables import below

Former = Callable[[str], Kind | None]
"""What a source of this name was read as before."""


@dataclass(frozen=True, slots=True)
class Seen(SourceFile):
    """A file, and what it shows: its kind if that can be told, and whether it is one JSON value."""

    kind: Kind | None
    is_value: bool = False
    is_empty: bool = False
    failed: SourceFailed | None = None
    within: tuple[Way, ...] = ()
    """The names under which it has records that are not read."""

    @property
    def is_record(self) -> bool:
        """Of a kind that may have a file for each record."""
        return self.is_value and self.kind is not None and self.kind.folders


def read_on(seen: Kind | None, was: Kind | None) -> Kind | None:
    """What is read as it was before: what does not tell, and what was read as rows and looks like chunks."""
    if seen is None or (was is not None and (was.name, seen.name) == (ROWS, "chunks")):
        return was
    return seen


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is one source; `prefix` begins the names of its files."""

    prefix: str
    path: Path
    kind: Kind

    @property
    def uri(self) -> str:
        return self.prefix or "./"


@dataclass(frozen=True, slots=True)
class Lying:
    """What one or more JSON files of a folder are; the folder's name as their names begin, and where it is."""

    prefix: str
    place: Path
    kind: Kind | None
    is_record: bool
    is_value: bool

    def is_in(self, scope: Scope) -> bool:
        return scope.path_of(self.prefix) == self.place


class Shown:
    """What all JSON files show, by folder."""

    def __init__(self, tables: Connection) -> None:
        self._tables = tables
        self._kinds: dict[Kind | None, int] = {}

    def add(self, file: Seen) -> None:
        kind = self._kinds.setdefault(file.kind, len(self._kinds))
        row = (_folder_of(file.uri), os.fsencode(file.path.parent), kind, file.is_record, file.is_value)
        self._tables.execute("insert or ignore into shown values (?, ?, ?, ?, ?)", row)

    def below(self, prefix: str) -> Iterator[Lying]:
        """In the order of the folders."""
        kinds = list(self._kinds)
        rows = self._tables.execute(
            "select folder, place, kind, is_record, is_value from shown where folder >= ? and folder < ?"
            " order by folder",
            below(prefix),
        )
        for folder, place, kind, is_record, is_value in rows:
            yield Lying(folder, Path(os.fsdecode(place)), kinds[kind], bool(is_record), bool(is_value))


def record_folders(shown: Shown, found: Found, former: Former) -> list[Folder]:
    """The largest folders whose JSON files are all records of one kind, looked for below those that were named.

    JSON that is no record parts nothing. What cannot be read is a record of the folder where it lies beside others, or
    where the folder was such a source before. A folder that another path names files of, or like, is no source.
    """
    folders: list[Folder] = []
    prefixes: set[str] = set()
    again = {above for uri in found.again if is_json(uri) for above in above_of(uri)}
    for scope in sorted(found.scopes, key=lambda scope: scope.prefix):
        others = (lying.prefix for lying in shown.below(scope.prefix) if not lying.is_in(scope))
        parted = again | {above for prefix in others for above in above_of(prefix)}
        pending = [scope.prefix]
        while pending:
            prefix = pending.pop()
            if not prefixes.isdisjoint(above_of(prefix)):
                continue
            folder = _folder(prefix, shown, scope, former)
            if folder is None or prefix in parted:
                pending += _folders_in(prefix, shown, scope)
            else:
                folders.append(folder)
                prefixes.add(prefix)
    return folders


def above_of(uri: str) -> Iterator[str]:
    """What names of its folders begin with, the outermost first; of a folder's also its own."""
    yield ""
    end = uri.find("/")
    while end >= 0:
        yield uri[: end + 1]
        end = uri.find("/", end + 1)


def is_json(uri: str) -> bool:
    return uri.lower().endswith(".json")


def _folder_of(uri: str) -> str:
    return uri[: uri.rfind("/") + 1]


def _folder(prefix: str, shown: Shown, scope: Scope, former: Former) -> Folder | None:
    path = scope.path_of(prefix)
    if path is None:
        return None
    kinds: dict[str, Kind] = {}
    is_sure = True
    files = (lying for lying in shown.below(prefix) if lying.is_in(scope))
    for _, group in groupby(files, key=lambda lying: lying.prefix):
        beside = list(group)
        if any(lying.kind is not None and not lying.is_record for lying in beside):
            return None
        kinds |= {lying.kind.name: lying.kind for lying in beside if lying.kind is not None}
        is_sure &= any(lying.is_record for lying in beside) or all(lying.is_value for lying in beside)
    before = former(prefix or "./") if len(kinds) < 2 else None
    if is_sure and len(kinds) == 1 and (kind := read_on(next(iter(kinds.values())), before)) is not None:
        return Folder(prefix, path, kind)
    if before is not None and before.folders and kinds.keys() <= {before.name}:
        return Folder(prefix, path, before)
    return None


def _folders_in(prefix: str, shown: Shown, scope: Scope) -> list[str]:
    inner = (lying.prefix for lying in shown.below(prefix) if lying.is_in(scope) and lying.prefix != prefix)
    return list(dict.fromkeys(name[: name.index("/", len(prefix)) + 1] for name in inner))
