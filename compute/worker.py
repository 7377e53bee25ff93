"""What runs in a worker: it reads texts from their partitions, embeds them, and writes their vectors as a segment.

A worker loads the model once. It returns receipts of a few hundred bytes; vectors stay in the segments.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from time import monotonic

import numpy as np

from chunksink.chunkbus.errors import ChunksinkError, PartitionChanged
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import PartitionReader
from chunksink.chunkbus.storage import open_storage
from chunksink.embeddings.encoder import Encoder, Passage
from chunksink.embeddings.segments import write_segment
from chunksink.embeddings.settings import EncoderSettings, open_encoder
from chunksink.embeddings.vectors import problems_of
from chunksink.rebuild.catalog import TextPlace
from chunksink.rebuild.families import passages_at

OpenEncoder = Callable[[EncoderSettings, Path | None, int | None], Encoder]
"""Opens an encoder: settings, folder of prepared models, number of threads."""


def open_encoder_of_worker(settings: EncoderSettings, model_cache: Path | None, threads: int | None) -> Encoder:
    return open_encoder(settings, model_cache=model_cache, workers=threads)


@dataclass(frozen=True)
class Job:
    """What the workers of a run share."""

    chunks: str
    """Folder or bucket."""
    home: Path
    """The home of the run. Workers on the same machine read its copies of a bucket's partitions."""
    segments: str
    """Folder or bucket of the vector segments."""
    encoder: EncoderSettings
    model_cache: Path | None = None
    threads: int | None = None
    open_encoder: OpenEncoder = open_encoder_of_worker


@dataclass(frozen=True)
class WorkerState:
    """A worker that has tried to load the model."""

    node: str
    fingerprint: str
    """Empty if the model could not be loaded, for the reason in `problem`."""
    problem: str = ""


@dataclass(frozen=True)
class BlockReceipt:
    """The result of a block of texts."""

    node: str
    segment: str | None = None
    """Its name; None if no text has a vector."""
    texts: int = 0
    text_bytes: int = 0
    problems: dict[bytes, str] = field(default_factory=dict)
    """Why a text has no vector."""
    seconds: float = 0.0
    changed: bool = False
    """A partition was rewritten meanwhile, so nothing was computed."""
    failure: str = ""
    """Why the whole block failed; empty if it did not."""
    length: int = 0
    """Total length of the texts, in the model's `length_unit`."""


class Worker:
    """An actor on Ray."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._node = socket.gethostname()
        self._encoder: Encoder | None = None

    def start(self) -> WorkerState:
        """Load the model."""
        job = self._job
        if job.threads is not None:
            os.environ.setdefault("RAYON_NUM_THREADS", str(job.threads))  # for the tokenizer
        try:
            self._encoder = job.open_encoder(job.encoder, job.model_cache, job.threads)
        except (ChunksinkError, OSError) as error:
            return WorkerState(self._node, "", str(error))
        return WorkerState(self._node, self._encoder.info.fingerprint)

    def embed(self, places: Sequence[TextPlace]) -> BlockReceipt:
        """Embed the texts at these places, and write one segment."""
        started = monotonic()
        try:
            return self._embed(places, started)
        except PartitionChanged:
            return BlockReceipt(self._node, changed=True)
        except (ChunksinkError, OSError) as error:
            return BlockReceipt(self._node, failure=str(error))

    def _embed(self, places: Sequence[TextPlace], started: float) -> BlockReceipt:
        encoder = self._encoder
        if encoder is None:
            raise RuntimeError("call `start` before `embed`")
        info = encoder.info
        root = BusRoot.at(self._job.chunks, self._job.home)
        passages = {info.key(passage.key): passage for passage in _passages(root, places)}
        keys, texts = list(passages), [passage.text for passage in passages.values()]
        contexts = [passage.context for passage in passages.values()] if info.embed_context else []
        rows = np.empty((len(keys), info.dimension), dtype=np.float32)
        tokens = [0] * len(keys)
        problems: dict[int, str] = {}
        with closing(encoder.encode_batches(texts, contexts)) as batches:
            for batch in batches:
                problems |= problems_of(batch, info)
                rows[batch.positions] = batch.vectors
                for position, count in zip(batch.positions, batch.lengths, strict=True):
                    tokens[position] = count
        good = [position for position in range(len(keys)) if position not in problems]
        segment = None
        if good:
            storage = open_storage(self._job.segments)
            some_keys, some_tokens = [keys[each] for each in good], [tokens[each] for each in good]
            segment = write_segment(storage, info, some_keys, rows[good], some_tokens)
        return BlockReceipt(
            self._node,
            segment,
            len(good),
            sum(len(texts[position].encode("utf-8", "surrogatepass")) for position in good),
            {keys[position]: problem for position, problem in problems.items()},
            monotonic() - started,
            length=sum(tokens[position] for position in good),
        )


def _passages(root: BusRoot, places: Sequence[TextPlace]) -> Iterator[Passage]:
    for partition, members in groupby(places, key=lambda place: place.partition):
        with PartitionReader(root, partition) as reader:
            yield from passages_at(reader, members)
