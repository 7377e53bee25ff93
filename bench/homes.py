"""Homes for measuring: built and synced in this process, with vectors that cost next to nothing.

python -m bench.homes BUS HOME --sinks fts chroma
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import orjson

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Encoder, ModelInfo, Vectors
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.rebuild import Rebuild, Rebuilt
from chunksink.rebuild.state import cache_file
from chunksink.rebuild.work import Work
from chunksink.session import open_session
from chunksink.settings.config import MEILI_URL, Config
from chunksink.sinks.contract import Sink
from chunksink.sinks.document import Family
from chunksink.sinks.projection import project_family

DIMENSIONS = 384


class Drawn:
    """Vectors from the hash of a text, far cheaper than a model's, and its length as long as theirs."""

    info = ModelInfo("drawn", hashlib.sha256(b"drawn").hexdigest(), DIMENSIONS, None, "float32", "float32", "windows")
    fingerprint = info.fingerprint
    dimension = info.dimension
    max_length = info.max_length
    precision = info.precision

    def encode(self, texts: Sequence[str]) -> Vectors:
        seeds = b"".join(hashlib.shake_128(text.encode()).digest(DIMENSIONS) for text in texts)
        rows = np.frombuffer(seeds, dtype=np.int8).reshape(len(texts), DIMENSIONS) + np.float32(0.5)
        vectors: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return vectors

    def close(self) -> None:
        """Nothing is held."""


@contextmanager
def opened(bus: Path, home: Path, sinks: Sequence[str], others: Mapping[str, Sink] | None = None) -> Iterator[Work]:
    """A home with the sinks of these names, and with `others` that only this process knows."""
    served = {"meilisearch": {"url": os.environ[MEILI_URL]}} if "meilisearch" in sinks else {}
    config = Config(chunks=str(bus), home=str(home), sinks=tuple(sinks), sink=served)
    with open_session(config, "bench", on_fault=lambda _: None) as work:
        yield replace(work, sinks={**work.sinks, **(others or {})})


@contextmanager
def embedder(home: Path, encoder: Encoder | None = None) -> Iterator[DocumentEmbedder]:
    with VectorCache.open(cache_file(home)) as cache:
        yield DocumentEmbedder(EncoderSettings(), encoder or Drawn(), cache)


def build(bus: Path, home: Path, sinks: Sequence[str], others: Mapping[str, Sink] | None = None) -> Rebuilt:
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        work = stack.enter_context(opened(bus, home, sinks, others))
        for sink in (others or {}).values():
            stack.enter_context(closing(sink))
        work.refresh(reread=True)
        return Rebuild(work, stack.enter_context(embedder(home))).run()


def families(bus: Path) -> Iterator[Family]:
    """What a sink is sent for a bus whose sources lie together, with their vectors."""
    encoder = Drawn()
    for file in sorted((bus / "canonical").glob("*.jsonl")):
        with file.open("rb") as lines:
            for _, members in groupby(map(orjson.loads, lines), key=lambda record: record["document_id"]):
                documents = project_family(list(members))
                yield Family(documents, encoder.encode([document.text for document in documents]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bus", type=Path)
    parser.add_argument("home", type=Path)
    parser.add_argument("--sinks", nargs="+", default=["fts", "chroma"])
    asked = parser.parse_args()
    build(asked.bus, asked.home, asked.sinks)
