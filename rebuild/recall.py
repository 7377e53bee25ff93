"""Recall: how many of the nearest documents an engine's vector search finds.

Such a search follows a graph of neighbours and may miss some. The questions are vectors of texts of the index, the same
in every run. The exact answers are computed from the cache.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.catalog_rows import KEY
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.schema import marks
from chunksink.rebuild.state import State
from chunksink.sinks.capabilities import SupportsNearest, SupportsReader, capability
from chunksink.sinks.contract import Sink
from chunksink.sinks.document import NO_TEXT, Vectors
from chunksink.sinks.fields import sink_id
from chunksink.sinks.payload import unit

GOAL = 0.995
NEAREST = 100
MAX_DELETED = 0.75
"""With at least this share of deleted vectors, a search takes at least twice as long as in a new graph."""
_QUESTIONS = 100
_PAGE = 2000
_TIE = 1e-5
"""Engines round, so a similarity that is lower by no more than this is equal."""
# Families whose current version the build has confirmed without refused documents, in pages.
_FAMILIES = """
select r.family from receipt r join current u on u.family = r.family and u.family_hash is r.family_hash
where r.build = :build and r.family > :after and r.family not in (select family from dead_letter where build = :build)
order by r.family limit 500
"""

Cached = Callable[[Sequence[str]], Mapping[str, Vectors]]
"""From keys to their cached vectors."""


@dataclass(frozen=True)
class Recall:
    """Shares of the exact nearest documents that a search found; equally near ones count as found."""

    mean: float
    worst: float
    """The share for the worst answer."""
    questions: int
    documents: int
    deleted: float
    """The share of the vectors in the engine's index that are deleted, but that searches still visit; 0 if unknown."""

    @property
    def is_low(self) -> bool:
        return self.mean < GOAL

    @property
    def is_slow(self) -> bool:
        return self.deleted >= MAX_DELETED

    @property
    def summary(self) -> str:
        worst = f"{self.worst:.0%} in the worst of {self.questions} searches"
        found = f"finds {self.mean:.1%} of the nearest documents, {worst}"
        return f"{found}; {self.deleted:.0%} of the vectors in its graph are deleted" if self.deleted else found

    def remedy(self, sink: str) -> str:
        """What to do if a search finds too little or is slow; else empty."""
        rebuild = f"`chunksink rebuild --sink {sink}` makes a new graph"
        if self.is_low:
            sync = f"`chunksink sync` corrects the search settings of {sink}; restart a Chroma server afterwards"
            return f"{sync}. If no setting was wrong, {rebuild}"
        return f"each search visits the deleted vectors, too; {rebuild}" if self.is_slow else ""


def measure(state: State, sink: Sink, build_id: str, cached: Cached) -> Recall | None:
    """None if the engine lacks `SupportsNearest`, or the cache has no vectors to measure with."""
    readable = capability(sink, SupportsReader)
    sample = cached(Catalog(state).sample_of_keys(_QUESTIONS)) if readable is not None else {}
    if readable is None or not sample:
        return None
    questions = unit(np.stack([sample[text] for text in sorted(sample)]))
    with closing(readable.reader(build_id)) as reader:
        searched = capability(reader, SupportsNearest)
        if searched is None:
            return None
        answers = [searched.nearest(question, NEAREST) for question in questions]
        size = searched.index_size()
    returned = {id for answer in answers for id in answer}
    near: dict[str, Vectors] = {}  # similarity of each returned document to each question
    best = np.empty((0, len(questions)), dtype=np.float32)
    documents = 0
    for ids, vectors in _documents(state, build_id, cached):
        similar = vectors @ questions.T
        documents += len(ids)
        near.update((id, similar[row]) for row, id in enumerate(ids) if id in returned)
        best = -np.partition(-np.concatenate([best, similar]), min(NEAREST, len(best) + len(ids)) - 1, axis=0)[:NEAREST]
    best = -np.sort(-best, axis=0)
    shares = []
    for number, answer in enumerate(answers):
        similarities = [near[id][number] for id in answer if id in near]
        # Documents outside the catalog take up places in the answer. What they displace does not count as missed.
        expected = min(documents, NEAREST - (len(answer) - len(similarities)))
        if expected > 0:
            hits = np.sum(np.array(similarities) >= best[expected - 1, number] - _TIE)
            shares.append(min(1.0, float(hits) / expected))
    if not shares:
        return None
    deleted = max(0.0, 1 - Receipts(state.db, build_id).documents() / size) if size else 0.0
    mean = sum(shares) / len(shares)
    return Recall(round(mean, 4), round(min(shares), 4), len(shares), documents, round(deleted, 4))


def _documents(state: State, build_id: str, cached: Cached) -> Iterator[tuple[list[str], Vectors]]:
    families = [""]
    while rows := state.db.execute(_FAMILIES, {"build": build_id, "after": families[-1]}).fetchall():
        families = [family for (family,) in rows]
        chunks = state.db.execute(
            f"select chunk_id, {KEY} from family_chunk where family in ({marks(families)}) and text_hash <> ?",
            [*families, NO_TEXT],
        ).fetchall()
        for start in range(0, len(chunks), _PAGE):
            page = chunks[start : start + _PAGE]
            vectors = cached(list({key for _, key in page}))
            rows = [(sink_id(chunk_id), vectors[key]) for chunk_id, key in page if key in vectors]
            if rows:
                yield [id for id, _ in rows], unit(np.stack([vector for _, vector in rows]))
