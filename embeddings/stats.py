"""Describes a cache: counts by model, single vectors, lengths of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import orjson

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Precision, Vectors
from chunksink.embeddings.references import parse_ref, raw_fingerprint, split_key
from chunksink.embeddings.rows import PRECISIONS, flaw

# LIMIT -1 limits nothing, but it keeps SQLite from merging the inner query into the outer one. Merged, it would sort
# rows with whole vectors.
_COUNTS = f"""
SELECT lower(hex(v.fingerprint)), v.precision, count(*), coalesce(sum(v.size), 0),
    coalesce(sum(v.tokens > m.max_length), 0)
FROM (SELECT fingerprint, precision, tokens, length(vector) AS size FROM vector LIMIT -1) v
LEFT JOIN model m USING (fingerprint)
WHERE v.precision IN ({", ".join(map(str, PRECISIONS))}) AND length(v.fingerprint) = 32
GROUP BY 1, 2 ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class ModelStats:
    """The cached vectors of one model, counted."""

    fingerprint: str
    name: str
    """Empty if the cache has no record of the model."""
    dimension: int | None
    max_length: int | None
    length_unit: str
    rows: int
    rows_by_precision: dict[Precision, int]
    vector_bytes: int
    long_texts: int
    """Texts longer than the model's maximum."""
    producers: tuple[dict[str, Any], ...]
    """Library versions and devices that computed vectors."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The content of a cache, counted."""

    path: str
    file_bytes: int
    """Includes pages that are still in the write-ahead log."""
    rows: int
    models: tuple[ModelStats, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CachedVector:
    """One cached vector and everything recorded about it."""

    ref: str
    model: str
    precision: Precision
    dimension: int
    tokens: int
    """As in `EncodedBatch.lengths`; characters for an endpoint."""
    norm: float
    producer: dict[str, Any]
    vector: Vectors = field(repr=False)


def stats(cache: VectorCache) -> CacheStats:
    """Counts and sizes, by model. Reads the whole table, but no vector."""
    counted = cache.read(_COUNTS)
    [(file_bytes,)] = cache.read("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
    models = tuple(_model_stats(cache, key, list(rows)) for key, rows in groupby(counted, itemgetter(0)))
    return CacheStats(str(cache.path), file_bytes, sum(model.rows for model in models), models)


def _model_stats(cache: VectorCache, key: str, counted: list[tuple[Any, ...]]) -> ModelStats:
    name, dimension, max_length, unit = _described(cache, key)
    producers = cache.read("SELECT details FROM producer WHERE fingerprint = ? ORDER BY id", (bytes.fromhex(key),))
    _, codes, rows, sizes, long_texts = zip(*counted, strict=True)
    return ModelStats(
        fingerprint=key,
        name=name,
        dimension=dimension,
        max_length=max_length,
        length_unit=unit,
        rows=sum(rows),
        rows_by_precision={PRECISIONS[code]: number for code, number in zip(codes, rows, strict=True)},
        vector_bytes=sum(sizes),
        long_texts=sum(long_texts),
        producers=tuple(_details(details) for (details,) in producers),
    )


def model_names(cache: VectorCache) -> dict[str, str]:
    """The name of each model that the cache has a record of, by fingerprint."""
    return dict(cache.read("SELECT lower(hex(fingerprint)), CAST(name AS TEXT) FROM model"))


def model_limits(cache: VectorCache, fingerprint: str) -> tuple[int, str] | None:
    """The maximum length of a model, and its unit; None if unknown."""
    _, _, max_length, unit = _described(cache, fingerprint)
    return None if max_length is None else (max_length, unit)


def show(cache: VectorCache, ref: str) -> CachedVector | None:
    """The vector that an `embedding_ref` points to; None if it is not cached or fails its check."""
    model, raw_key = parse_ref(ref)
    key = split_key(raw_key)
    rows = cache.read(
        "SELECT v.precision, v.tokens, v.checksum, v.vector, coalesce(CAST(m.name AS TEXT), ''), p.details "
        "FROM vector v LEFT JOIN model m ON m.fingerprint = v.fingerprint LEFT JOIN producer p ON p.id = v.producer "
        "WHERE v.fingerprint = ? AND v.text_hash = ? AND v.context_hash = ?",
        (model, *key),
    )
    if not rows:
        return None
    precision, tokens, digest, blob, name, producer = rows[0]
    if flaw((model, *key, precision, tokens, digest, blob)) is not None:
        return None
    vector = np.frombuffer(blob, dtype="<f4")
    return CachedVector(
        ref=ref,
        model=name,
        precision=PRECISIONS[precision],
        dimension=len(vector),
        tokens=tokens,
        norm=float(np.linalg.norm(vector)),
        producer=_details(producer),
        vector=vector,
    )


def lengths(cache: VectorCache, fingerprint: str, keys: Sequence[bytes]) -> dict[bytes, int]:
    """Lengths before any cut, for texts that the model has embedded. Skips rows that fail their check. Takes up to a
    thousand keys."""
    model = raw_fingerprint(fingerprint)
    rows = (row for _, *row in cache.rows(model, keys) if flaw((model, *row)) is None)
    return {text_hash + context_hash: tokens for text_hash, context_hash, _, tokens, *_ in rows}


def _described(cache: VectorCache, fingerprint: str) -> tuple[str, int | None, int | None, str]:
    """The recorded name, dimension, maximum length and its unit. Only for display, since no checksum covers them."""
    rows = cache.read(
        "SELECT CAST(name AS TEXT), CAST(dimension AS INTEGER), CAST(max_length AS INTEGER), details FROM model "
        "WHERE fingerprint = ?",
        (raw_fingerprint(fingerprint),),
    )
    if not rows:
        return "", None, None, "tokens"
    name, dimension, max_length, details = rows[0]
    return name, dimension or None, max_length or None, _details(details).get("length_unit", "tokens")


def _details(raw: object) -> dict[str, Any]:
    """Recorded details; empty if they cannot be read."""
    try:
        details = orjson.loads(raw)  # type: ignore[arg-type]  # other types raise ValueError, too
    except ValueError:
        return {}
    return details if isinstance(details, dict) else {}
