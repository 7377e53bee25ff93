"""One source after the other becomes families, which wait in a file until their partition is written.

This runs in processes of its own where there is much to do: what goes in and what comes out can be sent between them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import orjson

from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import family_key, parent_id
from chunksink.chunkbus.signature import Signature
from chunksink.producers.contents import changed_meanwhile, digest_source, read_source
from chunksink.producers.errors import (
    MEANINGS,
    SOURCE_CHANGED,
    SOURCE_EMPTY,
    SOURCE_UNREADABLE,
    WITHOUT_TEXT,
    SourceFailed,
)
from chunksink.producers.families import version_of
from chunksink.producers.kinds import Chunker
from chunksink.producers.markdown.records import SourceVersion
from chunksink.producers.partition import newer
from chunksink.producers.placement import moment_of, source_type_of
from chunksink.producers.produced import Emptied, Item, LeftOut, Making, Produced, RecordReader, Tell
from chunksink.producers.sources import SourceFile
from chunksink.producers.waiting import Beside, Lines, Waiting, row_of

_MOST_NAMED = 1000
"""Of what is left out of one file; all of it is counted."""


@dataclass(frozen=True, slots=True)
class Job(SourceFile):
    """A file to read, by one of two. `standing` is the checksum with which its family stands already, if it does."""

    kind: str
    chunker: Chunker | None
    records: RecordReader | None
    may_grow: bool = False
    standing: str | None = None
    told: str | None = None
    """The checksum of bytes of which it is known what is odd."""


@dataclass(slots=True)
class Read:
    """What a file gave. Without a checksum it could not be read, or changed meanwhile, or may have grown since."""

    uri: str
    checksum: str | None = None
    signature: Signature | None = None
    is_unchanged: bool = False
    beside: Beside | None = None
    families: int = 0
    """How many stand there; likewise those that it empties."""
    emptied: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    failed: str | None = None
    """The code of the first of them."""

    @property
    def is_whole(self) -> bool:
        """Only then does it say something that a family is not in it."""
        return self.checksum is not None and not self.failures

    def leave_out(self, left_out: LeftOut) -> None:
        self.codes[left_out.code] += 1
        self.failures += left_out.is_failure
        if left_out.is_failure and self.failed is None:
            self.failed = left_out.code
        if len(self.left_out) < _MOST_NAMED:
            self.left_out.append(left_out)

    def fail(self, failed: SourceFailed) -> None:
        """Nothing of the file is taken."""
        self.beside, self.families, self.emptied, self.failed = None, 0, 0, None
        self.leave_out(LeftOut(self.uri, None, failed.code, failed.reason))


def read_jobs(jobs: Sequence[Job], making: Making, waiting: Path) -> list[Read]:
    """What each file gives, in order. The lines of their families wait in one file, what they are in one beside it."""
    rows = waiting.with_name(f"{waiting.name}-families")
    with waiting.open("xb") as out, rows.open("xb") as beside:
        return [_read(job, making, out, beside, (waiting, rows)) for job in jobs]


def _read(job: Job, making: Making, out: BinaryIO, beside: BinaryIO, files: tuple[Path, Path]) -> Read:
    read = Read(job.uri)
    start = beside.tell()
    try:
        for item in _document(job, making, read) if job.chunker else _records(job, making, read):
            if isinstance(item, LeftOut):
                read.leave_out(item)
            elif isinstance(item, Emptied):
                beside.write(row_of(item))
                read.emptied += 1
            else:
                beside.write(row_of(_put(item, job, making, read, files[0], out)))
                read.families += 1
        read.beside = Beside(*files, start, beside.tell())
    except SourceFailed as failed:
        if failed.code == SOURCE_CHANGED:
            read.checksum = None
        read.fail(failed)
    return read


def _document(job: Job, making: Making, read: Read) -> Iterator[Item]:
    data, read.signature = read_source(job.location)
    read.checksum = sha256_hex(data)
    read.is_unchanged = read.checksum == job.standing
    if read.is_unchanged and read.checksum == job.told:
        return
    assert job.chunker is not None
    try:
        version, odd = SourceVersion(job.uri, read.checksum, len(data), making.tenant), list[str]()
        records = _cut(job.chunker, data, version, making, odd.append)
        if not read.is_unchanged:
            yield Produced(job.uri, making.tenant, records)
        yield from (LeftOut(job.uri, None, code, MEANINGS[code][0], is_failure=False) for code in odd)
    except SourceFailed as failed:
        if failed.code not in WITHOUT_TEXT:
            raise
        yield LeftOut(job.uri, None, failed.code, failed.reason, is_failure=False)


def _cut(chunker: Chunker, data: bytes, source: SourceVersion, making: Making, tell: Tell) -> list[Record]:
    if not data:  # of its form, too: a PDF of no bytes is none
        raise SourceFailed(SOURCE_EMPTY, "it is empty")
    records = chunker.chunks(data, source, created_at=making.created_at, producer=making.producer, tell=tell)
    if not records:
        raise SourceFailed(SOURCE_EMPTY, "it holds no text")
    return records


def _records(job: Job, making: Making, read: Read) -> Iterator[Item]:
    assert job.records is not None
    try:
        read.checksum, before = digest_source(job.path)
        read.signature = before
        yield from job.records.read(job.path, job.uri, making)
        is_same = Signature.of(job.path.stat()) == before
        if not is_same or job.path.is_dir():  # a folder's times tell nothing of the files in it
            checksum, after = digest_source(job.path)
            is_same = checksum == read.checksum
    except OSError as error:
        raise SourceFailed(SOURCE_UNREADABLE, error.strerror or str(error)) from error
    if not is_same:
        read.checksum = None
        if not job.may_grow or after.inode != before.inode or after.size < before.size:
            raise changed_meanwhile()


def _put(produced: Produced, job: Job, making: Making, read: Read, waiting: Path, out: BinaryIO) -> Waiting:
    records = produced.records
    start = out.tell()
    newest = records[0].get("created_at")
    for record in records:
        newest = newer(newest, record.get("created_at"))
        out.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    return Waiting(
        key=family_key(parent_id(records[0]), produced.tenant),
        name=produced.source_uri,
        document=records[0]["document_id"],
        tenant=produced.tenant,
        version=version_of(records[-1]["provenance"]),
        newest=newest,
        chunks=len(records),
        source_type=source_type_of(records, job.kind),
        moment_ns=moment_of(records, making.created_at, read.signature.mtime_ns if read.signature else 0),
        is_partial=produced.is_partial,
        lines=Lines(waiting, start, out.tell()),
    )


def without_times(lines: Sequence[bytes]) -> list[Record]:
    """Chunks as they would be made again at another time, by another run."""
    records: list[Record] = [orjson.loads(line) for line in lines]
    for record in records:
        record.pop("created_at", None)
        record.pop("producer", None)
        if isinstance(hashes := record.get("hashes"), dict):
            hashes.pop("chunk_object_hash", None)
    return records
