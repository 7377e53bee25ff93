"""An encoder that is loaded only when it must compute: most syncs find all vectors in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic

from chunksink.embeddings.batches import encoded_batches
from chunksink.embeddings.encoder import (
    ClosingEncoder,
    EncodedBatch,
    Encoder,
    ModelInfo,
    Precision,
    Vectors,
    encode_queries,
    gathered,
    info_of,
)
from chunksink.embeddings.errors import ModelChanged


class LazyEncoder:
    """The encoder that `info` describes, opened on first use; `ModelChanged` if it is another one by then."""

    def __init__(self, info: ModelInfo, opened: Callable[[], ClosingEncoder]) -> None:
        self.info = info
        self._opened = opened
        self._encoder: ClosingEncoder | None = None
        self.loading_seconds = 0.0
        """How long it took to open it, once that was done."""

    @classmethod
    def at_once(cls, opened: Callable[[], ClosingEncoder]) -> LazyEncoder:
        """Opens the encoder now, to learn its `info`, and measures how long that takes."""
        started = monotonic()
        encoder = opened()
        lazy = cls(info_of(encoder), opened)
        lazy._encoder, lazy.loading_seconds = encoder, monotonic() - started
        return lazy

    @property
    def fingerprint(self) -> str:
        return self.info.fingerprint

    @property
    def dimension(self) -> int:
        return self.info.dimension

    @property
    def max_length(self) -> int | None:
        return self.info.max_length

    @property
    def precision(self) -> Precision:
        return self.info.precision

    def encode(self, texts: Sequence[str]) -> Vectors:
        return gathered(self.encode_batches(texts), len(texts), self.dimension)

    def encode_batches(self, texts: Sequence[str]) -> Iterator[EncodedBatch]:
        return encoded_batches(self.load(), texts)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return encode_queries(self.load(), texts)

    def close(self) -> None:
        if self._encoder is not None:
            self._encoder.close()

    def load(self) -> ClosingEncoder:
        """The encoder itself."""
        if self._encoder is None:
            started = monotonic()
            encoder = self._opened()
            if encoder.fingerprint != self.info.fingerprint:
                encoder.close()
                raise ModelChanged(
                    f"{self.info.name} has other weights, tokens or settings than the model that made the live index. "
                    "`chunksink rebuild` builds the index with the present model"
                )
            self._encoder, self.loading_seconds = encoder, monotonic() - started
        return self._encoder


def runtime(encoder: Encoder) -> str | None:
    """What computes this encoder's vectors; None while it is not loaded."""
    loaded = encoder._encoder if isinstance(encoder, LazyEncoder) else encoder
    return info_of(loaded).runtime or None if loaded is not None else None


def loading_seconds(encoder: Encoder) -> float:
    """How long this encoder took to load; nothing where that was not done here, or not yet."""
    return encoder.loading_seconds if isinstance(encoder, LazyEncoder) else 0.0
