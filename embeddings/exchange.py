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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
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
_LOOKUP_SIZE = 1000
_MAX_HEADER = 16_000_000

EncoderFor = Callable[[ModelInfo], Encoder | None]
"""An encoder with this fingerprint that computes in this precision, or None where there is none. All else that is
said of the model comes from the file, and only helps to find it."""

Texts = Callable[[], Iterable[tuple[TextHash, str]]]
"""The chunks of this machine, as often as they are asked for."""


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
    model: str
    """Its name, as the file has it."""
    precision: Precision
    checked: int
    """Rows whose text was encoded again; 0 means that none could be."""
    least_cosine: float | None
    obstacle: str | None = None
    """Why none could be."""


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
    texts: Texts,
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
            proofs = _prove(cache, opened, header, texts, encoder_for, least_cosine)
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
    cache: VectorCache, file: BinaryIO, header: _Header, texts: Texts, encoder_for: EncoderFor, least_cosine: float
) -> list[Proof]:
    samples = _samples(cache, file, header, texts)
    wanted = {row.text_hash for sample in samples.values() for row in sample.chosen}
    text_of = {raw: text for text_hash, text in (texts() if wanted else ()) if (raw := raw_hash(text_hash)) in wanted}
    return [_proof(sample, text_of, encoder_for, least_cosine) for _, sample in sorted(samples.items())]


class _Sample:
    """Rows of one model and precision, spread evenly over those that are offered; memory does not grow with them."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info
        self._kept: list[Row] = []
        self._offered = 0
        self._step = 1

    def offer(self, row: Row) -> None:
        if self._offered % self._step == 0:
            self._kept.append(row)
            if len(self._kept) > SAMPLES * 2:  # keep every other one, and look at half as many from here on
                del self._kept[1::2]
                self._step *= 2
        self._offered += 1

    @property
    def chosen(self) -> list[Row]:
        return self._kept[:: max(1, len(self._kept) // SAMPLES)][:SAMPLES]


def _samples(cache: VectorCache, file: BinaryIO, header: _Header, texts: Texts) -> dict[tuple[bytes, int], _Sample]:
    """For each model and precision up to 16 of the rows that we have texts for."""
    samples: dict[tuple[bytes, int], _Sample] = {}
    rows = _rows(file, header)
    with cache.temporary(raw_hash(text_hash) for text_hash, _ in texts()) as here:
        while page := list(islice(rows, _LOOKUP_SIZE)):
            marks = ",".join("?" * len(page))
            hashes = [row.text_hash for row in page]
            ours = {raw for (raw,) in cache.read(f"SELECT text_hash FROM {here} WHERE text_hash IN ({marks})", hashes)}
            for row in page:
                kind = (row.fingerprint, row.precision)
                if kind not in samples:
                    samples[kind] = _Sample(_info(header, row))
                if row.text_hash in ours:
                    samples[kind].offer(row)
    return samples


def _proof(sample: _Sample, text_of: Mapping[bytes, str], encoder_for: EncoderFor, least_cosine: float) -> Proof:
    info, chosen = sample.info, sample.chosen
    encoder = encoder_for(info) if chosen else None
    if encoder is None:
        obstacle = "the model cannot be used here" if chosen else "none of its texts stands in the chunks here"
        return Proof(info.fingerprint, info.name, info.precision, 0, None, obstacle)
    named = f"model {info.name} ({info.fingerprint}) in {info.precision}"
    if encoder.fingerprint != info.fingerprint or encoder.precision != info.precision:
        raise ImportRefused(f"the encoder for {named} is of another model or precision")
    ours = encoder.encode([text_of[row.text_hash] for row in chosen]).astype(np.float64)
    theirs = [unpack(row.vector).astype(np.float64) for row in chosen]
    if any(len(vector) != encoder.dimension for vector in theirs):
        raise ImportRefused(f"the file's vectors of {named} have another dimension than the model")
    least = min(_cosine(our, their) for our, their in zip(ours, theirs, strict=True))
    if not least >= least_cosine:
        raise ImportRefused(
            f"the file's vectors are not those of {named}: of {len(chosen)} encoded again, "
            f"one has cosine {least:.5f}; {least_cosine} is the least"
        )
    return Proof(info.fingerprint, info.name, info.precision, len(chosen), least)


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
