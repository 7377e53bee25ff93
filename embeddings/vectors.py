"""From a stream of (text hash, text) to vectors, in order: dedupe, look up, encode what is missing, commit.

The stream is worked through in windows, so memory does not depend on its length. Within a window every distinct
text is looked up once and encoded at most once. Encoded vectors are committed every `commit_seconds` and before
anything is handed out, also when the encoder fails: a committed vector is never computed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from embeddings.cache import VectorCache
from embeddings.encoder import BatchEncoder, EncodedBatch, Encoder, PrecisionRequest, Vectors, info_of
from embeddings.errors import CacheDamaged, TextRefused, WrongVectors
from embeddings.references import TextHash, raw_hash
from embeddings.salvage import SalvageReport

_T = TypeVar("_T")
Flags = np.ndarray[Any, np.dtype[np.bool_]]

_EXAMPLES = 100
_CALL_SECONDS = 1.0
_COMMIT_ROWS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """One text of the stream and its vector, or why it has none."""

    text_hash: bytes
    vector: Vectors | None
    cached: bool
    problem: str | None = None


@dataclass(slots=True)
class EmbedReport:
    """What has been done so far; it grows while a stream is read."""

    texts: int = 0
    """Items of the stream that were handed out."""
    duplicates: int = 0
    """Items whose text hash had already come in the same window."""
    cached: int = 0
    """Distinct texts served from the cache."""
    encoded: int = 0
    """Distinct texts that were computed."""
    refused: int = 0
    """Distinct texts without a vector; the items say why."""
    over_length: int = 0
    """Distinct texts longer than the model's maximum, cached ones too (`stats.lengths` tells)."""
    corrupt: int = 0
    """Cached rows that failed their checksum and were computed again."""
    corrupt_examples: list[str] = field(default_factory=list)
    """The first of their text hashes."""
    encode_seconds: float = 0.0
    salvaged: list[SalvageReport] = field(default_factory=list)
    """What became of a cache file that was found damaged during the run."""


Progress = Callable[[EmbedReport], None]


class VectorStream(Iterator[Embedded]):
    """An iterator over `Embedded`, and the report so far."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._items = run.items()

    def __next__(self) -> Embedded:
        return next(self._items)

    @property
    def report(self) -> EmbedReport:
        return self._run.report


def vectors_for(
    items: Iterable[tuple[TextHash, str]],
    encoder: Encoder,
    cache: VectorCache,
    *,
    request: PrecisionRequest | None = None,
    window: int = 2048,
    window_chars: int = 16_000_000,
    commit_seconds: float = 2.0,
    progress: Progress | None = None,
    report: EmbedReport | None = None,
) -> VectorStream:
    """Vectors for a stream of (text hash, text), in its order.

    `request` says which cached precisions will do; it is the encoder's own unless given. `progress` is called
    after every batch. `report` goes on with the counts of an earlier stream. A text that the model cannot embed
    comes back with a `problem`; its siblings are not affected. Anything that concerns all texts (endpoint down, out
    of memory, disk full) is raised, after what was computed has been committed.
    """
    wanted = request or info_of(encoder).requested
    seconds = min(commit_seconds, 5.0)
    report = report if report is not None else EmbedReport()
    return VectorStream(_Run(items, encoder, cache, wanted, window, window_chars, seconds, progress, report))


@dataclass(slots=True)
class _Window:
    """Some items of the stream, and what is known of their distinct texts."""

    items: list[tuple[bytes, str]]
    texts: dict[bytes, str]
    rows: Vectors
    known: dict[bytes, int] = field(default_factory=dict)
    """Row of each text that has its vector."""
    fresh: set[bytes] = field(default_factory=set)
    problems: dict[bytes, str] = field(default_factory=dict)


class _Run:
    def __init__(
        self,
        items: Iterable[tuple[TextHash, str]],
        encoder: Encoder,
        cache: VectorCache,
        request: PrecisionRequest,
        window: int,
        window_chars: int,
        commit_seconds: float,
        progress: Progress | None,
        report: EmbedReport,
    ) -> None:
        self._source = iter(items)
        self._encoder = encoder
        self._info = info_of(encoder)
        self._cache = cache
        self._request = request
        self._window = window
        self._window_chars = window_chars
        self._commit_seconds = commit_seconds
        self._progress = progress
        self.report = report

    def items(self) -> Iterator[Embedded]:
        for window in self._windows():
            missing, corrupt = self._look_up(window)
            if missing:
                self._encode(window, missing, corrupt)
            yield from self._hand_out(window)

    def _windows(self) -> Iterator[_Window]:
        while True:
            items: list[tuple[bytes, str]] = []
            texts: dict[bytes, str] = {}
            chars = 0
            for text_hash, text in self._source:
                raw = raw_hash(text_hash)
                items.append((raw, text))
                if raw not in texts:
                    texts[raw] = text
                    chars += len(text)
                if len(items) >= self._window or chars >= self._window_chars:
                    break
            if not items:
                return
            self.report.duplicates += len(items) - len(texts)
            yield _Window(items, texts, np.empty((len(texts), self._info.dimension), dtype=np.float32))

    def _look_up(self, window: _Window) -> tuple[list[bytes], tuple[bytes, ...]]:
        hashes = list(window.texts)
        found = self._mended(
            lambda: self._cache.lookup(
                self._info.fingerprint, hashes, dimension=self._info.dimension, request=self._request
            )
        )
        window.rows[found.positions] = found.vectors
        window.known = {hashes[position]: int(position) for position in found.positions}
        self.report.cached += len(window.known)
        self.report.corrupt += len(found.corrupt)
        room = max(0, _EXAMPLES - len(self.report.corrupt_examples))
        self.report.corrupt_examples += [text_hash.hex() for text_hash in found.corrupt[:room]]
        self._count_lengths(found.tokens)
        return [text_hash for text_hash in hashes if text_hash not in window.known], found.corrupt

    def _encode(self, window: _Window, missing: list[bytes], corrupt: tuple[bytes, ...]) -> None:
        place = {text_hash: number for number, text_hash in enumerate(window.texts)}
        pending = _Pending(self._commit_seconds)
        stale = set(corrupt)

        def commit() -> None:
            hashes, tokens = pending.take()
            if hashes:
                rows = window.rows[[place[text_hash] for text_hash in hashes]]
                drop = [text_hash for text_hash in hashes if text_hash in stale]
                self._mended(lambda: self._cache.put(self._info, hashes, rows, tokens, corrupt=drop))

        started = time.monotonic()
        try:
            for batch in _batches(self._encoder, [window.texts[text_hash] for text_hash in missing]):
                self._take(window, batch, missing, place, pending)
                if pending.is_due():
                    commit()
                if self._progress:
                    self._progress(self.report)
        finally:
            self.report.encode_seconds += time.monotonic() - started
            commit()
        if len(window.known) + len(window.problems) != len(window.texts):
            raise WrongVectors(f"the encoder {self._info.name} left texts without a vector")

    def _take(
        self,
        window: _Window,
        batch: EncodedBatch,
        missing: list[bytes],
        place: Mapping[bytes, int],
        pending: _Pending,
    ) -> None:
        if batch.vectors.shape != (len(batch.positions), self._info.dimension):
            raise WrongVectors(
                f"the encoder {self._info.name} returned {batch.vectors.shape} for {len(batch.positions)} texts; "
                f"expected {self._info.dimension} dimensions"
            )
        finite: Flags = np.asarray(np.isfinite(batch.vectors).all(axis=1))
        empty: Flags = finite & ~batch.vectors.any(axis=1)
        for number, position in enumerate(batch.positions):
            text_hash = missing[position]
            problem = batch.problems.get(position)
            if problem is None and not finite[number]:
                problem = "the model returned a vector that is not finite"
            elif problem is None and empty[number]:
                problem = "the model returned a vector of zeros"
            if problem is not None:
                window.problems[text_hash] = problem
                self.report.refused += 1
                continue
            row = place[text_hash]
            window.rows[row] = batch.vectors[number]
            window.known[text_hash] = row
            window.fresh.add(text_hash)
            pending.add(text_hash, batch.tokens[number])
            self.report.encoded += 1
        self._count_lengths(batch.tokens)

    def _hand_out(self, window: _Window) -> Iterator[Embedded]:
        for text_hash, text in window.items:
            self.report.texts += 1
            if text != window.texts[text_hash]:
                yield Embedded(text_hash, None, False, "this text hash also stands for a different text")
            elif text_hash in window.problems:
                yield Embedded(text_hash, None, False, window.problems[text_hash])
            else:
                row = window.rows[window.known[text_hash]]
                yield Embedded(text_hash, row, text_hash not in window.fresh)
        if self._progress:
            self._progress(self.report)

    def _count_lengths(self, tokens: Iterable[int]) -> None:
        if self._info.max_length is not None:
            self.report.over_length += sum(1 for count in tokens if count > self._info.max_length)

    def _mended(self, call: Callable[[], _T]) -> _T:
        """The call's result; if SQLite chokes on the file, once more after its sound rows were salvaged."""
        try:
            return call()
        except CacheDamaged as exc:
            if self._cache.read_only:
                raise
            report = self._cache.salvage(str(exc))
            if report is not None:
                self.report.salvaged.append(report)
            return call()


class _Pending:
    """Vectors that are computed but not yet committed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._hashes: list[bytes] = []
        self._tokens: list[int] = []
        self._since = time.monotonic()

    def add(self, text_hash: bytes, tokens: int) -> None:
        if not self._hashes:
            self._since = time.monotonic()
        self._hashes.append(text_hash)
        self._tokens.append(tokens)

    def is_due(self) -> bool:
        return len(self._hashes) >= _COMMIT_ROWS or (
            bool(self._hashes) and time.monotonic() - self._since >= self._seconds
        )

    def take(self) -> tuple[list[bytes], list[int]]:
        taken = self._hashes, self._tokens
        self._hashes, self._tokens = [], []
        return taken


def _batches(encoder: Encoder, texts: Sequence[str]) -> Iterator[EncodedBatch]:
    """The encoder's own batches, or slices that take it about a second each."""
    if isinstance(encoder, BatchEncoder):
        yield from encoder.encode_batches(texts)
        return
    start, size = 0, 32
    while start < len(texts):
        positions = range(start, min(start + size, len(texts)))
        started = time.monotonic()
        yield from _isolated(encoder, texts, positions)
        seconds = max(time.monotonic() - started, 1e-3)
        size = max(1, min(1024, int(len(positions) * _CALL_SECONDS / seconds)))
        start = positions.stop


def _isolated(encoder: Encoder, texts: Sequence[str], positions: range) -> Iterator[EncodedBatch]:
    """One call, or, where the encoder refuses a text, halves of it until the refused text stands alone."""
    try:
        rows = encoder.encode([texts[position] for position in positions])
    except TextRefused as exc:
        if len(positions) > 1:
            middle = positions.start + len(positions) // 2
            yield from chain(
                _isolated(encoder, texts, range(positions.start, middle)),
                _isolated(encoder, texts, range(middle, positions.stop)),
            )
            return
        nothing = np.full((1, encoder.dimension), np.nan, dtype=np.float32)
        yield EncodedBatch(positions, nothing, [0], {positions.start: str(exc)})
    else:
        yield EncodedBatch(positions, np.asarray(rows, dtype=np.float32), [0] * len(positions))
