"""What stands in a source, read whole and unchanging, and what tells that it has changed."""

import os
from contextlib import closing
from hashlib import file_digest, sha256
from pathlib import Path

from chunksink.chunkbus.signature import Signature
from chunksink.producers.errors import SOURCE_CHANGED, SOURCE_UNREADABLE, SourceFailed
from chunksink.producers.find import find_sources
from chunksink.producers.sources import open_source
from chunksink.producers.tables import open_tables


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
        for file in find_sources([path], tables, suffixes=(".json",), root=lambda path: path).files:
            whole.update(f"{digest_source(file.path)[0]} {file.uri}\n".encode())
    return whole.hexdigest(), Signature.of(path.stat())


def changed_meanwhile() -> SourceFailed:
    return SourceFailed(SOURCE_CHANGED, "was written to while it was read; run again when its writer has finished")
