"""Carries a cache from one machine to another: one file, checksummed, and not believed without proof.

Layout: the magic line; one line of JSON (format, number of rows, the models); the rows; 32 bytes of sha256 over
all of that. A row is its model's number (2 bytes), precision (1), length in tokens (4), bytes of vector (4), text
hash (32), checksum (16), vector; integers are little-endian.

An import reads the file three times: the whole checksum; 16 rows of each model and precision, whose texts are
encoded again here and must agree with what the file says; then the rows, each against its own checksum. Nothing
is written before the first two have passed.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from embeddings.cache import VectorCache
from embeddings.encoder import Encoder, ModelInfo, Precision
from embeddings.errors import BadExport, ExchangeError, ImportRefused
from embeddings.maintenance import scan
from embeddings.references import TextHash, raw_hash
from embeddings.rows import PRECISIONS, Row, flaw, unpack

MAGIC = b"chunksink vectors 1\n"
SAMPLES = 16
LEAST_COSINE = 0.999

_HEAD = struct.Struct("<HBII32s16s")
_BATCH = 2000
_MAX_HEADER = 16_000_000

EncoderFor = Callable[[str, Precision], Encoder | None]
"""An encoder with this fingerprint that computes in this precision, or None where there is none."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was exported."""

    rows: int
    skipped: int
    """Rows that failed their check and were left out."""
    sha256: str
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Proof:
    """How one model's rows at one precision were proved."""

    fingerprint: str
    precision: Precision
    checked: int
    """Rows whose text was encoded again; 0 means that none could be."""
    least_cosine: float | None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was imported."""

    rows: int
    """Rows written, or already there."""
    unproved: int
    """Rows left out, because no sample of theirs could be encoded again."""
    proofs: tuple[Proof, ...]


def export_cache(cache: VectorCache, file: Path | str, *, fingerprints: Iterable[str] | None = None) -> ExportReport:
    """Writes all sound rows, or those of some models, to one file. The file appears when it is complete."""
    target = Path(file)
    wanted = None if fingerprints is None else {bytes.fromhex(each) for each in fingerprints}
    (newest,) = cache.read("SELECT coalesce(max(id), 0) FROM vector")[0]
    keys = [
        key
        for (key,) in cache.read("SELECT DISTINCT fingerprint FROM vector ORDER BY 1")
        if isinstance(key, bytes) and (wanted is None or key in wanted)
    ]
    rows, skipped = _count(cache, keys, newest)
    header = {"rows": rows, "models": [_described(cache, key) for key in keys]}
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        with unfinished.open("wb") as out:
            digest = hashlib.sha256()
            written = 0
            for part in _parts(cache, keys, newest, header):
                digest.update(part)
                written += out.write(part)
            written += out.write(digest.digest())
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(target)
    except OSError as exc:
        raise ExchangeError(f"cannot write {target}: {exc.strerror}") from exc
    finally:
        unfinished.unlink(missing_ok=True)
    return ExportReport(rows, skipped, digest.hexdigest(), written)


def import_cache(
    cache: VectorCache,
    file: Path | str,
    *,
    texts: Iterable[tuple[TextHash, str]],
    encoder_for: EncoderFor,
    least_cosine: float = LEAST_COSINE,
) -> ImportReport:
    """Takes over the rows of an export that are proved to come from the model they name.

    `texts` are the chunks of this machine, from which the samples are taken: a text whose hash is not in the file
    proves nothing. Rows of a model and precision without a single sample are left out; a sample that disagrees
    refuses the whole file. A float32 row here is never replaced by a bfloat16 one.
    """
    source = Path(file)
    try:
        with source.open("rb") as opened:
            header = _checked_header(opened, source)
            proofs = _prove(opened, header, texts, encoder_for, least_cosine)
            proved = {(proof.fingerprint, proof.precision) for proof in proofs if proof.checked}
            written, unproved = _take_over(cache, opened, header, proved)
    except OSError as exc:
        raise ExchangeError(f"cannot read {source}: {exc.strerror}") from exc
    return ImportReport(written, unproved, tuple(proofs))


# -- export ------------------------------------------------------------------------------------------------------


def _parts(cache: VectorCache, keys: list[bytes], newest: int, header: dict[str, Any]) -> Iterator[bytes]:
    yield MAGIC
    yield orjson.dumps(header) + b"\n"
    number = {key: position for position, key in enumerate(keys)}
    left = header["rows"]
    for row in _sound(cache, number, newest):
        if not left:
            return
        left -= 1
        yield _HEAD.pack(
            number[row.fingerprint], row.precision, row.tokens, len(row.vector), row.text_hash, row.checksum
        )
        yield row.vector
    if left:
        raise ExchangeError("the cache lost rows while it was exported; try again")


def _sound(cache: VectorCache, keys: Iterable[bytes], newest: int) -> Iterator[Row]:
    wanted = frozenset(keys)
    for page in scan(
        cache,
        "SELECT id, fingerprint, text_hash, precision, tokens, checksum, vector FROM vector WHERE id > ? AND id <= ?",
        (newest,),
    ):
        for _, *values in page:
            if values[0] in wanted and flaw(tuple(values)) is None:
                yield Row(*values)


def _count(cache: VectorCache, keys: list[bytes], newest: int) -> tuple[int, int]:
    marks = ",".join("?" * len(keys))
    (total,) = cache.read(f"SELECT count(*) FROM vector WHERE id <= ? AND fingerprint IN ({marks})", (newest, *keys))[0]
    sound = sum(1 for _ in _sound(cache, keys, newest))
    return sound, total - sound


def _described(cache: VectorCache, key: bytes) -> dict[str, Any]:
    found = cache.read("SELECT name, dimension, details FROM model WHERE fingerprint = ?", (key,))
    name, dimension, details = found[0] if found else ("", None, "{}")
    return {"fingerprint": key.hex(), "name": name, "dimension": dimension, "details": orjson.loads(details)}


# -- import ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Header:
    path: Path
    rows: int
    keys: list[bytes]
    models: list[dict[str, Any]]
    start: int
    """Offset of the first row."""


def _checked_header(file: BinaryIO, path: Path) -> _Header:
    if file.read(len(MAGIC)) != MAGIC:
        raise BadExport(f"{path} is not an export of vectors that this chunksink can read")
    size = file.seek(0, os.SEEK_END) - 32
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0:
        part = file.read(min(size, 1 << 20))
        if not part:
            break
        digest.update(part)
        size -= len(part)
    if size or file.read(32) != digest.digest():
        raise BadExport(f"{path} is damaged or cut off: its checksum does not match")
    file.seek(len(MAGIC))
    line = file.readline(_MAX_HEADER)
    try:
        header = orjson.loads(line)
        keys = [bytes.fromhex(model["fingerprint"]) for model in header["models"]]
        return _Header(path, int(header["rows"]), keys, header["models"], len(MAGIC) + len(line))
    except (ValueError, TypeError, KeyError) as exc:
        raise BadExport(f"{path} has a header that cannot be read") from exc


def _rows(file: BinaryIO, header: _Header) -> Iterator[Row]:
    file.seek(header.start)
    for _ in range(header.rows):
        head = file.read(_HEAD.size)
        if len(head) != _HEAD.size:
            raise BadExport(f"{header.path} ends before its last row")
        number, precision, tokens, size, text_hash, digest = _HEAD.unpack(head)
        row = Row(
            header.keys[number] if number < len(header.keys) else b"",
            text_hash,
            precision,
            tokens,
            digest,
            file.read(size),
        )
        reason = flaw(row)
        if reason is not None:
            raise BadExport(f"{header.path} holds a bad row: {reason}")
        yield row


def _prove(
    file: BinaryIO,
    header: _Header,
    texts: Iterable[tuple[TextHash, str]],
    encoder_for: EncoderFor,
    least_cosine: float,
) -> list[Proof]:
    samples = _samples(file, header, texts)
    return [
        _proof(key.hex(), PRECISIONS[code], chosen, encoder_for, least_cosine)
        for (key, code), chosen in sorted(samples.items())
    ]


def _samples(
    file: BinaryIO, header: _Header, texts: Iterable[tuple[TextHash, str]]
) -> dict[tuple[bytes, int], list[tuple[str, Row]]]:
    """For each model and precision up to 16 rows and their texts, spread over the rows that we have texts for."""
    here = {raw_hash(text_hash): text for text_hash, text in texts}
    samples: dict[tuple[bytes, int], list[tuple[str, Row]]] = {}
    step: dict[tuple[bytes, int], int] = {}
    seen: dict[tuple[bytes, int], int] = {}
    for row in _rows(file, header):
        kind = (row.fingerprint, row.precision)
        chosen = samples.setdefault(kind, [])
        text = here.get(row.text_hash)
        if text is None:
            continue
        number = seen[kind] = seen.get(kind, -1) + 1
        if number % step.setdefault(kind, 1):
            continue
        chosen.append((text, row))
        if len(chosen) > SAMPLES * 2:  # keep every other one, and look at half as many from here on
            del chosen[1::2]
            step[kind] *= 2
    return {kind: chosen[:: max(1, len(chosen) // SAMPLES)][:SAMPLES] for kind, chosen in samples.items()}


def _proof(
    fingerprint: str,
    precision: Precision,
    chosen: list[tuple[str, Row]],
    encoder_for: EncoderFor,
    least_cosine: float,
) -> Proof:
    encoder = encoder_for(fingerprint, precision) if chosen else None
    if encoder is None:
        return Proof(fingerprint, precision, 0, None)
    if encoder.fingerprint != fingerprint or encoder.precision != precision:
        raise ImportRefused(f"the encoder for {fingerprint} in {precision} is of another model or precision")
    ours = encoder.encode([text for text, _ in chosen]).astype(np.float64)
    theirs = [unpack(row.vector).astype(np.float64) for _, row in chosen]
    if any(len(vector) != encoder.dimension for vector in theirs):
        raise ImportRefused(f"the file's vectors of model {fingerprint} have another dimension than the model")
    cosines = [_cosine(our, their) for our, their in zip(ours, theirs, strict=True)]
    least = min(cosines)
    if not least >= least_cosine:
        raise ImportRefused(
            f"the file's vectors are not those of model {fingerprint} in {precision}: of {len(chosen)} encoded again, "
            f"one has cosine {least:.5f}; {least_cosine} is the least"
        )
    return Proof(fingerprint, precision, len(chosen), least)


def _cosine(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / length if length else float("nan")


def _take_over(
    cache: VectorCache, file: BinaryIO, header: _Header, proved: set[tuple[str, Precision]]
) -> tuple[int, int]:
    written = unproved = 0
    batches: dict[bytes, list[Row]] = {}
    for row in _rows(file, header):
        if (row.fingerprint.hex(), PRECISIONS[row.precision]) not in proved:
            unproved += 1
            continue
        batch = batches.setdefault(row.fingerprint, [])
        batch.append(row)
        if len(batch) == _BATCH:
            cache.put_rows(batch, _info(header, row))
            written += len(batch)
            batch.clear()
    for batch in batches.values():
        if batch:
            cache.put_rows(batch, _info(header, batch[0]))
            written += len(batch)
    return written, unproved


def _info(header: _Header, row: Row) -> ModelInfo:
    model = header.models[header.keys.index(row.fingerprint)]
    details = model.get("details") or {}
    precision = PRECISIONS[row.precision]
    return ModelInfo(
        name=str(model.get("name", "")),
        fingerprint=row.fingerprint.hex(),
        dimension=len(row.vector) // 4,
        max_length=details.get("max_length"),
        precision=precision,
        requested=precision,
        long_texts=details.get("long_texts", "truncate"),
        length_unit=details.get("length_unit", "tokens"),
        query_prompt=str(details.get("query_prompt", "")),
        passage_prompt=str(details.get("passage_prompt", "")),
        source=str(details.get("source", "")),
        device="import",
    )
