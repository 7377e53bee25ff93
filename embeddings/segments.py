"""Vector segments: immutable files with vectors of one model, which carry a cache from one machine to another.

A segment is an Arrow IPC file. Its name is the sha256 of its bytes, so a repeated write is harmless, and a damaged or
unfinished file is never used. Each row also has the checksum that it has in the cache. `write_segment` writes computed
vectors, `export_segments` those of a cache; `import_segments` adds them to a cache. Memory is bounded by one segment.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from chunksink.chunkbus.errors import ExtraMissing, extra_needed
from chunksink.chunkbus.storage import Entry, Storage
from chunksink.chunkbus.validation import Progress
from chunksink.embeddings.cache import Origin, Row, VectorCache, rows_of_vectors
from chunksink.embeddings.encoder import ModelInfo, Vectors
from chunksink.embeddings.errors import SegmentUnreadable
from chunksink.embeddings.references import TEXT_BYTES, raw_fingerprint
from chunksink.embeddings.rows import COLUMNS, flaw

if TYPE_CHECKING:
    import pyarrow as pa

SEGMENT_ROWS = 50_000
"""Approximate maximum of rows in an exported segment: 80 MB at 384 dimensions."""
_BATCH_ROWS = 5000
_CHECKSUM_BYTES = 16
_MAX_DIMENSION = 2**16
_SUFFIX = ".arrow"
_NAME = re.compile(rf"[0-9a-f]{{64}}{re.escape(_SUFFIX)}")
_VERSION = b"1"


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A segment that is being read."""

    origin: Origin
    dimension: int
    batches: Iterator[list[Row]]
    """Unchecked rows. SegmentUnreadable if a batch cannot be read."""


@dataclass(frozen=True, slots=True)
class BadSegment:
    """A file that was skipped."""

    name: str
    reason: str


@dataclass(slots=True)
class ExportReport:
    """Counts of an export."""

    segments: int = 0
    rows: int = 0
    bytes: int = 0
    written: int = 0
    """Segments that did not exist yet."""
    bad_rows: int = 0
    """Rows of the cache that failed their check; they are left out."""


@dataclass(slots=True)
class ImportReport:
    """Counts of an import."""

    segments: int = 0
    known: int = 0
    """Segments that an earlier import has read; they are skipped."""
    rows: int = 0
    added: int = 0
    """Rows that the cache lacked, or had in lower precision."""
    bad_rows: int = 0
    """Rows that failed their check; they are left out."""
    bad: list[BadSegment] = field(default_factory=list)


def write_segment(
    storage: Storage,
    info: ModelInfo,
    keys: Sequence[bytes],
    vectors: Vectors,
    tokens: Sequence[int] | None = None,
) -> str:
    """Writes vectors of distinct keys, and returns the name of the segment. WrongVectors if a vector is not finite or
    has the wrong dimension."""
    rows = sorted(rows_of_vectors(info, keys, vectors, tokens))
    name, content = _encoded(Origin.of(info), rows, info.dimension)
    storage.write(name, content)
    return name


def export_segments(
    cache: VectorCache,
    storage: Storage,
    fingerprints: Iterable[str],
    progress: Progress | None = None,
    *,
    segment_rows: int = SEGMENT_ROWS,
) -> ExportReport:
    """Writes all vectors of these models. Rows are divided by ranges of their keys, so a second export writes only
    the ranges that have changed."""
    present = {entry.name: entry.size for entry in storage.entries("")}
    report = ExportReport()
    for fingerprint in sorted(fingerprints):
        model = raw_fingerprint(fingerprint)
        origins = _origins(cache, model)
        for low, high in _ranges(cache.count_rows(fingerprint), segment_rows):
            for producer, rows in sorted(_rows_between(cache, model, low, high, progress).items()):
                origin, dimension = origins.get(producer, (None, 0))
                sound = [row for row in rows if origin and flaw(row, dimension) is None]
                report.bad_rows += len(rows) - len(sound)
                rows.clear()
                if origin is None or not sound:
                    continue
                name, content = _encoded(origin, sound, dimension)
                if present.get(name) != len(content):
                    storage.write(name, content)
                    report.written += 1
                report.segments += 1
                report.rows += len(sound)
                report.bytes += len(content)
    return report


def import_segments(
    cache: VectorCache,
    storage: Storage,
    names: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Adds the vectors of these segments, or of all in the storage, to the cache.

    A segment that was imported before is skipped. Every batch of rows is one transaction. A row that fails its check
    is left out, and so is an unusable file. A vector is never replaced by a less precise one.
    """
    report = ImportReport()
    known = _known(cache)
    for name in sorted(segment_names(storage) if names is None else names):
        if name in known:
            report.known += 1
            continue
        try:
            _import(cache, read_segment(storage, name), name, report, progress)
        except SegmentUnreadable as error:
            report.bad.append(BadSegment(name, str(error)))
    return report


def segment_names(storage: Storage) -> list[str]:
    """The files of the storage with the suffix of segments."""
    return sorted(entry.name for entry in storage.entries("") if entry.name.endswith(_SUFFIX))


def imported_segments(cache: VectorCache, storage: Storage) -> list[Entry]:
    """The segments of the storage that this cache has imported. The cache no longer needs the files."""
    known = _known(cache)
    return [entry for entry in storage.entries("") if entry.name in known]


def _known(cache: VectorCache) -> set[str]:
    return {name for (name,) in cache.read("SELECT name FROM segment")}


def read_segment(storage: Storage, name: str) -> Segment:
    """SegmentUnreadable if the file is missing, damaged, too new or not a segment."""
    if _NAME.fullmatch(name) is None:
        raise SegmentUnreadable("not a vector segment: its name is not a digest")
    try:
        content = storage.read(name)
    except FileNotFoundError as error:
        raise SegmentUnreadable("missing") from error
    if hashlib.sha256(content).hexdigest() != name.removesuffix(_SUFFIX):
        raise SegmentUnreadable("damaged or incomplete: its name is not the digest of its content")
    return _decoded(content)


def _import(cache: VectorCache, segment: Segment, name: str, report: ImportReport, progress: Progress | None) -> None:
    rows = 0
    for batch in segment.batches:
        sound = [row for row in batch if flaw(row, segment.dimension) is None]
        report.added += cache.add(segment.origin, sound)
        rows += len(batch)
        report.rows += len(batch)
        report.bad_rows += len(batch) - len(sound)
        if progress:
            progress(len(batch))
    cache.record_segment(name, rows)
    report.segments += 1


def _ranges(rows: int, most: int) -> Iterable[tuple[bytes, bytes]]:
    """Divides the space of text hashes into equal ranges: enough that each has about `most` rows or fewer.

    `rows` is the number of all rows. The number of ranges is a power of two. So a growing cache keeps its ranges until
    their number doubles.
    """
    count = 1
    while count * most < rows:
        count *= 2
    bounds = [(number * 2**32 // count).to_bytes(4, "big") for number in range(count)]
    return pairwise([*bounds, b"\xff" * (TEXT_BYTES + 1)])


def _rows_between(
    cache: VectorCache, model: bytes, low: bytes, high: bytes, progress: Progress | None
) -> dict[int, list[Row]]:
    """The rows between two text hashes in the order of their keys, by producer."""
    by_producer: dict[int, list[Row]] = defaultdict(list)
    select = (
        f"SELECT producer, fingerprint, {COLUMNS} FROM vector "
        "WHERE fingerprint = ? AND text_hash >= ? AND text_hash < ? ORDER BY text_hash, context_hash"
    )
    for batch in cache.scan(select, (model, low, high)):
        for producer, *row in batch:
            by_producer[producer].append(tuple(row))
        if progress:
            progress(len(batch))
    return by_producer


def _origins(cache: VectorCache, model: bytes) -> dict[int, tuple[Origin, int]]:
    """By producer, the origin of its vectors and their dimension. A damaged record is left out."""
    select = (
        "SELECT p.id, m.details, p.details FROM model m JOIN producer p USING (fingerprint) WHERE m.fingerprint = ?"
    )
    origins = {producer: Origin(model.hex(), *details) for producer, *details in cache.read(select, (model,))}
    return {producer: (each, size) for producer, each in origins.items() if (size := _dimension(each))}


def _encoded(origin: Origin, rows: Sequence[Row], dimension: int) -> tuple[str, bytes]:
    """The name and the content of a segment."""
    pa = arrow()
    model = orjson.loads(origin.model)
    model.pop("source", None)  # a place on this machine
    metadata = {
        "chunksink.segment": _VERSION,
        "fingerprint": origin.fingerprint,
        "model": orjson.dumps(model, option=orjson.OPT_SORT_KEYS),
        "producer": origin.producer,
    }
    schema = _schema(pa, dimension)
    file = io.BytesIO()
    with pa.ipc.new_file(file, schema.with_metadata(metadata)) as writer:
        for start in range(0, len(rows), _BATCH_ROWS):
            _, *columns, vectors = zip(*rows[start : start + _BATCH_ROWS], strict=True)
            numbers = pa.array(np.frombuffer(b"".join(vectors), dtype="<f4"))
            arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=False)]
            arrays.append(pa.FixedSizeListArray.from_arrays(numbers, type=schema.field("vector").type))
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    content = file.getvalue()
    return hashlib.sha256(content).hexdigest() + _SUFFIX, content


def _decoded(content: bytes) -> Segment:
    pa = arrow()
    try:
        file = pa.ipc.open_file(pa.BufferReader(content))
        metadata = file.schema.metadata or {}
        if (version := metadata.get(b"chunksink.segment")) is None:
            raise SegmentUnreadable("not a vector segment")
        if version != _VERSION:
            raise SegmentUnreadable("written by a newer chunksink; upgrade chunksink")
        origin = Origin(*(metadata[name].decode() for name in (b"fingerprint", b"model", b"producer")))
        model, dimension = raw_fingerprint(origin.fingerprint), _dimension(origin)
        if dimension is None:
            raise SegmentUnreadable("its description of the model is incomplete")
        if not file.schema.equals(_schema(pa, dimension)):
            raise SegmentUnreadable("its columns are not those of a vector segment")
    except (pa.ArrowException, KeyError, OSError, ValueError) as error:
        raise SegmentUnreadable(f"not a vector segment: {error}") from error
    return Segment(origin, dimension, _batches(pa, file, model))


def _batches(pa: Any, file: Any, model: bytes) -> Iterator[list[Row]]:
    for number in range(file.num_record_batches):
        try:
            batch = file.get_batch(number)
            batch.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise SegmentUnreadable(f"not a vector segment: {error}") from error
        *columns, vectors = batch.columns
        numbers = vectors.flatten().to_numpy().reshape(batch.num_rows, -1)
        yield [
            (model, *values, vector.tobytes())
            for *values, vector in zip(*(column.to_pylist() for column in columns), numbers, strict=True)
        ]


def _dimension(origin: Origin) -> int | None:
    """The dimension of the model; None if the description of the model or its libraries is incomplete or wrong."""
    try:
        details = orjson.loads(origin.model), orjson.loads(origin.producer)
    except ValueError:
        return None
    match details:
        case {"name": str(), "dimension": int(size), "max_length": int() | None}, dict() if 0 < size <= _MAX_DIMENSION:
            return size
    return None


def _schema(pa: Any, dimension: int) -> pa.Schema:
    """Has the columns `COLUMNS`, in that order."""
    types = {
        "text_hash": pa.binary(TEXT_BYTES),
        "context_hash": pa.binary(),
        "precision": pa.uint8(),
        "tokens": pa.uint32(),
        "checksum": pa.binary(_CHECKSUM_BYTES),
        "vector": pa.list_(pa.field("item", pa.float32(), nullable=False), dimension),
    }
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


def arrow() -> Any:
    """The module pyarrow. ExtraMissing if it is not installed."""
    try:
        import pyarrow.ipc
    except ImportError as error:
        raise ExtraMissing(f"vector segments need pyarrow: {extra_needed('cache')}") from error
    return pyarrow
