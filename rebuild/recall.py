"""Recall: how many of the nearest documents an engine's search by vectors finds.

Such a search follows a graph of neighbours and may miss some. The questions are vectors of texts that the build holds,
the same ones as long as it holds the same texts. The exact answers come from the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chunksink.chunkbus.canonical import text_hash
from chunksink.rebuild.receipts import Receipts
from chunksink.sinks.capabilities import SupportsNearest, SupportsReader, capability
from chunksink.sinks.contract import Sink
from chunksink.sinks.document import Vectors
from chunksink.sinks.fields import sink_id
from chunksink.sinks.payload import unit

if TYPE_CHECKING:
    from sqlite_utils import Database

GOAL = 0.995
WORN = 0.75
"""From here on a search takes twice as long as in a new graph, or longer."""
NEAREST = 100
_QUESTIONS = 100
_PAGE = 2000
_TIE = 1e-5
"""Engines round: what is so much further away counts as equally near."""
_NO_TEXT = text_hash("")
# Documents that the build has confirmed and that the catalog has in the same version, in pages.
_DOCUMENTS = """
select c.id, c.chunk_id, c.text_hash from current_chunk c join receipt r on r.build = :build and r.family = c.family
join current u on u.family = c.family and u.family_hash is r.family_hash
where c.id > :after and c.text_hash <> :no_text order by c.id limit :limit
"""

Cached = Callable[[Sequence[str]], Mapping[str, Vectors]]
"""From text hashes to their vectors, as far as they are cached."""


@dataclass(frozen=True)
class Recall:
    """Shares of the exact nearest documents that a search found; equally near ones count as found."""

    mean: float
    worst: float
    """Of the question with the worst answer."""
    questions: int
    documents: int
    """Among which they were searched."""
    deleted: float
    """The share of deleted vectors that each search still goes through; 0 where that is not known."""

    @property
    def is_low(self) -> bool:
        return self.mean < GOAL

    @property
    def is_worn(self) -> bool:
        return self.deleted >= WORN


def measure(db: Database, sink: Sink, build_id: str, cached: Cached) -> Recall | None:
    """None where the engine has no such search, or nothing is known to measure it by."""
    readable = capability(sink, SupportsReader)
    if readable is None:
        return None
    with closing(readable.reader(build_id)) as reader:
        nearest = capability(reader, SupportsNearest)
        questions = _questions(db, build_id, cached) if nearest is not None else None
        if nearest is None or questions is None:
            return None
        answers = [nearest.nearest(question, NEAREST) for question in questions]
        size = nearest.index_size()
    deleted = max(0.0, 1 - Receipts(db, build_id).documents() / size) if size else 0.0
    return _compared(questions, answers, _documents(db, build_id, cached), round(deleted, 4))


def _questions(db: Database, build_id: str, cached: Cached) -> Vectors | None:
    """Of the texts whose hashes come first: as good as drawn, and the same ones every time."""
    rows = db.execute(
        "select distinct text_hash from current_chunk c join receipt r on r.build = ? and r.family = c.family "
        "where text_hash <> ? order by text_hash limit ?",
        [build_id, _NO_TEXT, _QUESTIONS],
    )
    known = cached([text_hash for (text_hash,) in rows])
    return unit(np.stack([known[each] for each in sorted(known)])) if known else None


def _documents(db: Database, build_id: str, cached: Cached) -> Iterator[tuple[list[str], Vectors]]:
    """Ids of documents and their vectors, in pages."""
    refused = {id for (id,) in db.execute("select id from dead_letter where build = ?", [build_id])}
    asked = {"build": build_id, "after": 0, "no_text": _NO_TEXT, "limit": _PAGE}
    while rows := db.execute(_DOCUMENTS, asked).fetchall():
        asked["after"] = rows[-1][0]
        known = cached(list({row[2] for row in rows}))
        there = [(id, text) for id, text in ((sink_id(row[1]), row[2]) for row in rows) if text in known]
        kept = [(id, known[text]) for id, text in there if id not in refused]
        if kept:
            yield [id for id, _ in kept], unit(np.stack([vector for _, vector in kept]))


def _compared(
    questions: Vectors,
    answers: Sequence[Sequence[str]],
    documents: Iterator[tuple[list[str], Vectors]],
    deleted: float,
) -> Recall | None:
    """What an engine names and the catalog does not know takes the place of another one, so that is not missed."""
    named = {id for answer in answers for id in answer}
    found: dict[str, Vectors] = {}
    best = np.empty((0, len(questions)), dtype=np.float32)
    count = 0
    for ids, vectors in documents:
        near = vectors @ questions.T
        count += len(ids)
        found.update((id, near[row]) for row, id in enumerate(ids) if id in named)
        best = _nearest(np.concatenate([best, near]))
    best = -np.sort(-best, axis=0)
    shares = []
    for number, answer in enumerate(answers):
        known = [found[id][number] for id in answer if id in found]
        wanted = min(count, NEAREST - (len(answer) - len(known)))
        if wanted > 0:
            least = best[wanted - 1, number] - _TIE
            shares.append(min(1.0, sum(bool(one >= least) for one in known) / wanted))
    if not shares:
        return None
    return Recall(round(sum(shares) / len(shares), 4), round(min(shares), 4), len(shares), count, deleted)


def _nearest(similarities: Vectors) -> Vectors:
    """Of each column the greatest, in any order."""
    return similarities if len(similarities) <= NEAREST else -np.partition(-similarities, NEAREST - 1, axis=0)[:NEAREST]
