"""What a cache can tell about itself, and how it is kept small and sound. Library calls; no command uses them yet.

Long scans ask page by page, so that no read transaction stays open and the writer's log stays short.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from embeddings.cache import VectorCache
from embeddings.encoder import Precision, Vectors
from embeddings.errors import CacheDamaged
from embeddings.references import EmbeddingRef, TextHash, embedding_ref, parse_ref, raw_fingerprint, raw_hash
from embeddings.rows import PRECISIONS, flaw, unpack
from embeddings.salvage import SalvageReport

_SCAN_ROWS = 2000
_DELETE_ROWS = 5000

Progress = Callable[[int, int], None]
"""Called with rows done and rows in all."""


@dataclass(frozen=True, slots=True)
class ModelStats:
    """What the cache holds of one model."""

    fingerprint: str
    name: str
    """Empty where only rows are left of it (after a salvage, until the model is used again)."""
    dimension: int | None
    rows: int
    rows_by_precision: dict[Precision, int]
    vector_bytes: int
    long_texts: int
    """Texts longer than the model's maximum."""
    producers: tuple[dict[str, Any], ...]
    """Library versions and devices that computed rows."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What the cache holds."""

    path: str
    file_bytes: int
    """The write-ahead log included."""
    free_bytes: int
    rows: int
    models: tuple[ModelStats, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CachedVector:
    """One cached vector and all that is recorded about it."""

    ref: EmbeddingRef
    model: str
    precision: Precision
    dimension: int
    tokens: int
    """Length of the text before any cut; 0 where it is not known."""
    norm: float
    producer: dict[str, Any]
    vector: Vectors = field(repr=False)


@dataclass(frozen=True, slots=True)
class GcReport:
    """What `gc` dropped, or would drop."""

    rows: int
    vector_bytes: int
    rows_by_model: dict[str, int]
    """By fingerprint."""
    kept_rows: int
    dry_run: bool


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that failed its check."""

    ref: str
    reason: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `verify` found."""

    rows: int
    bad: tuple[BadRow, ...]
    damage: tuple[str, ...]
    """What SQLite says about the file itself; empty when it is sound."""
    dropped: int
    salvaged: SalvageReport | None = None

    @property
    def is_sound(self) -> bool:
        return not self.bad and not self.damage


def stats(cache: VectorCache) -> CacheStats:
    """Counts and sizes, by model."""
    described = {
        key: (name, dimension, max_length)
        for key, name, dimension, max_length in cache.read("SELECT fingerprint, name, dimension, max_length FROM model")
    }
    models = []
    keys = {key for (key,) in cache.read("SELECT DISTINCT fingerprint FROM vector")} | described.keys()
    for key in sorted(key for key in keys if isinstance(key, bytes)):
        name, dimension, max_length = described.get(key, ("", None, None))
        counts = cache.read(
            "SELECT precision, count(*), sum(length(vector)), sum(tokens > ?) FROM vector "
            "WHERE fingerprint = ? GROUP BY precision",
            (max_length if max_length is not None else 2**32, key),
        )
        models.append(
            ModelStats(
                fingerprint=key.hex(),
                name=name,
                dimension=dimension,
                rows=sum(rows for _, rows, _, _ in counts),
                rows_by_precision={PRECISIONS[code]: rows for code, rows, _, _ in counts if code in PRECISIONS},
                vector_bytes=sum(size for _, _, size, _ in counts),
                long_texts=sum(long for _, _, _, long in counts),
                producers=tuple(
                    orjson.loads(details)
                    for (details,) in cache.read(
                        "SELECT details FROM producer WHERE fingerprint = ? ORDER BY id", (key,)
                    )
                ),
            )
        )
    (free_pages,), (page_size,) = cache.read("PRAGMA freelist_count")[0], cache.read("PRAGMA page_size")[0]
    return CacheStats(
        path=str(cache.path),
        file_bytes=sum(_size(Path(f"{cache.path}{suffix}")) for suffix in ("", "-wal")),
        free_bytes=free_pages * page_size,
        rows=sum(model.rows for model in models),
        models=tuple(models),
    )


def show(cache: VectorCache, ref: str | EmbeddingRef) -> CachedVector | None:
    """The vector that an `embedding_ref` points to; None when it is not cached or fails its check."""
    pointer = parse_ref(ref) if isinstance(ref, str) else ref
    key, text_hash = raw_fingerprint(pointer.fingerprint), raw_hash(pointer.text_hash)
    rows = cache.read(
        "SELECT v.precision, v.tokens, v.checksum, v.vector, m.name, p.details FROM vector v "
        "LEFT JOIN model m ON m.fingerprint = v.fingerprint LEFT JOIN producer p ON p.id = v.producer "
        "WHERE v.fingerprint = ? AND v.text_hash = ?",
        (key, text_hash),
    )
    if not rows:
        return None
    precision, tokens, digest, blob, name, producer = rows[0]
    if flaw((key, text_hash, precision, tokens, digest, blob)) is not None:
        return None
    vector = unpack(blob)
    return CachedVector(
        ref=pointer,
        model=name or "",
        precision=PRECISIONS[precision],
        dimension=len(vector),
        tokens=tokens,
        norm=float(np.linalg.norm(vector)),
        producer=orjson.loads(producer) if producer else {},
        vector=vector,
    )


def long_texts(cache: VectorCache, fingerprint: str, max_length: int) -> Iterator[tuple[str, int]]:
    """Text hash (hex) and length of every cached text that is longer than the model's maximum."""
    for page in scan(
        cache,
        "SELECT id, text_hash, tokens FROM vector WHERE id > ? AND fingerprint = ? AND tokens > ?",
        (raw_fingerprint(fingerprint), max_length),
    ):
        for _, text_hash, tokens in page:
            yield text_hash.hex(), tokens


def verify(cache: VectorCache, *, repair: bool = False, progress: Progress | None = None) -> VerifyReport:
    """Checks every row and the file. `repair` drops bad rows and salvages a damaged file.

    What is dropped will be computed again when it is needed.
    """
    damage: tuple[str, ...] = ()
    bad: list[BadRow] = []
    ids: list[int] = []
    rows = 0
    try:
        damage = tuple(line for (line,) in cache.read("PRAGMA integrity_check(20)") if line != "ok")
        total = cache.read("SELECT count(*) FROM vector")[0][0]
        for page in scan(
            cache,
            "SELECT id, fingerprint, text_hash, precision, tokens, checksum, vector FROM vector WHERE id > ?",
        ):
            rows += len(page)
            for number, *values in page:
                reason = flaw(tuple(values))
                if reason is not None:
                    bad.append(BadRow(_ref_of(values[0], values[1]), reason))
                    ids.append(number)
            if progress:
                progress(rows, total)
    except CacheDamaged as exc:
        damage += (str(exc),)
    dropped, salvaged = 0, None
    if repair and damage:
        salvaged = cache.salvage(damage[0])
    elif repair and ids:
        with cache.transaction() as connection:
            connection.executemany("DELETE FROM vector WHERE id = ?", ((number,) for number in ids))
        dropped = len(ids)
    return VerifyReport(rows, tuple(bad), damage, dropped, salvaged)


def gc(
    cache: VectorCache,
    *,
    text_hashes: Iterable[TextHash],
    fingerprints: Iterable[str],
    dry_run: bool = False,
    progress: Progress | None = None,
) -> GcReport:
    """Drops what no current chunk refers to: other text hashes than these, and other models than these.

    `fingerprints` are those of the live, previous and unfinished builds. Rows that are written while this runs
    are kept. Call it with `dry_run` first to learn how much it will drop.
    """
    keep_models = {raw_fingerprint(fingerprint) for fingerprint in fingerprints}
    (newest,) = cache.read("SELECT coalesce(max(id), 0) FROM vector")[0]
    drop = array("q")
    with cache.temporary(raw_hash(each) for each in text_hashes) as table:
        size = kept = seen = 0
        by_model: dict[str, int] = {}
        for page in scan(
            cache,
            f"SELECT id, fingerprint, length(vector), text_hash IN (SELECT text_hash FROM {table}) "
            "FROM vector WHERE id > ? AND id <= ?",
            (newest,),
        ):
            seen += len(page)
            for number, fingerprint, length, referred in page:
                if referred and fingerprint in keep_models:
                    kept += 1
                    continue
                drop.append(number)
                size += length
                name = fingerprint.hex() if isinstance(fingerprint, bytes) else "?"
                by_model[name] = by_model.get(name, 0) + 1
            if progress:
                progress(seen, newest)
    if not dry_run:
        _drop(cache, drop)
    return GcReport(len(drop), size, by_model, kept, dry_run)


def _drop(cache: VectorCache, ids: Sequence[int]) -> None:
    for start in range(0, len(ids), _DELETE_ROWS):
        with cache.transaction() as connection:
            connection.executemany(
                "DELETE FROM vector WHERE id = ?", ((number,) for number in ids[start : start + _DELETE_ROWS])
            )
    with cache.transaction() as connection:
        connection.execute("DELETE FROM producer WHERE fingerprint NOT IN (SELECT DISTINCT fingerprint FROM vector)")
        connection.execute("DELETE FROM model WHERE fingerprint NOT IN (SELECT DISTINCT fingerprint FROM vector)")
    cache.shrink()


def scan(cache: VectorCache, sql: str, parameters: tuple[object, ...] = ()) -> Iterator[list[tuple[Any, ...]]]:
    """A long scan in short reads. The query's first column is the id; its first parameter is where to go on."""
    last = -(2**63)
    while page := cache.read(f"{sql} ORDER BY id LIMIT {_SCAN_ROWS}", (last, *parameters)):
        yield page
        last = page[-1][0]


def _ref_of(fingerprint: object, text_hash: object) -> str:
    if isinstance(fingerprint, bytes) and isinstance(text_hash, bytes) and len(fingerprint) == len(text_hash) == 32:
        return str(embedding_ref(fingerprint.hex(), text_hash))
    return "cache:unreadable key"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
