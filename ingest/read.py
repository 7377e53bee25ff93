"""Stage 3: reads changed files into families, whose chunks are spooled to disk until their partition is written.

Results come in the order of the files, with any number of processes. A bad file or family does not affect the others.
An unexpected exception in a format is a bug, and ends the run.
"""

import gc
import os
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.errors import InvalidChunk, NotCanonical
from chunksink.chunkbus.findings import JSON_PARSE
from chunksink.chunkbus.identity import source_name
from chunksink.chunkbus.reader import open_regular
from chunksink.chunkbus.signature import Signature
from chunksink.ingest.codes import CHUNKING_FAILED, SOURCE_CHANGED, SOURCE_UNREADABLE
from chunksink.ingest.errors import NotRead, ReaderKilled, RecordRefused, SourceFailed
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Empty, Family, Notice, Source, summarise
from chunksink.ingest.placement import Placement, newest_moment, source_type_of
from chunksink.ingest.record_fields import to_line
from chunksink.ingest.report import Failure

_BATCH_BYTES = 2 * 2**20
_BATCH_FILES = 64
_IN_FLIGHT = 32
REFUSED = "refused"
"""In a row of a `.families` file: marks a refused family. The row has no columns after it."""
_CHANGED = "was written to while it was read: run again when its writer has finished"
_MAX_REPORTED = 1000
"""How many failures of one file are reported one by one. All are counted."""


@dataclass(frozen=True, slots=True)
class Job:
    """A file to read, unless its content still has this `checksum`. None: read it in any case."""

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
    """The result of reading one file.

    Its chunks are in the file `spool`.chunks. Its families are described in the file `spool`.families, from byte
    `rows[0]` up to `rows[1]`.
    """

    uri: str
    spool: str
    rows: tuple[int, int]
    checksum: str | None = None
    signature: Signature | None = None
    """None if an equal signature in the next run would not prove that the file is unchanged."""
    is_unchanged: bool = False
    families: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    reported: list[Failure] = field(default_factory=list)
    """The first failures."""

    @property
    def is_whole(self) -> bool:
        """Whether the file was read completely. Only then does a missing family mean that the file no longer has it."""
        return self.checksum is not None and self.failures == 0

    def add(self, notice: Notice) -> None:
        self.codes[notice.code] += 1
        if notice.is_failure:
            self.failures += 1
            if len(self.reported) < _MAX_REPORTED:
                self.reported.append(Failure(self.uri, notice.code, notice.reason, notice.line))


def read_all(
    jobs: Iterable[Job], stamp: Stamp, spool: Path, workers: Executor | None, started_ns: int
) -> Generator[Reading, None, None]:
    """Reads every file, in order. `started_ns` is when the run began."""
    batches = ((batch, stamp, str(spool / str(number)), started_ns) for number, batch in enumerate(_batches(jobs)))
    if workers is None:
        for batch in batches:
            yield from _read_batch(*batch)
        return
    pending: deque[Future[list[Reading]]] = deque()
    try:
        for batch in batches:
            pending.append(workers.submit(_read_batch, *batch))
            while pending and (len(pending) >= _IN_FLIGHT or pending[0].done()):
                yield from pending.popleft().result()
        while pending:
            yield from pending.popleft().result()
    except BrokenExecutor as error:
        raise ReaderKilled(
            "a process that reads files was killed, probably for lack of memory; nothing was written. "
            "Run again with --jobs 1, which reads one file at a time"
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


def _read_batch(jobs: Sequence[Job], stamp: Stamp, spool: str, started_ns: int) -> list[Reading]:
    """Reads each file, and writes chunks and families to two files whose names begin with `spool`."""
    with open(f"{spool}.chunks", "xb") as chunks, open(f"{spool}.families", "xb") as rows:  # noqa: PTH123
        readings = [_read(job, stamp, spool, chunks, rows, started_ns) for job in jobs]
    gc.collect(1)  # parsers leave reference cycles
    return readings


def _read(job: Job, stamp: Stamp, spool: str, chunks: BinaryIO, rows: BinaryIO, started_ns: int) -> Reading:
    start = rows.tell()
    checksum = None
    try:
        checksum, before = checksum_of_file(job.path)
        reading = Reading(job.uri, spool, (start, start), checksum, is_unchanged=checksum == job.checksum)
        if not reading.is_unchanged:
            values = stamp.created_at, stamp.producer, stamp.tenant
            source = Source(job.uri, Path(job.path), checksum, before.size, *values)
            for item in job.format.read(source):
                row = item if isinstance(item, Notice) else _row(item, job, stamp, before.mtime_ns, chunks)
                if isinstance(row, Notice):
                    reading.add(row)
                    row = [None, row.family, REFUSED] if row.family else []
                if row:
                    rows.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
                    reading.families += isinstance(item, Family)
        reading.signature = _signature_after(job, before, started_ns)
    except NotRead as failed:
        notice = Notice(failed.code, failed.reason)
    except NotCanonical as error:
        notice = Notice(JSON_PARSE, str(error))
    except InvalidChunk as error:
        notice = Notice(CHUNKING_FAILED, str(error))
    except OSError as error:
        notice = Notice(SOURCE_UNREADABLE, error.strerror or str(error))
    except Exception as error:
        error.add_note(f"The format {job.format.name} was reading {job.path}")
        raise
    else:
        reading.rows = (start, rows.tell())
        return reading
    reading = Reading(job.uri, spool, (start, start), None if notice.code == SOURCE_CHANGED else checksum)
    reading.add(notice)
    return reading


def checksum_of_file(path: str) -> tuple[str, Signature]:
    """The checksum of the current bytes, and the signature. Bytes appended meanwhile are left for the next run."""
    with open_regular(path) as file:
        signature = Signature.of(os.fstat(file.fileno()))
        digest, unread = sha256(), signature.size
        while unread and (block := file.read(min(unread, 2**20))):
            digest.update(block)
            unread -= len(block)
    if unread:
        raise SourceFailed(SOURCE_CHANGED, _CHANGED)
    return digest.hexdigest(), signature


def _signature_after(job: Job, before: Signature, started_ns: int) -> Signature | None:
    """The signature for `Reading.signature`: None if the file was modified too recently, or while it was read.

    Raises SourceFailed if it was modified while it was read, unless its format allows growth (`may_grow`) and the file
    was neither replaced nor shortened.
    """
    after = Signature.of(os.stat(job.path))  # noqa: PTH116
    if after == before:
        return after if after.is_settled(started_ns) else None
    if not job.format.may_grow or after.inode != before.inode or after.size < before.size:
        raise SourceFailed(SOURCE_CHANGED, _CHANGED)
    return None


def _row(item: Family | Empty, job: Job, stamp: Stamp, mtime_ns: int, out: BinaryIO) -> list[Any] | Notice:
    """Writes the chunks of a family to `out`. Returns its line and its columns in the table `draft`; for an empty
    family, None and its key. Returns a notice if a chunk is invalid."""
    if isinstance(item, Empty):
        return [None, item.family]
    start = out.tell()
    for number, record in enumerate(item.chunks, start=1):
        try:
            out.write(to_line(record) + b"\n")
        except RecordRefused as refusal:
            reason = f"chunk {number} of {source_name(record) or job.uri}: {refusal.reason}"
            return Notice(refusal.code, reason, item.line)
    summary = summarise(item.chunks)
    moment_ns = newest_moment(item.chunks, stamp.created_at, mtime_ns)
    source_type = source_type_of(item.chunks, job.format.source_type)
    partition = stamp.placement.key_of(summary.family, source_type, moment_ns)
    return [item.line, *summary, partition, item.is_partial, start, out.tell()]


def rows_of(reading: Reading) -> Iterator[list[Any]]:
    """The rows of a reading, as `_read` wrote them."""
    with open(f"{reading.spool}.families", "rb") as file:  # noqa: PTH123
        file.seek(reading.rows[0])
        while file.tell() < reading.rows[1]:
            yield orjson.loads(file.readline())
