"""Files to read: found in a fixed order, named by their path below a root, read whole and unchanging. Never writes."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest, sha256
from io import BufferedReader
from pathlib import Path

from producers.errors import (
    FOLDER_LINKED,
    SOURCE_CHANGED,
    SOURCE_NAME_INVALID,
    SOURCE_UNREADABLE,
    IngestRefused,
    SourceFailed,
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file and the `source_uri` that its chunks carry: its path below the root, parted by `/`."""

    uri: str
    location: str

    @property
    def path(self) -> Path:
        """Made anew each time: it is several times as large, and a run may hold a million of these."""
        return Path(self.location)


@dataclass(frozen=True)
class Failure:
    """A source, or a line of one, that was left out: its name, a code of `errors.MEANINGS`, and what happened."""

    source_uri: str
    code: str
    reason: str
    line: int | None = None


@dataclass(frozen=True)
class Scope:
    """A folder that was named, and what the names of all sources below it begin with."""

    prefix: str
    folder: Path

    def path_of(self, uri: str) -> Path | None:
        """Where a source of this name would lie; None where that is not below the folder."""
        return self.folder / uri.removeprefix(self.prefix) if uri.startswith(self.prefix) else None


@dataclass(frozen=True)
class Found:
    """What lies below the named paths, sorted by `uri`.

    `left_out` is told and is no failure. `again` are names that files would also have by a later path.
    """

    files: tuple[SourceFile, ...]
    failures: tuple[Failure, ...]
    scopes: tuple[Scope, ...] = ()
    left_out: tuple[Failure, ...] = ()
    again: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """What changes with a file's content, as far as the system keeps it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Signature":
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def is_settled(self, noted_ns: int) -> bool:
        """False where a change after `noted_ns` could still have left the same times: then it proves nothing."""
        return all(stamp + _tick(stamp) < noted_ns for stamp in (self.mtime_ns, self.ctime_ns))


def _tick(stamp: int) -> int:
    """How far apart two changes may be and bear one time: some file systems keep whole, or even, seconds."""
    return 2_000_000_000 if stamp % 1_000_000_000 == 0 else 20_000_000


def find_sources(paths: Sequence[Path], *, suffixes: tuple[str, ...], base: Path | None = None) -> Found:
    """Files with these suffixes in the folders named, and the files named whatever their suffix.

    A `uri` is relative to `base`, else begins with the name of the folder named, or is the name of the file named.
    What several of the paths reach is one source, called as the first of them says. Hidden files and folders are passed
    over; links to folders are not followed, so that no cycle has no end, but where they are named.
    """
    finding = _Finding(suffixes, paths)
    for path in paths:
        if not path.exists():
            raise IngestRefused(f"{path} does not exist; name a folder or a file")
        finding.look_into(path, base or Path(os.path.abspath(path)).parent)  # noqa: PTH100 (a link has its own name)
    return finding.found()


class _Finding:
    """What was found so far."""

    def __init__(self, suffixes: tuple[str, ...], paths: Sequence[Path]) -> None:
        self._suffixes = suffixes
        self._real_folder = cache(os.path.realpath)
        self._named = {self._real(path) for path in paths}
        self._files: dict[str, str] = {}
        self._reached: dict[str, str] = {}
        self._again: list[str] = []
        self._failures: list[Failure] = []
        self._left_out: list[Failure] = []
        self._scopes: list[Scope] = []

    def look_into(self, path: Path, root: Path) -> None:
        if not path.is_dir():
            self._take(str(path), root)
            return
        prefix = _uri(path, root)
        are_new = [self._take(file, root) for file in self._walk(path, root)]
        if any(are_new) or not are_new:  # else it is part of what was named before it
            self._scopes.append(Scope("" if prefix == "." else f"{prefix}/", path))

    def _take(self, file: str, root: Path) -> bool:
        """False where an earlier path reached it."""
        uri, real = _uri(file, root), self._real(file)
        if real in self._reached:
            if self._reached[real] != uri:
                self._again.append(uri)
            return False
        self._reached[real] = uri
        if not _is_unicode(uri):
            self._failures.append(Failure(_printable(uri), SOURCE_NAME_INVALID, "its name is not UTF-8; rename it"))
            return True
        other = self._files.setdefault(uri, file)
        if other != file and not _is_same(other, file):
            raise IngestRefused(
                f"{other} and {file} would both be called {uri!r}, and one would replace the other; "
                "read them into different partitions, or give a base folder that holds both"
            )
        return True

    def _walk(self, folder: Path, root: Path) -> Iterator[str]:
        if not os.access(folder, os.R_OK | os.X_OK):
            raise IngestRefused(f"{folder} cannot be read; mend its permissions")

        def note(error: OSError) -> None:
            reason = f"the folder cannot be listed: {error.strerror}"
            self._failures.append(Failure(_folder_uri(Path(error.filename), root), SOURCE_UNREADABLE, reason))

        for parent, folders, names in os.walk(folder, onerror=note):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in folders:
                self._note_link(Path(parent, name), root)
            for name in sorted(names):
                if not name.startswith(".") and name.lower().endswith(self._suffixes):
                    yield os.path.join(parent, name)  # noqa: PTH118 (of a Path the name would stay in memory)

    def _note_link(self, folder: Path, root: Path) -> None:
        if folder.is_symlink() and (real := self._real(folder)) not in self._named and real not in self._reached:
            self._reached[real] = uri = _folder_uri(folder, root)
            reason = "is a link to a folder, and was not followed; name it to have it read"
            self._left_out.append(Failure(uri, FOLDER_LINKED, reason))

    def _real(self, path: Path | str) -> str:
        """Where it lies, whatever linked folders lead there; a link itself has its own name."""
        folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
        return os.path.join(self._real_folder(folder), name)  # noqa: PTH118

    def found(self) -> Found:
        in_order = (SourceFile(uri, self._files[uri]) for uri in sorted(self._files))
        failures, left_out = (
            tuple(sorted(group, key=lambda failure: failure.source_uri)) for group in (self._failures, self._left_out)
        )
        return Found(tuple(in_order), failures, tuple(self._scopes), left_out, tuple(self._again))


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:
        return False


def _folder_uri(folder: Path, root: Path) -> str:
    return _printable(_uri(folder, root)) + "/"


def _printable(uri: str) -> str:
    return uri.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _uri(file: Path | str, root: Path) -> str:
    # Not resolve(): a link is called by its own name.
    path, top = os.path.abspath(file), os.path.abspath(root)  # noqa: PTH100
    start = top.rstrip("/") + "/"
    if path != top and not path.startswith(start):
        raise IngestRefused(f"{file} does not lie below the base folder {root}")
    return "." if path == top else path.removeprefix(start)


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_source(path: Path | str) -> tuple[bytes, Signature]:
    """All bytes of a file; refuses one that cannot be read or that is written to meanwhile."""
    try:
        with open_source(path) as file:
            before = Signature.of(os.fstat(file.fileno()))
            data = file.read()
            after = Signature.of(os.fstat(file.fileno()))
    except OSError as error:
        raise SourceFailed(SOURCE_UNREADABLE, error.strerror or str(error)) from error
    if (before.size, before.mtime_ns) != (after.size, after.mtime_ns) or len(data) != after.size:
        raise changed_meanwhile()
    return data, after


def open_source(path: Path | str) -> BufferedReader:
    """For reading; a pipe or a device, which could block or never end, is refused."""
    # Opening a pipe would wait for its other end.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise SourceFailed(SOURCE_UNREADABLE, "is not a regular file")
    return file


def digest_source(path: Path) -> tuple[str, Signature]:
    """The hex sha256 of a file, or of the names and bytes of all JSON files in a folder, and its signature."""
    if not path.is_dir():
        with open_source(path) as opened:
            signature = Signature.of(os.fstat(opened.fileno()))
            return file_digest(opened, "sha256").hexdigest(), signature
    whole = sha256()
    for file in find_sources([path], suffixes=(".json",), base=path).files:
        whole.update(f"{digest_source(file.path)[0]} {file.uri}\n".encode())
    return whole.hexdigest(), Signature.of(path.stat())


def changed_meanwhile() -> SourceFailed:
    return SourceFailed(SOURCE_CHANGED, "was written to while it was read; run again when its writer has finished")
