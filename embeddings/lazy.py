"""An encoder that is loaded only when it must compute: most syncs find all vectors in the cache."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from time import monotonic

from chunksink.embeddings.encoder import EncodedBatch, Encoder, ModelInfo
from chunksink.embeddings.errors import ModelChanged


class LazyEncoder(Encoder):
    """The encoder that `info` describes, opened on first use; `ModelChanged` if the model has changed by then."""

    def __init__(self, info: ModelInfo, open_encoder: Callable[[], Encoder]) -> None:
        self.info = info
        self._open = open_encoder
        self._encoder: Encoder | None = None

    @classmethod
    def loaded(cls, open_encoder: Callable[[], Encoder]) -> LazyEncoder:
        """Opens the encoder now, to learn its `info`, and measures how long that takes."""
        started = monotonic()
        encoder = open_encoder()
        lazy = cls(encoder.info, open_encoder)
        lazy._encoder, lazy.loading_seconds = encoder, monotonic() - started
        return lazy

    @property
    def runtime(self) -> str | None:
        return self._encoder.runtime if self._encoder is not None else None

    @property
    def billed_tokens(self) -> int:
        return self._encoder.billed_tokens if self._encoder is not None else 0

    def close(self) -> None:
        if self._encoder is not None:
            self._encoder.close()

    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        return self.load()._run(texts, prompt, contexts)

    def load(self) -> Encoder:
        """The encoder itself."""
        if self._encoder is None:
            started = monotonic()
            encoder = self._open()
            if encoder.info.fingerprint != self.info.fingerprint:
                encoder.close()
                raise ModelChanged(
                    f"{self.info.name} has other weights, tokens or settings than the model that made the live index. "
                    "`chunksink rebuild` builds the index with the present model"
                )
            self._encoder, self.loading_seconds = encoder, monotonic() - started
        return self._encoder
