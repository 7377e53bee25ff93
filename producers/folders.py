"""Which folders hold one source, a JSON file for each of its records: a family may lie in several of these files."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname

from producers.errors import SourceFailed
from producers.kinds import Kind
from producers.sources import Found, Scope, SourceFile

Former = Callable[[str], Kind | None]
"""What a source of this name was read as before."""


@dataclass(frozen=True, slots=True)
class Seen(SourceFile):
    """A file, and what it shows: its kind if that can be told, and whether it is one JSON value."""

    kind: Kind | None
    is_value: bool = False
    is_empty: bool = False
    failed: SourceFailed | None = None

    @property
    def is_record(self) -> bool:
        """Of a kind that may have a file for each record."""
        return self.is_value and self.kind is not None and self.kind.folders


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is one source; `prefix` begins the names of its files."""

    prefix: str
    path: Path
    kind: Kind

    @property
    def uri(self) -> str:
        return self.prefix or "./"


def record_folders(seen: Sequence[Seen], found: Found, former: Former) -> list[Folder]:
    """The largest folders whose JSON files are all records of one kind, looked for below those that were named.

    JSON that is no record parts nothing. What cannot be read is a record of the folder where it lies beside others, or
    where the folder was such a source before. A folder that another path names files of, or like, is no source.
    """
    files = [file for file in seen if _is_json(file.uri)]
    folders: list[Folder] = []
    prefixes: set[str] = set()
    for scope in sorted(found.scopes, key=lambda scope: scope.prefix):
        own = [file for file in files if scope.path_of(file.uri) == file.path]
        others = [
            file.uri for file in files if file.uri.startswith(scope.prefix) and scope.path_of(file.uri) != file.path
        ]
        others += filter(_is_json, found.again)
        parted = {above for uri in others for above in above_of(uri)}
        pending = [(scope.prefix, own)]
        while pending:
            prefix, below = pending.pop()
            if not prefixes.isdisjoint(above_of(prefix)):
                continue
            folder = _folder(prefix, below, scope, former)
            if folder is None or prefix in parted:
                pending += _folders_in(prefix, below).items()
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


def _is_json(uri: str) -> bool:
    return uri.lower().endswith(".json")


def _folder(prefix: str, files: Collection[Seen], scope: Scope, former: Former) -> Folder | None:
    path = scope.path_of(prefix)
    if path is None or any(file.kind is not None and not file.is_record for file in files):
        return None
    kinds = {file.kind.name: file.kind for file in files if file.kind is not None}
    beside = {dirname(file.uri) for file in files if file.is_record}
    is_sure = len(kinds) == 1 and all(file.is_value or dirname(file.uri) in beside for file in files)
    if not is_sure and len(kinds) < 2:
        before = former(prefix or "./")
        if before is not None and before.folders and kinds.keys() <= {before.name}:
            return Folder(prefix, path, before)
    return Folder(prefix, path, next(iter(kinds.values()))) if is_sure else None


def _folders_in(prefix: str, files: Collection[Seen]) -> dict[str, list[Seen]]:
    found: dict[str, list[Seen]] = {}
    for file in files:
        name, slash, _ = file.uri.removeprefix(prefix).partition("/")
        if slash:
            found.setdefault(f"{prefix}{name}/", []).append(file)
    return found
