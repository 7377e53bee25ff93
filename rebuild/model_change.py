"""Measures how much a new model changes answers, by querying the old and the new build with cached vectors."""

from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass

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
    """None if the live build or its vectors are no longer available, or if it has only one chunk."""


def model_change(session: Session, live: Generation, new: Generation, embedder: DocumentEmbedder) -> ModelChange | None:
    """None if both generations have the same model, or one has no vectors."""
    if live.model_fingerprint == new.model_fingerprint or not (live.holds_vectors and new.holds_vectors):
        return None
    names = _names(live.model, new.model)
    for name, sink in session.sinks.items():
        readable = capability(sink, SupportsReader)
        if not sink.wants_vectors or readable is None or name not in live.builds or name not in new.builds:
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
    """The share for each chunk of the sample; fewer or none if the engine fails or cannot be queried."""
    keys = session.catalog.sample_of_keys(_SAMPLE)
    old_vectors, new_vectors = embedder.cached(keys, live.model), embedder.cached(keys, new.model)
    shares: list[float] = []
    with suppress(SinkError), ExitStack() as stack:
        old = capability(stack.enter_context(closing(sink.reader(live.builds[name]))), VectorReader)
        fresh = capability(stack.enter_context(closing(sink.reader(new.builds[name]))), VectorReader)
        if old is not None and fresh is not None:
            for key in old_vectors.keys() & new_vectors.keys():
                before, after = _nearest(old, old_vectors[key]), _nearest(fresh, new_vectors[key])
                if before:
                    shares.append(len(before & after) / len(before))
    return shares


def _nearest(reader: VectorReader, vector: Vectors) -> set[str]:
    # The first hit is the chunk itself, or one with the same text.
    return {hit.id for hit in reader.query(vector, NEIGHBOURS + 1)[1:]}
