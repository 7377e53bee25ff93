"""Files to read: found in a fixed order, named by their path below a root."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from sqlite3 import Connection

from chunksink.producers.errors import (
    FOLDER_IS_OUTPUT,
    FOLDER_LINKED,
    FOLDER_OF_TOOL,
    SOURCE_NAME_INVALID,
    SOURCE_UNREADABLE,
    IngestRefused,
)
from chunksink.producers.filled import filled_by_tool
from chunksink.producers.names import folder_uri, is_same_file, is_unicode, printable, uri_of
from chunksink.producers.outputs import BUS, NOWHERE, OWN, Outputs, looks_like_bus
from chunksink.producers.patterns import NONE, Patterns
from chunksink.producers.sources import LINK_TO_NOTHING, Failure, Found, Scope, SourceFile, is_link_to_nothing
from chunksink.producers.tally import Tally

_FOLDERS_AT_HAND = 1024
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:)/+(.*)", re.S)


def find_sources(
    paths: Sequence[Path],
    tables: Connection,
    *,
    suffixes: tuple[str, ...],
    root: Callable[[Path], Path] = lambda path: Path(os.path.abspath(path)).parent,  # noqa: PTH100
    outputs: Outputs = NOWHERE,
    excluded: Patterns = NONE,
    included: Patterns = NONE,
    followed: Callable[[str, str], bool] | None = None,
    lost: Callable[[Path], bool] = lambda _path: False,
    prunes: bool = False,
) -> Found:
    """Files with these suffixes in the folders named, and the files named whatever their suffix; an empty one is of
    files without any.

    A `uri` is the path below the `root` of what was named: that begins with the name of a folder, or is that of a file.
    What several of the paths reach is one source, called as the first of them says. Hidden files and folders are passed
    over; links to folders are not followed, so that no cycle has no end, but where they are named. Nor is a bus of
    chunks read that lies among the sources, nor what tools filled for themselves, nor what is `excluded` below a
    folder; what is `included` there is read whatever its suffix, and so is what is `followed`, by its name and place. A
    folder that is `lost` is an empty one for who prunes.
    """
    finding = _Finding(suffixes, paths, tables, outputs, excluded, included, followed, prunes)
    for path in paths:
        if not path.exists() and not (prunes and lost(path)):
            raise IngestRefused(_absent(path, is_lost=lost(path)))
        finding.look_into(path, root(path))
    return finding.found()


def _absent(path: Path, *, is_lost: bool) -> str:
    if is_lost:
        return f"{path} does not exist any more; what was read from it stays, and --prune withdraws it"
    if address := _ADDRESS.match(str(path)):  # of two slashes a path keeps one
        name = "//".join(address.groups())
        return f"{name} is an address, and addresses are not fetched; save its pages, and name their folder"
    return f"{path} does not exist; name a folder or a file"


class _Finding:
    """What was found so far."""

    def __init__(
        self,
        suffixes: tuple[str, ...],
        paths: Sequence[Path],
        tables: Connection,
        outputs: Outputs,
        excluded: Patterns,
        included: Patterns,
        followed: Callable[[str, str], bool] | None,
        prunes: bool,
    ) -> None:
        self._tables, self._outputs = tables, outputs
        self._excluded, self._included, self._followed = excluded, included, followed
        self._prunes = prunes
        self._suffixes, self._takes_none = tuple(filter(None, suffixes)), "" in suffixes
        self._real_folder = lru_cache(_FOLDERS_AT_HAND)(os.path.realpath)
        self._named = {self._real(path) for path in paths}
        self._may_meet = len(paths) > 1
        """Two paths may reach one file; by one path each is reached once, as linked folders are not followed."""
        self._failures: list[Failure] = []
        self._left_out: list[Failure] = []
        self._scopes: list[Scope] = []
        self._own: list[str] = []
        self._tally = Tally()

    def look_into(self, path: Path, root: Path) -> None:
        if path.exists() and not path.is_dir():
            self._take(str(path), root)
            return
        prefix = uri_of(path, root)
        taken = passed = 0
        for file in self._walk(path, root):
            if self._take(file, root):
                taken += 1
            else:
                passed += 1
        if taken or not passed:  # else it is part of what was named before it
            self._scopes.append(Scope("" if prefix == "." else f"{prefix}/", path))

    def _take(self, file: str, root: Path) -> bool:
        """False where an earlier path reached it."""
        uri = uri_of(file, root)
        if self._may_meet and (earlier := self._reach(self._real(file), uri)) is not None:
            if earlier != uri:
                self._tables.execute("insert or ignore into again values (?)", [os.fsencode(uri)])
            return False
        if not is_unicode(uri):
            self._failures.append(Failure(printable(uri), SOURCE_NAME_INVALID, "its name is not UTF-8; rename it"))
            return True
        row = (uri, os.fsencode(file))
        if self._tables.execute("insert or ignore into found values (?, ?)", row).rowcount == 0:
            (other,) = self._tables.execute("select location from found where uri = ?", [uri]).fetchone()
            if other != row[1] and not is_same_file(os.fsdecode(other), file):
                raise IngestRefused(
                    f"{os.fsdecode(other)} and {file} would both be called {uri!r}, and one would replace the other; "
                    "nothing was written. Give a base folder that holds both (--base DIR), or read them for different "
                    "tenants (--tenant NAME)"
                )
        return True

    def _reach(self, real: str, uri: str) -> str | None:
        """What is there is called so; or else as this says, if an earlier path has reached it."""
        row = (os.fsencode(real), os.fsencode(uri))
        if self._tables.execute("insert or ignore into reached values (?, ?)", row).rowcount:
            return None
        (earlier,) = self._tables.execute("select uri from reached where real = ?", row[:1]).fetchone()
        return os.fsdecode(earlier)

    def _walk(self, folder: Path, root: Path) -> Iterator[str]:
        if not folder.exists():  # any more
            return
        if not os.access(folder, os.R_OK | os.X_OK):
            raise IngestRefused(f"{folder} cannot be read; mend its permissions")
        pending = [str(folder)]
        while pending:
            parent = pending.pop()
            is_new = not self._may_meet or self._reach(self._real_folder(parent) + "/", parent) is None
            try:
                with os.scandir(parent) as entries:
                    for entry in entries:
                        if entry.name.startswith("."):
                            continue
                        leads_to_folder = _leads_to_folder(entry)
                        if self._excluded.cover(entry.path, str(folder), is_folder=leads_to_folder):
                            continue
                        if not leads_to_folder:
                            if self._is_wanted(entry, folder, root):
                                if self._prunes and is_link_to_nothing(entry.path):
                                    self._note_link_to_nothing(entry.path, root)
                                    continue
                                yield entry.path
                            elif is_new:
                                self._tally.add(entry.name)
                        elif entry.is_symlink():
                            self._note_link(entry.path, root)
                        elif not self._is_output(entry.path, root) and not self._is_of_tool(entry.path, root):
                            pending.append(entry.path)
            except OSError as error:
                reason = f"the folder cannot be listed: {error.strerror}"
                self._failures.append(Failure(folder_uri(parent, root), SOURCE_UNREADABLE, reason))

    def _is_wanted(self, file: os.DirEntry[str], folder: Path, root: Path) -> bool:
        if file.name.lower().endswith(self._suffixes) or (self._takes_none and "." not in file.name):
            return True
        if self._included.cover(file.path, str(folder), is_folder=False):
            return True
        return self._followed is not None and self._followed(uri_of(file.path, root), file.path)

    def _note_link_to_nothing(self, file: str, root: Path) -> None:
        self._failures.append(Failure(printable(uri_of(file, root)), SOURCE_UNREADABLE, LINK_TO_NOTHING))

    def _note_link(self, folder: str, root: Path) -> None:
        real, uri = self._real(folder), folder_uri(folder, root)
        if real not in self._named and self._reach(real, uri) is None:
            reason = "is a link to a folder, and was not followed; name it to have it read"
            self._left_out.append(Failure(uri, FOLDER_LINKED, reason))

    def _is_output(self, folder: str, root: Path) -> bool:
        real = self._real(folder)
        is_own = self._outputs.are_own(real)
        if real in self._named or not (is_own or looks_like_bus(folder)):
            return False
        uri = folder_uri(folder, root)
        if is_own:
            self._own.append(uri)
        if self._reach(real, uri) is None:
            self._left_out.append(Failure(uri, FOLDER_IS_OUTPUT, OWN if is_own else BUS))
        return True

    def _is_of_tool(self, folder: str, root: Path) -> bool:
        reason = filled_by_tool(folder)
        if reason is None or (real := self._real(folder)) in self._named:
            return False
        uri = folder_uri(folder, root)
        if self._reach(real, uri) is None:
            self._left_out.append(Failure(uri, FOLDER_OF_TOOL, reason))
        return True

    def _real(self, path: Path | str) -> str:
        """Where it lies, whatever linked folders lead there; a link itself has its own name."""
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
        return os.path.join(self._real_folder(folder), name)  # noqa: PTH118

    def found(self) -> Found:
        failures, left_out = (
            tuple(sorted(group, key=lambda failure: failure.source_uri)) for group in (self._failures, self._left_out)
        )
        scopes, again = tuple(self._scopes), _Again(self._tables)
        own, others = tuple(self._own), self._tally.counts()
        return Found(_Files(self._tables), failures, scopes, left_out, again, own, others)


@dataclass(frozen=True)
class _Files:
    """What was found, in the order of the names."""

    tables: Connection

    def __iter__(self) -> Iterator[SourceFile]:
        for uri, location in self.tables.execute("select uri, location from found order by uri"):
            yield SourceFile(uri, os.fsdecode(location))


@dataclass(frozen=True)
class _Again:
    tables: Connection

    def __iter__(self) -> Iterator[str]:
        for (uri,) in self.tables.execute("select uri from again"):
            yield os.fsdecode(uri)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle: whoever reads it says so
        return False
