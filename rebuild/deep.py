"""Vectors judged one by one: what a sink holds against what the cache holds for the same text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol

import numpy as np

from chunksink.sinks.contract import Stored
from chunksink.sinks.document import Vectors

LEAST_COSINE = 0.99999
"""Engines normalise, and another batch changes the last bits."""
LEAST_COSINE_IN_BFLOAT16 = 0.999
"""Of one text's vectors, one of them at least in bfloat16, which another batch changes more."""
_PAGE = 1000

Lookup = Callable[[Sequence[str]], Mapping[str, tuple[Vectors, float]]]
"""From text hashes to those cached vectors that are there, and the least cosine to each of one that is right."""


class Scanned(Protocol):
    """A build, as far as it is only read."""

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        """Everything that it holds."""


def wrong_vectors(build: Scanned, cached: Lookup, on_unjudged: Callable[[int], object]) -> Iterator[str]:
    """Ids of documents whose vector is missing, or is not the cached one. Those whose texts are not cached cannot be
    judged: how many of each page there were is told."""
    stored = build.scan(vectors=True)
    while page := list(islice(stored, _PAGE)):
        known = cached([found.text_hash for found in page if found.text_hash])
        on_unjudged(sum(1 for found in page if found.vector is not None and found.text_hash not in known))
        for found in page:
            if found.vector is None or (found.text_hash in known and not _same(found.vector, *known[found.text_hash])):
                yield found.id


def _same(one: Vectors, other: Vectors, least_cosine: float) -> bool:
    if one.shape != other.shape:
        return False
    wide, other_wide = one.astype(np.float64), other.astype(np.float64)
    length = float(np.linalg.norm(wide) * np.linalg.norm(other_wide))
    return bool(length) and float(wide @ other_wide) / length >= least_cosine
