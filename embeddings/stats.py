"""What a cache can tell about itself: counts by model, single vectors, lengths of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Precision, Vectors
from chunksink.embeddings.references import EmbeddingRef, parse_ref, raw_fingerprint, raw_hash
from chunksink.embeddings.rows import PRECISIONS, flaw, unpack


@dataclass(frozen=True, slots=True)
class ModelStats:
    """What the cache holds of one model."""

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
    """Counts and sizes, by model. Reads the whole table, in its order."""
    described = {
        key: _Described(_text(name), _number(dimension), _number(max_length), _unit(details))
        for key, name, dimension, max_length, details in cache.read(
            "SELECT fingerprint, name, dimension, max_length, details FROM model"
        )
    }
    counts: dict[bytes, _Count] = {key: _Count() for key in described if isinstance(key, bytes)}
    rows = 0
    for page in cache.scan("SELECT id, fingerprint, precision, tokens, length(vector) FROM vector WHERE id > ?"):
        rows += len(page)
        for _, key, code, tokens, size in page:
            if not isinstance(key, bytes):
                continue
            if (count := counts.get(key)) is None:
                count = counts[key] = _Count()
            most = described[key].max_length if key in described else None
            count.rows += 1
            count.by_code[code] += 1
            count.vector_bytes += size or 0
            count.long_texts += most is not None and isinstance(tokens, int) and tokens > most
    (free_pages,), (page_size,) = cache.read("PRAGMA freelist_count")[0], cache.read("PRAGMA page_size")[0]
    return CacheStats(
        path=str(cache.path),
        file_bytes=sum(_size(Path(f"{cache.path}{suffix}")) for suffix in ("", "-wal")),
        free_bytes=free_pages * page_size,
        rows=rows,
        models=tuple(
            _model_stats(cache, key, described.get(key, _Described()), count) for key, count in sorted(counts.items())
        ),
    )


@dataclass(frozen=True, slots=True)
class _Described:
    name: str = ""
    dimension: int | None = None
    max_length: int | None = None
    length_unit: str = "tokens"


@dataclass(slots=True)
class _Count:
    rows: int = 0
    by_code: Counter[object] = field(default_factory=Counter)
    vector_bytes: int = 0
    long_texts: int = 0


def _model_stats(cache: VectorCache, key: bytes, model: _Described, count: _Count) -> ModelStats:
    producers = cache.read("SELECT details FROM producer WHERE fingerprint = ? ORDER BY id", (key,))
    return ModelStats(
        fingerprint=key.hex(),
        name=model.name,
        dimension=model.dimension,
        max_length=model.max_length,
        length_unit=model.length_unit,
        rows=count.rows,
        rows_by_precision={name: count.by_code[code] for code, name in PRECISIONS.items() if count.by_code[code]},
        vector_bytes=count.vector_bytes,
        long_texts=count.long_texts,
        producers=tuple(_producer(details) for (details,) in producers),
    )


def model_limits(cache: VectorCache, fingerprint: str) -> tuple[int, str] | None:
    """The most that a model takes at once, and its unit; None where that is not known."""
    found = cache.read("SELECT max_length, details FROM model WHERE fingerprint = ?", (raw_fingerprint(fingerprint),))
    max_length = _number(found[0][0]) if found else None
    return None if max_length is None else (max_length, _unit(found[0][1]))


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
        model=_text(name),
        precision=PRECISIONS[precision],
        dimension=len(vector),
        tokens=tokens,
        norm=float(np.linalg.norm(vector)),
        producer=_producer(producer),
        vector=vector,
    )


def lengths(cache: VectorCache, fingerprint: str, text_hashes: Sequence[bytes]) -> dict[bytes, int]:
    """Length of each of these texts that the model has embedded, before any cut. Ask for up to a thousand.

    The checksum covers the length too: of a row that fails it nothing is told.
    """
    key = raw_fingerprint(fingerprint)
    marks = ",".join("?" * len(text_hashes))
    rows = cache.read(
        "SELECT text_hash, precision, tokens, checksum, vector FROM vector "
        f"WHERE fingerprint = ? AND text_hash IN ({marks})",
        (key, *text_hashes),
    )
    return {row[0]: row[2] for row in rows if flaw((key, *row)) is None}


# -- what the file says of models and producers has no checksum: it is shown, and must not be relied on ----------------


def _details_of(raw: object) -> dict[str, Any]:
    """Recorded details; empty where they cannot be read."""
    try:
        details = orjson.loads(raw)  # type: ignore[arg-type]  # of another type is refused as well
    except ValueError:
        return {}
    return details if isinstance(details, dict) else {}


def _producer(raw: object) -> dict[str, Any]:
    details = _details_of(raw)
    if not isinstance(details.get("libraries", {}), dict):
        del details["libraries"]
    return details


def _unit(raw: object) -> str:
    unit = _details_of(raw).get("length_unit")
    return unit if unit in ("tokens", "characters") else "tokens"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
