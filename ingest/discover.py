"""Stage 1: finds each file below the named paths once, and names it by its registered root."""

import os
import re
import shlex
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import open_regular
from chunksink.ingest import codes
from chunksink.ingest.errors import IngestRefused
from chunksink.ingest.formats.registry import all_formats
from chunksink.ingest.options import Options, patterns
from chunksink.ingest.report import Failure
from chunksink.ingest.roots import Roots, Scope, real_path

NO_SUFFIX = "no suffix"
OTHERS = "others"
NOTEBOOK = ".ipynb"
TO_MARKDOWN = "jupyter nbconvert --to markdown"
"""Converts notebooks. As plain text they would be JSON, with their pictures in base64."""
_HIDDEN = (".", "~$")
"""Prefixes of hidden files and of Office lock files."""
_SUFFIX = re.compile(r"\.(?=.*[a-z])[a-z0-9_+-]{1,16}")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:)/+(.*)", re.S)
_CACHE_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"  # https://bford.info/cachedir/


@dataclass
class Discovery:
    """Results of the search, except the files: these are in the table `found`."""

    scopes: list[Scope] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    left_out: list[Failure] = field(default_factory=list)
    other_kinds: Counter[str] = field(default_factory=Counter)
    unlisted: list[Scope] = field(default_factory=list)
    """Folders that could not be listed, so the run cannot tell which of their files have vanished."""
    unmatched: tuple[str, ...] = ()
    """The patterns that matched nothing, with their options: `--exclude drafts/`."""

    def contains(self, name: str) -> bool:
        """Whether a source is, or was, in one of the named folders, but not in a folder that could not be listed."""
        return any(scope.contains(name) for scope in self.scopes) and not any(
            scope.contains(name) for scope in self.unlisted
        )

    def has_vanished(self, name: str, path: Path | None, options: Options) -> bool:
        """Whether a source of the named folders no longer exists at its path, or is now excluded."""
        if not self.contains(name):
            return False
        if path is None or is_missing(path) or os.path.isdir(path):  # noqa: PTH112 (raises no PermissionError)
            return True
        excluded = patterns(options.exclude, "--exclude")
        for scope in self.scopes:
            if path.is_relative_to(scope.path):
                below = path.relative_to(scope.path)
                folders = [f"{folder}/" for folder in below.parents if folder != Path()]
                return any(map(excluded.match_file, [str(below), *folders]))
        return False

    def forgets(self, name: str, families: int, path: Path | None, options: Options) -> bool:
        """Whether the run forgets how it read this source: it has no chunks, is gone, or is excluded and pruned."""
        if not families:
            return self.contains(name)
        is_gone = path is None or is_missing(path)
        return (is_gone or options.prune) and self.has_vanished(name, path, options)


def discover(
    paths: Sequence[Path],
    roots: Roots,
    db: sqlite3.Connection,
    options: Options,
    suffixes: Sequence[str],
    outputs: Sequence[Path],
) -> Discovery:
    """Fills the table `found`. Raises IngestRefused for a missing path, unless `--prune` removes its sources.

    A named file is read with any suffix. `outputs` are the folders to which this run writes.
    """
    walk = _Walk(roots, db, options, tuple(suffixes), outputs, paths)
    for folder in filter(Path.is_dir, paths):  # first, since a named file registers the folder around it
        roots.register(folder, options.base)
    for path in paths:
        if path.is_dir():
            walk.add_folder(path)
        elif not is_missing(path):
            walk.add_file(path)
        elif address := _ADDRESS.match(str(path)):  # Path collapses the two slashes
            raise IngestRefused(f"{'//'.join(address.groups())} is a URL: download it, and name the file or folder")
        elif (scope := _former_scope(path, roots, db)) is None:
            raise IngestRefused(f"{path} does not exist; name a folder or a file")
        elif options.prune:
            walk.discovery.scopes.append(scope)
        else:
            number = len(_sources_in(scope, db))
            remedy = f"to remove them, add --prune --allow-deletions {number}"
            raise IngestRefused(f"{path} no longer exists. Its chunks are kept; {remedy}")
    if walk.discovery.scopes:  # patterns do not apply to named files
        walk.discovery.unmatched = (*walk.excluded.unmatched(), *walk.included.unmatched())
    return walk.discovery


def _former_scope(path: Path, roots: Roots, db: sqlite3.Connection) -> Scope | None:
    """The scope of a file or folder that no longer exists; None if no source was read from it."""
    real = real_path(path)
    scope, root = roots.within(real), roots.of(real.parent)
    if root is not None:
        scope = replace(scope, included=(*scope.included, f"{root.name_of(real)}/"))
    return scope if _sources_in(scope, db) else None


def _sources_in(scope: Scope, db: sqlite3.Connection) -> list[str]:
    return [family for family, origin in db.execute("select family, origin from family") if scope.contains(origin)]


def why_skipped(bus: BusRoot, source: str) -> str | None:
    """Why no ingest has read a file, and the remedy; None if there is no such file. `source` is its path or name."""
    roots = Roots(bus)
    found = filter(os.path.isfile, (source, str(roots.path_of(source) or "")))
    if (path := next(map(Path, found), None)) is None:
        return None
    real, remedy = real_path(path), f"`chunksink ingest {shlex.quote(str(path))}` reads it"
    root = roots.of(real.parent)
    suffixes = [suffix for one in all_formats().values() for suffix in one.suffixes]
    below = real.relative_to(root.path) if root else Path(real.name)
    if any(part.startswith(_HIDDEN) for part in below.parts):
        return f"{path} was not read: hidden files and folders are skipped. {remedy}"
    if not any(suffix and real.name.lower().endswith(suffix) for suffix in suffixes):
        kind = f"*{real.suffix}" if real.suffix else real.name
        if real.suffix.lower() == NOTEBOOK:
            remedy = f"Convert it, and ingest the result: `{TO_MARKDOWN} {shlex.quote(str(path))}`"
        else:
            remedy += f"; --include {shlex.quote(kind)} reads all such files"
        return f"{path} was not read: files of its kind are skipped. {remedy}"
    if root and (name := root.name_of(real)) != source:
        return f"{path} has the source name {name}: see `chunksink why {shlex.quote(name)}`"
    return f"{path} was not read: it is excluded, in a skipped folder, or new. {remedy}"


class _Patterns:
    """The patterns of an option, and which of them have matched."""

    def __init__(self, lines: Sequence[str], option: str) -> None:
        self._spec, self._option = patterns(lines, option), option
        self._matched: set[int] = set()

    def match(self, path: str) -> bool:
        result = self._spec.check_file(path)
        if result.index is not None:  # at least one pattern matches; the last match decides
            self._matched |= {number for number, one in enumerate(self._spec.patterns) if one.match_file(path)}
        return bool(result.include)

    def unmatched(self) -> Iterator[str]:
        """The patterns that have matched nothing, except negated ones."""
        for number, one in enumerate(self._spec.patterns):
            if one.include and number not in self._matched:
                yield f"{self._option} {one.pattern!s}"


class _Walk:
    """Walks folders, each real folder once, even if several paths lead there."""

    def __init__(
        self,
        roots: Roots,
        db: sqlite3.Connection,
        options: Options,
        suffixes: tuple[str, ...],
        outputs: Sequence[Path],
        paths: Sequence[Path],
    ) -> None:
        self.discovery = Discovery()
        self._roots, self._db, self._options = roots, db, options
        self._suffixes, self._reads_without_suffix = tuple(filter(None, suffixes)), "" in suffixes
        self.excluded = _Patterns(options.exclude, "--exclude")
        self.included = _Patterns(options.include, "--include")
        self._outputs = {os.path.realpath(folder) for folder in outputs}
        self._named = {os.path.realpath(path) for path in paths}
        self._named_files = {str(real_path(path)) for path in paths}
        self._walked: set[str] = set()

    def add_file(self, path: Path) -> None:
        root = self._roots.register(path.parent, self._options.base, files_only=True)
        real = real_path(path)
        self._add(root.name_of(real), str(real))

    def add_folder(self, path: Path) -> None:
        if not os.access(path, os.R_OK | os.X_OK):
            raise IngestRefused(f"{path} cannot be read: correct its permissions")
        top = real_path(path)
        self.discovery.scopes.append(self._roots.within(top))
        pending = [str(top)]
        while pending:
            folder = pending.pop()
            if folder not in self._walked:
                self._walked.add(folder)
                pending += self._list(folder, str(top))

    def _list(self, folder: str, top: str) -> Iterator[str]:
        """Adds the files of a folder to `found`, and yields the folders in it to walk."""
        prefix = self._roots.prefix_of(Path(folder))
        below = "" if folder == top else f"{folder.removeprefix(top).lstrip('/')}/"
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    is_folder = _is_folder(entry)
                    path = f"{below}{entry.name}{'/' if is_folder else ''}"
                    if self.excluded.match(path) or entry.name.startswith(_HIDDEN):
                        continue
                    if is_folder:
                        if not self._skips_folder(entry, f"{prefix}{entry.name}/"):
                            yield entry.path
                    elif (is_included := self.included.match(path)) or self._is_source(
                        entry.name, f"{prefix}{entry.name}"
                    ):
                        if entry.is_symlink() and is_missing(entry.path):
                            self._leave_out_broken_link(f"{prefix}{entry.name}")
                        elif entry.is_symlink() and self._leads_outside(entry.path):
                            reason = "is a link to a file outside the named folders; to read it, name it as a source"
                            self._leave_out(f"{prefix}{entry.name}", codes.FILE_LINKED, reason)
                        else:
                            self._add(f"{prefix}{entry.name}", entry.path, is_included=is_included)
                    elif entry.path not in self._named_files:
                        self.discovery.other_kinds[suffix_of(entry.name)] += 1
        except OSError as error:
            reason = f"the folder cannot be listed: {error.strerror}"
            self.discovery.failures.append(Failure(printable(prefix) or "./", codes.SOURCE_UNREADABLE, reason))
            self.discovery.unlisted.append(self._roots.within(Path(folder)))

    def _is_source(self, name: str, uri: str) -> bool:
        if name.lower().endswith(self._suffixes) or (self._reads_without_suffix and "." not in name):
            return True
        # A file that was read once is still read, although it is neither included nor named now.
        return self._db.execute(_WAS_READ, [printable(uri), self._options.format]).fetchone() is not None

    def _leads_outside(self, link: str) -> bool:
        real = os.path.realpath(link)
        is_inside = real in self._named or any(real.startswith(f"{named.rstrip('/')}/") for named in self._named)
        return not (is_inside or self._options.follow_links)

    def _skips_folder(self, entry: os.DirEntry[str], uri: str) -> bool:
        """Whether the walk skips this subfolder; records the reason.

        A named folder is never skipped. A link to one is, because that folder is walked anyway.
        """
        real = os.path.realpath(entry.path)
        if real in self._named:
            return entry.is_symlink()
        if entry.is_symlink():
            self._leave_out(uri, codes.FOLDER_LINKED, "is a link to a folder; to read it, name it as a source")
        elif real in self._outputs:
            self._leave_out(uri, codes.FOLDER_IS_OUTPUT, "chunksink writes there")
        elif os.path.isdir(f"{real}/canonical") and os.path.isdir(f"{real}/manifest"):  # noqa: PTH112 (many folders)
            self._leave_out(uri, codes.FOLDER_IS_OUTPUT, "is a bus root; to read it, name it as a source")
        elif reason := _filled_by_tool(real):
            self._leave_out(uri, codes.FOLDER_OF_TOOL, f"{reason}; to read it, name it as a source")
        else:
            return False
        return True

    def _leave_out_broken_link(self, uri: str) -> None:
        """Reports a broken link, unless it has been read before: then it counts as a missing file."""
        if self._db.execute("select 1 from family where origin = ?", [printable(uri)]).fetchone() is None:
            self._leave_out(uri, codes.FILE_LINKED, "is a link to a file that does not exist")

    def _leave_out(self, uri: str, code: str, reason: str) -> None:
        self.discovery.left_out.append(Failure(printable(uri), code, reason))

    def _add(self, uri: str, path: str, is_included: bool = False) -> None:
        if printable(uri) != uri:
            reason = "its name is not UTF-8: rename it"
            self.discovery.failures.append(Failure(printable(uri), codes.SOURCE_NAME_INVALID, reason))
            return
        row = (uri, os.fsencode(path), is_included)
        if self._db.execute("insert or ignore into found (uri, path, is_included) values (?, ?, ?)", row).rowcount == 0:
            (other,) = self._db.execute("select path from found where uri = ?", [uri]).fetchone()
            if other != row[1]:
                raise IngestRefused(
                    f"{os.fsdecode(other)} and {path} would both be named {uri!r}; nothing was written. "
                    "Name sources by a folder that contains both: --base DIR"
                )


_WAS_READ = """
select 1 from source where uri = ?1 and ?2 in ('auto', format) and (failures = 0 or families > 0)
union select 1 from family where origin = ?1 and ?2 = 'auto'
"""


def printable(uri: str) -> str:
    """The name, with bytes that are not UTF-8 escaped."""
    return uri.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circular link; reading it reports that
        return False


def is_missing(path: str | Path) -> bool:
    """Whether the path, or the target of a link, does not exist. A file that cannot be reached is not missing."""
    try:
        os.stat(path)  # noqa: PTH116 (many files)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:  # reading it reports that
        return False
    return False


def suffix_of(name: str) -> str:
    """The suffix, or `others` for suffixes such as the numbers of rotated logs."""
    suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122 (many files)
    return suffix if _SUFFIX.fullmatch(suffix) else OTHERS if suffix else NO_SUFFIX


def _filled_by_tool(folder: str) -> str | None:
    if folder.endswith("/node_modules") or os.path.isfile(f"{folder}/pyvenv.cfg"):  # noqa: PTH113 (many folders)
        return "contains installed packages"
    with suppress(OSError), open_regular(f"{folder}/CACHEDIR.TAG") as file:
        return "is a cache, according to its CACHEDIR.TAG" if file.read(len(_CACHE_TAG)) == _CACHE_TAG else None
    return None
