"""An encoder that is loaded only when it must compute: most syncs find all vectors in the cache."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from time import monotonic

from chunksink.embeddings.encoder import EncodedBatch, Encoder, ModelInfo
from chunksink.embeddings.errors import EndpointUnavailable, ModelError


class LazyEncoder(Encoder):
    """The encoder that `info` describes, opened on first use; `ModelError` if the model has changed by then.

    Without `info`, the encoder is opened at once.
    """

    def __init__(self, info: ModelInfo | None, open_encoder: Callable[[], Encoder]) -> None:
        self._expected = info and info.fingerprint
        self._open = open_encoder
        self._encoder: Encoder | None = None
        self.info = info or self.load().info

    @property
    def runtime(self) -> str | None:
        return self._encoder.runtime if self._encoder is not None else None

    @property
    def billed_tokens(self) -> int:
        return self._encoder.billed_tokens if self._encoder is not None else 0

    def close(self) -> None:
        """Frees the model. The next use opens it again."""
        encoder, self._encoder = self._encoder, None
        if encoder is not None:
            encoder.close()

    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        return self.load()._run(texts, prompt, contexts)

    def load(self) -> Encoder:
        """The underlying encoder, opened if it is not open yet."""
        if self._encoder is None:
            started = monotonic()
            try:
                encoder = self._open()
            except EndpointUnavailable as error:
                if self._expected is None:
                    raise
                remedy = "if it has moved since the index was made, run `chunksink rebuild`"
                raise EndpointUnavailable(f"{error} ({remedy})") from error
            if self._expected not in (None, encoder.info.fingerprint):
                encoder.close()
                raise ModelError(
                    f"{self.info.name} has different weights, tokenizer or settings than the model of the live index. "
                    "Run `chunksink rebuild` to build the index with the current model"
                )
            self._encoder, self.loading_seconds = encoder, monotonic() - started
            self.info = encoder.info  # with the current libraries and device
        return self._encoder
