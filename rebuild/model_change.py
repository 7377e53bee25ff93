"""Measures how much a new model changes answers, by querying the old and the new build with cached vectors."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from chunksink.embeddings.encoder import ModelInfo
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import Generation
from chunksink.sinks.capabilities import SupportsReader, capability
from chunksink.sinks.document import Vectors
from chunksink.sinks.errors import SinkError
from chunksink.sinks.reader import VectorReader

NEIGHBOURS = 10
_SAMPLE = 100


@dataclass(frozen=True)
class ModelChange:
    """`overlap` is the mean share of the ten nearest chunks on which both models agree, over a sample of chunks."""

    before: str
    after: str
    sample: int
    overlap: float | None
    """None if the live build or its vectors are no longer available."""


def model_change(session: Session, live: Generation, new: Generation, embedder: DocumentEmbedder) -> ModelChange | None:
    """None if both generations have the same model, or one has no vectors."""
    if live.model_fingerprint == new.model_fingerprint or not (live.holds_vectors and new.holds_vectors):
        return None
    names = _names(live.model, new.model)
    for name in new.builds:
        sink = session.sinks.get(name)
        readable = capability(sink, SupportsReader)
        if name not in live.builds or sink is None or not sink.wants_vectors or readable is None:
            continue
        if shares := _shares(session, readable, live, new, name, embedder):
            return ModelChange(*names, len(shares), sum(shares) / len(shares))
    return ModelChange(*names, 0, None)


def _names(one: ModelInfo, other: ModelInfo) -> tuple[str, str]:
    """The models' names, with fingerprints if they are equal."""
    if one.name != other.name:
        return one.name, other.name
    return f"{one.name} ({one.fingerprint:.12})", f"{other.name} ({other.fingerprint:.12})"


def _shares(
    session: Session, sink: SupportsReader, live: Generation, new: Generation, name: str, embedder: DocumentEmbedder
) -> list[float]:
    """The share for each chunk of the sample; none if this sink cannot be queried."""
    texts = session.catalog.sample_of_keys(_SAMPLE)
    before, after = embedder.cached(texts, live.model), embedder.cached(texts, new.model)
    try:
        with closing(sink.reader(live.builds[name])) as old, closing(sink.reader(new.builds[name])) as fresh:
            nearest, nearest_now = capability(old, VectorReader), capability(fresh, VectorReader)
            if nearest is None or nearest_now is None:
                return []
            return [
                _share(nearest.query, nearest_now.query, before[text], after[text])
                for text in texts
                if text in before and text in after
            ]
    except SinkError:
        return []


def _share(old: Callable[..., Any], new: Callable[..., Any], before: Vectors, after: Vectors) -> float:
    # The first hit is the chunk itself under any model.
    ours = {hit.id for hit in old(before, NEIGHBOURS + 1)[1:]}
    theirs = {hit.id for hit in new(after, NEIGHBOURS + 1)[1:]}
    return len(ours & theirs) / max(1, len(ours))
