"""chunksink: `ingest SOURCES --prune --sync` into Chroma. Options are further commands, such as `sync --rebuild`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.faults.vectors import DIMENSIONS, ModelFailed, TextFailed, vectors
from chunksink.command_line.cli import run
from chunksink.embeddings import pool
from chunksink.embeddings.encoder import EncodedBatch, Encoder, ModelInfo
from chunksink.embeddings.errors import EndpointUnavailable
from chunksink.rebuild import embedder

BATCH = 32


class HashEncoder(Encoder):
    """Like the encoder of an endpoint, it embeds the texts of a refused batch one by one."""

    def __init__(self, model: str) -> None:
        fingerprint = hashlib.sha256(model.encode()).hexdigest()
        self.info = ModelInfo(model, fingerprint, DIMENSIONS, None, "float32", "auto", "truncate")

    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        for start in range(0, len(texts), BATCH):
            places = range(start, min(start + BATCH, len(texts)))
            try:
                yield self._batch(texts, places)
            except TextFailed:
                yield from (self._alone(texts, place) for place in places)

    def _batch(self, texts: Sequence[str], places: Sequence[int]) -> EncodedBatch:
        try:
            found = vectors([texts[place] for place in places])
        except ModelFailed as error:
            raise EndpointUnavailable(str(error)) from error
        return EncodedBatch(places, np.array(found, dtype=np.float32), [0] * len(places))

    def _alone(self, texts: Sequence[str], place: int) -> EncodedBatch:
        try:
            return self._batch(texts, [place])
        except TextFailed as error:
            nothing = np.full((1, DIMENSIONS), np.nan, dtype=np.float32)
            return EncodedBatch([place], nothing, [0], {place: str(error)})

    def close(self) -> None:
        """Nothing to release."""


def prepare(options: Sequence[str]) -> Callable[[], int]:
    model = Path("model").read_text()
    for module in (pool, embedder):
        replaced: Any = module
        replaced.open_encoder = lambda *_, **__: HashEncoder(model)
    os.environ |= {"CHUNKSINK_HOME": "home", "CHUNKSINK_CHUNKS": "chunks"}
    os.environ |= {"CHUNKSINK_SINKS": "chroma", "CHUNKSINK_MODEL": model}
    commands = ("ingest sources --prune --sync", *options)
    return lambda: max(run(command.split()) for command in commands)
