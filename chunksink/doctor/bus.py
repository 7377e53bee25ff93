"""A quick look at the chunks: whether each partition has its files, and whether their ends are there."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from chunksink.doctor.check import Check

if TYPE_CHECKING:
    from chunksink.chunkbus.layout import BusRoot

_NAMED = 3
_VALIDATE = "`chunksink validate` reads every line"


def chunks(path: Path) -> Check:
    from chunksink.chunkbus.errors import NotABusRoot
    from chunksink.chunkbus.layout import BusRoot

    try:
        root = BusRoot(path).require()
    except NotABusRoot as error:
        return Check("chunks", "fail", str(error), "`chunksink ingest` makes chunks, --chunks names their folder")
    keys = root.partition_keys()
    told = f"{root.path}: partitions {len(keys):,}"
    if not keys:
        return Check("chunks", "warn", told, "`chunksink ingest` makes one")
    flaws = [f"{key} ({flaw})" for key in keys if (flaw := _flaw(root, key))]
    if flaws:
        told = f"{told}, {len(flaws):,} of them not whole: {_some(flaws)}"
        return Check("chunks", "fail", told, f"write them again, or bring their files back; {_VALIDATE}")
    return Check("chunks", "ok", f"{told}, their files are there; that is a quick look, {_VALIDATE}")


def missing(path: Path, home: Path) -> Iterator[Check]:
    """Partitions that the index was made from and that are not there any more."""
    from chunksink.chunkbus.errors import ChunkBusError
    from chunksink.chunkbus.layout import BusRoot
    from chunksink.rebuild.catalog import known_partitions
    from chunksink.rebuild.errors import NoGeneration
    from chunksink.rebuild.state import State

    try:
        with State.existing(home) as state:
            gone = sorted(set(known_partitions(state.db)).difference(BusRoot(path).require().partition_keys()))
    except (ChunkBusError, NoGeneration, OSError):
        return  # told by the checks before and after this one
    if gone:
        remedy = "bring them back, or give each one up with `chunksink retire-partition KEY`"
        yield Check("partitions", "fail", f"missing: {_some(gone)}", remedy)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _flaw(root: "BusRoot", key: str) -> str | None:
    """What is seen to be wrong with a partition without reading it."""
    from chunksink.chunkbus.errors import InvalidManifest
    from chunksink.chunkbus.manifest import decode_manifest
    from chunksink.chunkbus.reader import open_partition

    try:
        file, manifest = open_partition(root, key)
    except FileNotFoundError:
        return "its chunks file is missing"
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    with file:
        if manifest is None:
            return "its manifest is missing"
        try:
            emitted = decode_manifest(manifest).counts.chunks_emitted
        except InvalidManifest as error:
            return f"its manifest cannot be read: {error}"
        size = os.fstat(file.fileno()).st_size
        if (size > 0) != (emitted > 0):
            return f"its manifest says {emitted:,} chunks, its chunks file has {size:,} bytes"
        return None if _ends_well(file, size) else "its last line is cut off"


def _ends_well(file: BinaryIO, size: int) -> bool:
    """The last line break may be left out; then its line must be whole."""
    import orjson

    from chunksink.chunkbus.examine import MAX_LINE_BYTES

    file.seek(max(0, size - 1))
    if file.read() in (b"", b"\n"):
        return True
    file.seek(max(0, size - MAX_LINE_BYTES))
    try:
        orjson.loads(file.read().rpartition(b"\n")[2])
    except orjson.JSONDecodeError:
        return False
    return True
