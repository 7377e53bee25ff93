"""Files to read: found in a fixed order, named by their path below a root, read whole and unchanging. Never writes."""

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from producers.errors import (
    SOURCE_CHANGED,
    SOURCE_NAME_INVALID,
    SOURCE_UNREADABLE,
    IngestRefused,
    SourceFailed,
)


@dataclass(frozen=True)
class SourceFile:
    """A file and the `source_uri` that its chunks carry: its path below the root, parted by `/`."""

    uri: str
    path: Path


@dataclass(frozen=True)
class Failure:
    """A source that was left out: its name, a code of `errors.MEANINGS`, and what happened."""

    source_uri: str
    code: str
    reason: str


@dataclass(frozen=True)
class Found:
    """What lies below the named paths, sorted by `uri`."""

    files: tuple[SourceFile, ...]
    failures: tuple[Failure, ...]


def find_sources(paths: Iterable[Path], *, suffixes: tuple[str, ...], base: Path | None = None) -> Found:
    """Files with these suffixes in the folders named, and the files named whatever their suffix.

    A `uri` is relative to `base`, else begins with the name of the folder named, or is the name of the file named.
    Hidden files and folders are passed over, and links to folders are not followed, so that no cycle has no end.
    """
    files: dict[str, Path] = {}
    failures: list[Failure] = []
    for path in paths:
        if not path.exists():
            raise IngestRefused(f"{path} does not exist; name a folder or a file")
        is_folder = path.is_dir()
        root = base or Path(os.path.abspath(path)).parent  # noqa: PTH100 (not resolve(): a link has its own name)
        for file in _walk(path, suffixes, failures) if is_folder else [path]:
            uri = _uri(file, root)
            if not _is_unicode(uri):
                name = uri.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
                failures.append(Failure(name, SOURCE_NAME_INVALID, "its name is not UTF-8; rename it"))
                continue
            other = files.setdefault(uri, file)
            if other != file and not other.samefile(file):
                raise IngestRefused(
                    f"{other} and {file} would both be called {uri!r}, and one would replace the other; "
                    "read them into different partitions, or give a base folder that holds both"
                )
    in_order = (SourceFile(uri, files[uri]) for uri in sorted(files))
    return Found(tuple(in_order), tuple(sorted(failures, key=lambda failure: failure.source_uri)))


def _walk(folder: Path, suffixes: tuple[str, ...], failures: list[Failure]) -> Iterable[Path]:
    if not os.access(folder, os.R_OK | os.X_OK):
        raise IngestRefused(f"{folder} cannot be read; mend its permissions")
    for parent, folders, names in os.walk(folder, onerror=_note(folder, failures)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and name.lower().endswith(suffixes):
                yield Path(parent, name)


def _note(folder: Path, failures: list[Failure]) -> Callable[[OSError], None]:
    def note(error: OSError) -> None:
        uri = os.fsencode(os.path.relpath(error.filename, folder)).decode("utf-8", "backslashreplace")
        failures.append(Failure(uri + "/", SOURCE_UNREADABLE, f"the folder cannot be listed: {error.strerror}"))

    return note


def _uri(file: Path, root: Path) -> str:
    try:
        # Not resolve(): a link is called by its own name.
        return Path(os.path.abspath(file)).relative_to(os.path.abspath(root)).as_posix()  # noqa: PTH100
    except ValueError as error:
        raise IngestRefused(f"{file} does not lie below the base folder {root}") from error


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_source(path: Path) -> bytes:
    """All bytes of a file; refuses one that cannot be read or that is written to meanwhile."""
    try:
        # Opening a pipe would wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise SourceFailed(SOURCE_UNREADABLE, "is not a regular file")
            data = file.read()
            after = os.fstat(descriptor)
    except OSError as error:
        raise SourceFailed(SOURCE_UNREADABLE, error.strerror or str(error)) from error
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(data) != after.st_size:
        raise SourceFailed(SOURCE_CHANGED, "was written to while it was read; run again when its writer has finished")
    return data
