"""What a cache can tell about itself: counts by model, single vectors, lengths of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from embeddings.cache import VectorCache
from embeddings.encoder import Precision, Vectors
from embeddings.references import EmbeddingRef, parse_ref, raw_fingerprint, raw_hash
from embeddings.rows import PRECISIONS, flaw, unpack


@dataclass(frozen=True, slots=True)
class ModelStats:
    """What the cache holds of one model."""

    fingerprint: str
    name: str
    """Empty where only rows are left of it (after a salvage, until the model is used again)."""
    dimension: int | None
    max_length: int | None
    length_unit: str
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


def stats(cache: VectorCache) -> CacheStats:
    """Counts and sizes, by model."""
    described = {
        key: (name, dimension, max_length, orjson.loads(details).get("length_unit", "tokens"))
        for key, name, dimension, max_length, details in cache.read(
            "SELECT fingerprint, name, dimension, max_length, details FROM model"
        )
    }
    keys = {key for (key,) in cache.read("SELECT DISTINCT fingerprint FROM vector")} | described.keys()
    models = tuple(
        _stats_of(cache, key, *described.get(key, ("", None, None, "tokens")))
        for key in sorted(key for key in keys if isinstance(key, bytes))
    )
    (free_pages,), (page_size,) = cache.read("PRAGMA freelist_count")[0], cache.read("PRAGMA page_size")[0]
    return CacheStats(
        path=str(cache.path),
        file_bytes=sum(_size(Path(f"{cache.path}{suffix}")) for suffix in ("", "-wal")),
        free_bytes=free_pages * page_size,
        rows=sum(model.rows for model in models),
        models=models,
    )


def _stats_of(
    cache: VectorCache, key: bytes, name: str, dimension: int | None, max_length: int | None, length_unit: str
) -> ModelStats:
    counts = cache.read(
        "SELECT precision, count(*), sum(length(vector)), sum(tokens > ?) FROM vector "
        "WHERE fingerprint = ? GROUP BY precision",
        (max_length if max_length is not None else 2**32, key),
    )
    producers = cache.read("SELECT details FROM producer WHERE fingerprint = ? ORDER BY id", (key,))
    return ModelStats(
        fingerprint=key.hex(),
        name=name,
        dimension=dimension,
        max_length=max_length,
        length_unit=length_unit,
        rows=sum(rows for _, rows, _, _ in counts),
        rows_by_precision={PRECISIONS[code]: rows for code, rows, _, _ in counts if code in PRECISIONS},
        vector_bytes=sum(size for _, _, size, _ in counts),
        long_texts=sum(long for _, _, _, long in counts),
        producers=tuple(orjson.loads(details) for (details,) in producers),
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


def lengths(cache: VectorCache, fingerprint: str, text_hashes: Sequence[bytes]) -> dict[bytes, int]:
    """Length of each of these texts that the model has embedded, before any cut. Ask for up to a thousand."""
    marks = ",".join("?" * len(text_hashes))
    return dict(
        cache.read(
            f"SELECT text_hash, tokens FROM vector WHERE fingerprint = ? AND text_hash IN ({marks})",
            (raw_fingerprint(fingerprint), *text_hashes),
        )
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
