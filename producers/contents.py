"""What stands in a source, read whole and unchanging, and what tells that it has changed."""

import os
from contextlib import closing
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

from producers.errors import SOURCE_CHANGED, SOURCE_UNREADABLE, SourceFailed
from producers.sources import find_sources, open_source
from producers.tables import open_tables


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


def digest_source(path: Path) -> tuple[str, Signature]:
    """The hex sha256 of a file, or of the names and bytes of all JSON files in a folder, and its signature."""
    if not path.is_dir():
        with open_source(path) as opened:
            signature = Signature.of(os.fstat(opened.fileno()))
            return file_digest(opened, "sha256").hexdigest(), signature
    whole = sha256()
    with closing(open_tables()) as tables:
        for file in find_sources([path], suffixes=(".json",), base=path, tables=tables).files:
            whole.update(f"{digest_source(file.path)[0]} {file.uri}\n".encode())
    return whole.hexdigest(), Signature.of(path.stat())


def changed_meanwhile() -> SourceFailed:
    return SourceFailed(SOURCE_CHANGED, "was written to while it was read; run again when its writer has finished")
