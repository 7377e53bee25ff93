"""Stage 3: reads changed files into families, whose chunks are spooled to disk until their partition is written.

Results come in the order of the files, with any number of processes. A bad file does not affect the others.
"""

import gc
import os
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.signature import Signature
from chunksink.ingest.codes import SOURCE_CHANGED, SOURCE_UNREADABLE
from chunksink.ingest.errors import IngestRefused, SourceFailed
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Empty, Family, Notice, Source, describe
from chunksink.ingest.placement import Placement, newest_moment, source_type_of

_BATCH_BYTES = 2 * 2**20
_BATCH_FILES = 64
_IN_FLIGHT = 32
_CHANGED = "was written to while it was read: run again when its writer has finished"
_MOST_NAMED = 1000
"""Failures of one file that are reported one by one; all are counted."""


@dataclass(frozen=True, slots=True)
class Job:
    """A file to read. `checksum` is from its last reading; None if it must be read even with the same bytes."""

    uri: str
    path: str
    format: Format
    size: int
    checksum: str | None


@dataclass(frozen=True, slots=True)
class Stamp:
    """The values that a run puts into its chunks, and the rule for their partitions."""

    created_at: str
    producer: Record
    tenant: str | None
    placement: Placement


@dataclass(slots=True)
class Reading:
    """The families of one file. `spool`.chunks has their chunks, `spool`.families their rows, at the bytes `rows`."""

    uri: str
    spool: str
    rows: tuple[int, int]
    checksum: str | None = None
    signature: tuple[int, int, int, int] | None = None
    """None if a later change could leave the same signature."""
    is_unchanged: bool = False
    families: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    first_failure: str | None = None
    named: list[Notice] = field(default_factory=list)
    moment_ns: int = 0

    @property
    def is_whole(self) -> bool:
        """Only a file that was read completely proves that it no longer contains a family."""
        return self.checksum is not None and self.failures == 0

    def add(self, notice: Notice) -> None:
        self.codes[notice.code] += 1
        if notice.is_failure:
            self.failures += 1
            self.first_failure = self.first_failure or notice.code
            if len(self.named) < _MOST_NAMED:
                self.named.append(notice)


def read_all(
    jobs: Iterable[Job], stamp: Stamp, spool: Path, workers: Executor | None, noted_ns: int
) -> Generator[Reading, None, None]:
    """Every file, in order. `noted_ns` is when the run began."""
    batches = ((batch, stamp, str(spool / str(number)), noted_ns) for number, batch in enumerate(_batches(jobs)))
    if workers is None:
        for batch in batches:
            yield from read_batch(*batch)
        return
    pending: deque[Future[list[Reading]]] = deque()
    try:
        for batch in batches:
            pending.append(workers.submit(_read_apart, *batch))
            while pending and (len(pending) >= _IN_FLIGHT or pending[0].done()):
                yield from pending.popleft().result()
        while pending:
            yield from pending.popleft().result()
    except BrokenExecutor as error:
        raise IngestRefused(
            "a process that reads files was killed, probably for lack of memory; nothing was written. "
            "Run again with --jobs 1, which reads one file after the other"
        ) from error


def _batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += job.size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_apart(jobs: Sequence[Job], stamp: Stamp, spool: str, noted_ns: int) -> list[Reading]:
    """Reads in a worker process. Parsers leave reference cycles, so each batch ends with a collection."""
    readings = read_batch(jobs, stamp, spool, noted_ns)
    gc.collect(1)
    return readings


def read_batch(jobs: Sequence[Job], stamp: Stamp, spool: str, noted_ns: int) -> list[Reading]:
    """Reads each file, and writes chunks and families to two files whose names begin with `spool`."""
    with open(f"{spool}.chunks", "xb") as chunks, open(f"{spool}.families", "xb") as rows:  # noqa: PTH123
        return [_read(job, stamp, spool, chunks, rows, noted_ns) for job in jobs]


def _read(job: Job, stamp: Stamp, spool: str, chunks: BinaryIO, rows: BinaryIO, noted_ns: int) -> Reading:
    start = rows.tell()
    reading = Reading(job.uri, spool, (start, start))
    try:
        before = _digest(job, reading)
        if not reading.is_unchanged:
            assert reading.checksum is not None
            source = Source(
                job.uri, Path(job.path), reading.checksum, before.size, stamp.created_at, stamp.producer, stamp.tenant
            )
            for item in job.format.read(source):
                if isinstance(item, Notice):
                    reading.add(item)
                else:
                    rows.write(orjson.dumps(_row(item, job, stamp, reading, chunks), option=orjson.OPT_APPEND_NEWLINE))
        _check_after(job, before, reading, noted_ns)
    except SourceFailed as failed:
        notice = Notice(failed.code, failed.reason)
    except OSError as error:
        notice = Notice(SOURCE_UNREADABLE, error.strerror or str(error))
    else:
        reading.rows = (start, rows.tell())
        return reading
    checksum = None if notice.code == SOURCE_CHANGED else reading.checksum
    failed_reading = Reading(job.uri, spool, (start, start), checksum)
    failed_reading.add(notice)
    return failed_reading


def open_source(path: str) -> BinaryIO:
    """Opens a regular file; a pipe or a device, which could block or never end, fails."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    if not S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise SourceFailed(SOURCE_UNREADABLE, "is not a regular file")
    return file


def _digest(job: Job, reading: Reading) -> Signature:
    """The checksum of the current bytes; bytes appended later are read by the next run."""
    with open_source(job.path) as file:
        signature = Signature.of(os.fstat(file.fileno()))
        digest, unread = sha256(), signature.size
        while unread and (block := file.read(min(unread, 2**20))):
            digest.update(block)
            unread -= len(block)
    if unread:
        raise SourceFailed(SOURCE_CHANGED, _CHANGED)
    reading.checksum, reading.moment_ns = digest.hexdigest(), signature.mtime_ns
    reading.is_unchanged = reading.checksum == job.checksum
    return signature


def _check_after(job: Job, before: Signature, reading: Reading, noted_ns: int) -> None:
    after = Signature.of(os.stat(job.path))  # noqa: PTH116
    if after == before:
        reading.signature = before.numbers() if before.is_settled(noted_ns) else None
    elif not job.format.may_grow or after.inode != before.inode or after.size < before.size:
        raise SourceFailed(SOURCE_CHANGED, _CHANGED)


def _row(item: Family | Empty, job: Job, stamp: Stamp, reading: Reading, out: BinaryIO) -> list[Any]:
    """The row about a family for the main process; only the key if it is empty."""
    if isinstance(item, Empty):
        return [item.family]
    start, about = out.tell(), describe(item.chunks)
    for record in item.chunks:
        out.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    moment_ns = newest_moment(item.chunks, stamp.created_at, reading.moment_ns)
    source_type = source_type_of(item.chunks, job.format.source_type)
    partition = stamp.placement.key_of(about.family, source_type, moment_ns)
    reading.families += 1
    return [*about, partition, item.is_partial, start, out.tell()]


def rows_of(reading: Reading) -> Iterator[list[Any]]:
    """The rows of a reading, as `_row` made them."""
    with open(f"{reading.spool}.families", "rb") as file:  # noqa: PTH123
        file.seek(reading.rows[0])
        while file.tell() < reading.rows[1]:
            yield orjson.loads(file.readline())
