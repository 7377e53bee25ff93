"""Executes a plan: vectors first, committed to the cache; then batch by batch intents, writes, receipts.

Engines write in parallel while the next families are read and embedded. The writer's lock is held for one batch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TypeVar

import numpy as np

from chunksink.rebuild.catalog import Catalog, Projected
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.families import PART, ProjectedFamily
from chunksink.rebuild.plan import Plan
from chunksink.rebuild.receipts import WITHOUT_VECTOR, Receipt, Receipts
from chunksink.rebuild.report import RunOutcome
from chunksink.rebuild.scan import Progress
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import EMBEDDED, MODEL, State
from chunksink.rebuild.targets import Target
from chunksink.sinks.contract import RefusedDocument
from chunksink.sinks.document import Family, Vectors

EMBEDDED_AT_ONCE = 512
"""Documents, where a long text counts as several: a few seconds of work, so that progress is visible."""
WRITTEN_AT_ONCE = PART
"""Documents between flushes: a batch costs an engine a second or more, however small it is. The first is smaller. No
batch has two parts of one family."""
REMOVED_AT_ONCE = 5000
"""Families."""

T = TypeVar("T")
Lock = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, eq=False)
class _Batch:
    families: Sequence[ProjectedFamily]
    projected: Sequence[Projected]
    vectors: Sequence[Vectors | None]
    wanted: dict[str, set[str]]
    rewritten: dict[str, dict[str, set[str]]]


@dataclass(eq=False)
class Executor:
    session: Session
    targets: Sequence[Target]
    embedder: DocumentEmbedder
    outcome: RunOutcome
    lock: Lock
    """Taken for every batch, or held by the caller already."""
    parts: dict[tuple[str, str], tuple[int, list[RefusedDocument]]] = field(default_factory=dict)
    """By build and family: documents taken and refused of the confirmed parts of a family that is not done."""
    pace: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Amount and seconds of each kind of work: loading the `model`, bytes of text `embedded`, documents by sink."""

    def run(self, plan: Plan, on_progress: Progress) -> None:
        """Execute the plan on all targets that answer. `on_progress` gets the number of documents embedded."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batch") as ahead:
            under_way: Future[None] | None = None
            for batch in self._batches(plan, on_progress):
                if under_way is not None:
                    under_way.result()
                if not self._answering():
                    return
                under_way = ahead.submit(self._write, batch)
            if under_way is not None:
                under_way.result()
        self._remove(plan)

    def _batches(self, plan: Plan, on_progress: Progress) -> Iterator[_Batch]:
        embedded = self._embedded(plan, on_progress)
        for some in _by_size(embedded, WRITTEN_AT_ONCE, lambda pair: pair[0].size, first=EMBEDDED_AT_ONCE):
            families = [projected for projected, _ in some]
            wanted = plan.builds_of([each.family for each in families])
            rewritten = {build: plan.to_rewrite(build, sorted(keys)) for build, keys in wanted.items()}
            projected = [each.projected for each in families if each.last]  # in this thread, while the engines write
            yield _Batch(families, projected, [vectors for _, vectors in some], wanted, rewritten)

    def _embedded(self, plan: Plan, on_progress: Progress) -> Iterator[tuple[ProjectedFamily, Vectors | None]]:
        """Families with their vectors; without vectors if only sinks without vectors get them."""
        with_vectors = [target.build_id for target in self.targets if target.holds_vectors]
        found = (each for page in plan.families_to_write() for each in self.session.records.families(page))
        for some in _by_size(found, EMBEDDED_AT_ONCE, lambda projected: projected.size):
            wanted = plan.builds_of([projected.family for projected in some])
            embed = set[str]().union(*(wanted[build] for build in with_vectors))
            embedded = [projected for projected in some if projected.family in embed]
            vectors = iter(self._embed(embedded, on_progress) if embedded else [])
            on_progress(sum(len(projected.documents) for projected in some if projected.family not in embed))
            yield from ((projected, next(vectors) if projected.family in embed else None) for projected in some)

    def _embed(self, families: Sequence[ProjectedFamily], on_progress: Progress) -> list[Vectors]:
        report, started, loading_before = self.embedder.report, monotonic(), self.embedder.loading_seconds
        encoded_before, bytes_before = report.encoded, report.encoded_bytes
        documents = [document for projected in families for document in projected.documents]
        rows = self.embedder.embed(documents, on_progress)
        if amount := report.encoded - encoded_before:
            loading = self.embedder.loading_seconds
            seconds = monotonic() - started - (loading - loading_before)
            self._took(EMBEDDED, report.encoded_bytes - bytes_before, seconds)
            if loading:
                self.pace[MODEL] = 1, loading
        on_progress(len(documents) - amount)
        return list(np.split(rows, np.cumsum([len(projected.documents) for projected in families])[:-1]))

    def _write(self, batch: _Batch) -> None:
        """Runs in a thread with its own connection: hashes, intents, all engines in parallel, receipts."""
        answering = self._answering()
        with self.lock(), State(self.session.state.home) as state:
            Catalog(state).note_projected(batch.projected)
            for target in answering:
                Receipts(state.db, target.build_id).intend(batch.wanted[target.build_id])
            with ThreadPoolExecutor(max_workers=max(1, len(answering)), thread_name_prefix="sink") as threads:
                writing = [(target, threads.submit(self._replace, target, batch)) for target in answering]
            for target, future in writing:
                with self.outcome.noting_failure(target.sink):
                    sent, refused = future.result()
                    self.outcome.sink(target.sink).written += sent
                    if batch.wanted[target.build_id]:
                        receipts = Receipts(state.db, target.build_id)
                        self.session.stamp(target.build, receipts)
                        self._confirm(receipts, target, batch, self._with_reasons(batch, refused))

    def _replace(self, target: Target, batch: _Batch) -> tuple[int, list[RefusedDocument]]:
        """How many documents the engine was sent, and those that it refused."""
        wanted, rewritten = batch.wanted[target.build_id], batch.rewritten[target.build_id]
        families = [
            Family(each.documents, vectors, rewritten.get(each.family, ()), first=each.first, last=each.last)
            for each, vectors in zip(batch.families, batch.vectors, strict=True)
            if each.family in wanted
        ]
        if not families:
            return 0, []
        started = monotonic()
        sent = target.build.replace(families)
        refused = target.build.flush()
        self._took(target.sink, sum(len(family.documents) for family in families), monotonic() - started)
        return sent, refused

    def _confirm(self, receipts: Receipts, target: Target, batch: _Batch, refused: Sequence[RefusedDocument]) -> None:
        """Write receipts. A large family gets its receipt with its last part."""
        refused_of: dict[str, list[RefusedDocument]] = {}
        for one in refused:
            refused_of.setdefault(one.parent_id, []).append(one)
        confirmed, left_out = [], []
        for each in batch.families:
            if each.family not in batch.wanted[target.build_id]:
                continue
            bad = refused_of.get(each.family, [])
            taken = len(each.documents) - len(bad)
            earlier, earlier_bad = self.parts.pop((target.build_id, each.family), (0, []))
            taken, bad = earlier + taken, earlier_bad + bad
            if each.last:
                confirmed.append(Receipt(each.family, each.family_hash, taken, each.label))
                left_out += bad
            else:
                self.parts[target.build_id, each.family] = taken, bad
        receipts.confirm(confirmed, left_out)

    def _with_reasons(self, batch: _Batch, refused: Sequence[RefusedDocument]) -> list[RefusedDocument]:
        """A sink knows only that a vector is missing; the encoder knows why."""
        if not refused:
            return []
        texts = {document.id: document.text_hash for each in batch.families for document in each.documents}
        explained = []
        for one in refused:
            problem = self.embedder.problem_of(texts[one.id]) if one.id in texts else None
            explained.append(one if problem is None else replace(one, reason=f"{WITHOUT_VECTOR}{problem}"))
        return explained

    def _remove(self, plan: Plan) -> None:
        for target in self._answering():
            gone, receipts = plan.removals(target.build_id), Receipts(self.session.state.db, target.build_id)
            with self.outcome.noting_failure(target.sink):
                for start in range(0, len(gone), REMOVED_AT_ONCE):
                    families = gone[start : start + REMOVED_AT_ONCE]
                    with self.lock():
                        receipts.intend(families)
                        target.build.delete(families)
                        target.build.flush()
                        self.session.stamp(target.build, receipts)
                        receipts.confirm_gone(families)

    def _answering(self) -> list[Target]:
        return [target for target in self.targets if target.sink not in self.outcome.failed]

    def _took(self, what: str, amount: int, seconds: float) -> None:
        before, seconds_before = self.pace.get(what, (0, 0.0))
        self.pace[what] = before + amount, seconds_before + seconds


def _by_size(items: Iterable[T], most: int, size: Callable[[T], int], first: int | None = None) -> Iterator[list[T]]:
    """Batches of items, each just over `most` in size; the first one just over `first`."""
    batch: list[T] = []
    total, wanted = 0, first or most
    for item in items:
        batch.append(item)
        total += size(item)
        if total >= wanted:
            yield batch
            batch, total, wanted = [], 0, most
    if batch:
        yield batch
