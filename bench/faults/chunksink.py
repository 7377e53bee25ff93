"""chunksink: `ingest SOURCES --prune --sync` into Chroma. Options are further commands, such as `rebuild`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import chromadb  # noqa: F401 (imported before the work begins)
import numpy as np

import chunksink.embeddings.pool
import chunksink.rebuild.embedder
from bench.faults.vectors import DIMENSIONS, EmbeddingFailed, model_of, vectors
from chunksink.cli import run
from chunksink.embeddings.encoder import EncodedBatch, Encoder, ModelInfo
from chunksink.embeddings.errors import EndpointUnavailable, TextRefused
from chunksink.embeddings.settings import EncoderSettings

BATCH = 32


class Drawn(Encoder):
    """Asks for the texts of a batch that failed one by one, as the encoder of an endpoint does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        name = model_of(folder)
        self.info = ModelInfo(
            name=name,
            fingerprint=hashlib.sha256(name.encode()).hexdigest(),
            dimension=DIMENSIONS,
            max_length=None,
            precision="float32",
            requested="auto",
            long_texts="truncate",
        )

    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        for start in range(0, len(texts), BATCH):
            places = range(start, min(start + BATCH, len(texts)))
            try:
                yield self._batch(texts, places)
            except TextRefused:
                for place in places:
                    try:
                        yield self._batch(texts, [place])
                    except TextRefused as error:
                        nothing = np.full((1, DIMENSIONS), np.nan, dtype=np.float32)
                        yield EncodedBatch([place], nothing, [0], {place: str(error)})

    def _batch(self, texts: Sequence[str], places: Sequence[int]) -> EncodedBatch:
        try:
            found = vectors(self._folder, [texts[place] for place in places])
        except EmbeddingFailed as error:
            raise (TextRefused if error.of_text else EndpointUnavailable)(str(error)) from error
        return EncodedBatch(places, np.array(found, dtype=np.float32), [0] * len(places))

    def close(self) -> None:
        """Nothing to release."""


def prepare(folder: Path, options: Sequence[str]) -> Callable[[], int]:
    def open_encoder(_settings: EncoderSettings, **_named: object) -> Encoder:
        return Drawn(folder)

    chunksink.embeddings.pool.open_encoder = open_encoder
    chunksink.rebuild.embedder.open_encoder = open_encoder
    os.environ |= {
        "CHUNKSINK_HOME": str(folder / "home"),
        "CHUNKSINK_CHUNKS": str(folder / "chunks"),
        "CHUNKSINK_SINKS": "chroma",
        "CHUNKSINK_MODEL": model_of(folder),
    }

    def work() -> int:
        codes = [run(["ingest", str(folder / "sources"), "--prune", "--sync"])]
        codes += [run(option.split()) for option in options]
        return codes[-1] or codes[0]

    return work
