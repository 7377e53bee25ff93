"""Files to read: what they are called, where they lie, and how they are opened. Never writes there."""

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from chunksink.producers.errors import SOURCE_UNREADABLE, SourceFailed

LINK_TO_NOTHING = "is a link to nothing; remove it, or bring back what it leads to"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file and the `source_uri` that its chunks carry: its path below the root, parted by `/`."""

    uri: str
    location: str

    @property
    def path(self) -> Path:
        """Made anew each time: it is several times as large, and slow to make."""
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

    @property
    def is_folder(self) -> bool:
        """And no file that was named alone."""
        return self.prefix[-1:] in ("", "/")

    def names(self, uri: str) -> bool:
        """Whether a source is called so that was read here: from below the folder, or the file itself."""
        return uri == self.prefix or (self.is_folder and uri.startswith(self.prefix))


@dataclass(frozen=True)
class Former:
    """A folder or file that was read by another name than it has now."""

    place: Scope
    name: str

    def name_now(self, uri: str) -> str | None:
        """What a source that was read there is called now; None of one that was not."""
        if not self.place.is_folder:
            return self.name if uri == self.place.prefix else None
        below = uri.removeprefix(self.place.prefix)
        return f"{self.name}/{below}" if uri.startswith(self.place.prefix) else None


@dataclass(frozen=True)
class Found:
    """What lies below the named paths, sorted by `uri`. `left_out` is told and is no failure."""

    files: Iterable[SourceFile]
    failures: tuple[Failure, ...]
    scopes: tuple[Scope, ...]
    left_out: tuple[Failure, ...]
    again: Iterable[str]
    """Names that files would also have by a later path."""
    outputs: tuple[str, ...]
    """What the names below the folders begin with to which this run writes, and which it left out."""
    other_kinds: Mapping[str, int]
    """How many files have other suffixes, by suffix."""


def is_link_to_nothing(path: Path | str) -> bool:
    return os.path.islink(path) and not os.path.exists(path)  # noqa: PTH110, PTH114 (there are many)


def open_source(path: Path | str) -> BufferedReader:
    """For reading; a pipe or a device, which could block or never end, is refused."""
    try:  # opening a pipe would wait for its other end
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    except FileNotFoundError:
        if is_link_to_nothing(path):
            raise SourceFailed(SOURCE_UNREADABLE, LINK_TO_NOTHING) from None
        raise
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise SourceFailed(SOURCE_UNREADABLE, "is not a regular file")
    return file


def size_of(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0  # whoever reads it says why it cannot be read
