"""From a stream of passages to vectors, in order: dedupe, look up, encode what is missing, commit.

The stream is processed in slices, so memory does not depend on its length. Within a slice, every distinct passage is
looked up once and encoded at most once. Each batch of vectors is committed as soon as the encoder yields it. A
committed vector is computed again only on request, to check an endpoint, or if it is damaged or not precise enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import EncodedBatch, Encoder, ModelInfo, Passage, Vectors
from chunksink.embeddings.errors import CacheDamaged, WrongVectors
from chunksink.embeddings.probes import PROBES, require_same_model

_T = TypeVar("_T")
_Keyed = tuple[bytes, Passage]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

_PROBES = {key: Passage(key.hex(), text) for key, text in PROBES.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """A text of the stream with its vector, or with the reason why it has none."""

    key: bytes
    vector: Vectors | None
    cached: bool
    problem: str | None = None


@dataclass(slots=True)
class EmbedReport:
    """Counts, updated while a stream is read. Several streams may share a report."""

    texts: int = 0
    """Items that were returned."""
    encoded: int = 0
    """Vectors that were computed."""
    encoded_bytes: int = 0
    """The size of their texts in UTF-8."""
    encoded_length: int = 0
    """The length of the model's inputs for them, as in `EncodedBatch.lengths`."""
    refused: int = 0
    """Items without a vector."""
    over_length: int = 0
    """Items whose input is longer than the model's maximum, including those with a cached vector."""
    corrupt: int = 0
    """Cached rows that failed their check, and so counted as missing."""
    problems: dict[bytes, str] = field(default_factory=dict)
    """Why a text has no vector. Such a text is not tried again with the same report, even if it is repeated."""
    set_aside: list[str] = field(default_factory=list)
    """The new names of damaged cache files. Their vectors are computed again."""
    endpoint_checked: bool = False
    """Whether the endpoint needs no further check: it matched cached vectors, or there was nothing to compare."""

    @property
    def reused(self) -> int:
        """Items whose vector was in the cache, or was computed for an earlier item. Too low within a slice: a vector
        counts in `encoded` when it is computed, its item in `texts` only when it is returned."""
        return max(0, self.texts - self.encoded - self.refused)


def vectors_for(
    items: Iterable[Passage],
    encoder: Encoder,
    cache: VectorCache,
    report: EmbedReport | None = None,
    *,
    slice_texts: int = 2048,
    slice_chars: int = 16_000_000,
    on_encoded: Callable[[int], object] = lambda _texts: None,
) -> Iterator[Embedded]:
    """Vectors for a stream of passages, in its order. `report` is updated; `on_encoded` gets the number of
    vectors just computed, several times per slice. A slice ends after `slice_texts` passages or `slice_chars`
    characters.

    A text that the model cannot embed is returned with a `problem`; the other texts are not affected. Failures that
    concern all texts (endpoint down, out of memory, disk full) are raised, after the computed vectors were committed.
    EndpointChanged if an endpoint's model has changed: that is checked once per report, before the first vector is
    computed.
    """
    run = _Run(encoder, cache, report if report is not None else EmbedReport(), on_encoded)
    for keyed in _slices(items, encoder.info, slice_texts, slice_chars):
        yield from run.embed(keyed)


def cache_probes(encoder: Encoder, cache: VectorCache) -> None:
    """Caches the vectors of the probes, with which later runs compare."""
    for _ in vectors_for(_PROBES.values(), encoder, cache, EmbedReport(endpoint_checked=True)):
        pass


def _slices(items: Iterable[Passage], info: ModelInfo, most: int, most_chars: int) -> Iterator[list[_Keyed]]:
    """Lists of consecutive items, of bounded size, with their keys for this model."""
    keyed: list[_Keyed] = []
    chars = 0
    for passage in items:
        keyed.append((info.key(passage.key), passage))
        chars += len(passage.text)
        if len(keyed) >= most or chars >= most_chars:
            yield keyed
            keyed, chars = [], 0
    if keyed:
        yield keyed


def problems_of(batch: EncodedBatch, info: ModelInfo) -> dict[int, str]:
    """Why positions of a batch have no usable vector. WrongVectors if the batch has the wrong shape."""
    if batch.vectors.shape != (len(batch.positions), info.dimension):
        raise WrongVectors(
            f"the encoder {info.name} returned {batch.vectors.shape} for {len(batch.positions)} texts; "
            f"expected {info.dimension} dimensions"
        )
    finite: Flags = np.asarray(np.isfinite(batch.vectors).all(axis=1))
    empty: Flags = finite & ~batch.vectors.any(axis=1)
    problems = dict(batch.problems)
    for position, is_finite, is_empty in zip(batch.positions, finite, empty, strict=True):
        if not is_finite:
            problems.setdefault(position, "the model returned a vector that is not finite")
        elif is_empty:
            problems.setdefault(position, "the model returned a vector of zeros")
    return problems


class _Slice:
    """The distinct passages of some items, and their vectors."""

    def __init__(self, passages: Mapping[bytes, Passage], dimension: int) -> None:
        self.passages = passages
        self.vectors: Vectors = np.empty((len(passages), dimension), dtype=np.float32)
        self.row_of = {key: row for row, key in enumerate(passages)}
        self.cached: list[bytes] = []
        self.computed: set[bytes] = set()
        self.long: set[bytes] = set()


@dataclass(slots=True)
class _Run:
    encoder: Encoder
    cache: VectorCache
    report: EmbedReport
    on_encoded: Callable[[int], object]

    def embed(self, items: list[_Keyed]) -> Iterator[Embedded]:
        passages: dict[bytes, Passage] = {}
        for key, passage in items:
            passages.setdefault(key, passage)
        part = _Slice(passages, self.encoder.info.dimension)
        missing, replaced = self._look_up(part)
        if missing:
            self._check_endpoint(part)
            self._encode(part, missing, replaced)
        for key, passage in items:
            yield self._embedded(part, key, passage.text)

    def _look_up(self, part: _Slice) -> tuple[list[bytes], set[bytes]]:
        """Fills in cached vectors. Returns the missing keys, and those whose rows in the cache must be replaced."""
        keys = list(part.passages)
        info = self.encoder.info
        found = self._retry_if_damaged(
            lambda: self.cache.lookup(info.fingerprint, keys, dimension=info.dimension, request=info.requested)
        )
        part.vectors[found.positions] = found.vectors
        part.cached = [keys[position] for position in found.positions]
        self.report.corrupt += len(found.corrupt)
        self._note_lengths(part, part.cached, found.lengths)
        done = {*part.cached, *self.report.problems}
        return [key for key in keys if key not in done], {*found.corrupt, *found.outdated}

    def _check_endpoint(self, part: _Slice) -> None:
        """Compares the endpoint's vectors with cached ones: of the probes or, if no probe is cached, of texts in the
        slice. Does nothing after `outdate`, when no cached vector counts."""
        info, report = self.encoder.info, self.report
        if info.device != "endpoint" or report.endpoint_checked or self.cache.last_outdated(info.fingerprint):
            return
        probes = _Slice(_PROBES, info.dimension)
        missing, _ = self._look_up(probes)
        known = probes if probes.cached else part
        cached = [(known.passages[key], known.vectors[known.row_of[key]]) for key in known.cached]
        if shortest := sorted(cached, key=lambda each: len(each[0].text))[: len(PROBES)]:
            require_same_model(self.encoder, shortest)
        report.endpoint_checked = True
        if missing:
            cache_probes(self.encoder, self.cache)

    def _encode(self, part: _Slice, missing: list[bytes], replaced: set[bytes]) -> None:
        passages = [part.passages[key] for key in missing]
        texts, contexts = [passage.text for passage in passages], [passage.context for passage in passages]
        with closing(self.encoder.encode_batches(texts, contexts)) as batches:
            for batch in batches:
                before = self.report.encoded
                self._take(part, batch, missing, replaced)
                self.on_encoded(self.report.encoded - before)
        if any(key not in part.computed and key not in self.report.problems for key in missing):
            raise WrongVectors(f"the encoder {self.encoder.info.name} left texts without a vector")

    def _take(self, part: _Slice, batch: EncodedBatch, missing: list[bytes], replaced: set[bytes]) -> None:
        info = self.encoder.info
        problems = problems_of(batch, info)
        keys = [missing[position] for position in batch.positions]
        computed: dict[bytes, int] = {}
        for key, position, vector, length in zip(keys, batch.positions, batch.vectors, batch.lengths, strict=True):
            if position in problems:
                self.report.problems[key] = problems[position]
                continue
            part.vectors[part.row_of[key]] = vector
            computed[key] = length
            self.report.encoded += 1
            self.report.encoded_length += length
            self.report.encoded_bytes += len(part.passages[key].text.encode("utf-8", "surrogatepass"))
        part.computed |= computed.keys()
        self._note_lengths(part, keys, batch.lengths)
        rows = part.vectors[[part.row_of[key] for key in computed]]
        lengths = list(computed.values())
        self._retry_if_damaged(lambda: self.cache.put(info, list(computed), rows, lengths, replaced=replaced))

    def _note_lengths(self, part: _Slice, keys: Iterable[bytes], lengths: Iterable[int]) -> None:
        if (most := self.encoder.info.max_length) is not None:
            part.long.update(key for key, count in zip(keys, lengths, strict=True) if count > most)

    def _embedded(self, part: _Slice, key: bytes, text: str) -> Embedded:
        self.report.texts += 1
        self.report.over_length += key in part.long
        problem = self.report.problems.get(key)
        if problem is None and text != part.passages[key].text:
            problem = "a different text has the same text hash"
        if problem is not None:
            self.report.refused += 1
            return Embedded(key, None, False, problem)
        return Embedded(key, part.vectors[part.row_of[key]], key not in part.computed)

    def _retry_if_damaged(self, call: Callable[[], _T]) -> _T:
        """The result of the call. If the file is damaged, it is replaced and the call repeated."""
        try:
            return call()
        except CacheDamaged:
            kept = self.cache.replace_damaged()
            if kept is not None:
                self.report.set_aside.append(kept)
            return call()
