"""Executes a plan batch by batch: vectors, which are committed to the cache; then intents, writes and receipts.

Engines write in parallel while the next families are read and embedded. A rebuild holds the writer's lock for one batch
at a time, a sync throughout.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TypeVar

import numpy as np

from chunksink.chunkbus.errors import ChunksinkError
from chunksink.chunkbus.spans import span, within_span
from chunksink.chunkbus.validation import Progress
from chunksink.rebuild.catalog import Catalog, HashedFamily
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.families import PART, FamilyDocuments
from chunksink.rebuild.plan import Plan
from chunksink.rebuild.receipts import WITHOUT_VECTOR, Receipt, Receipts
from chunksink.rebuild.report import RunOutcome
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import EMBEDDED, MODEL, State
from chunksink.rebuild.targets import Target
from chunksink.sinks.capabilities import SupportsWarmUp, capability
from chunksink.sinks.contract import RefusedDocument
from chunksink.sinks.document import Family, Vectors

EMBEDDED_AT_ONCE = 512
"""Documents, where a long text counts as several: enough to keep all connections to an endpoint busy."""
WRITTEN_AT_ONCE = PART
"""Documents in a batch: many, because even a small flush takes a second or more. Two parts of a large family are never
in one batch: each part but the last has at least this size, so it ends its batch."""
_LEAST_SHARE = 1 / 4
"""A batch that ends early has at least this share of the documents before it, so that a long run has few flushes."""
REMOVED_AT_ONCE = 5000
"""Families."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Batch:
    families: Sequence[FamilyDocuments]
    hashed: Sequence[HashedFamily]
    vectors: Sequence[Vectors | None]
    needed: dict[str, set[str]]
    """The families to write to each build."""
    changed: dict[str, dict[str, set[str]]]
    """For each build and family, documents that a scan found changed."""


@dataclass(eq=False)
class Executor:
    session: Session
    targets: Callable[[], list[Target]]
    """The targets that have not failed."""
    embedder: DocumentEmbedder
    outcome: RunOutcome
    parts: dict[tuple[str, str], tuple[int, list[RefusedDocument]]] = field(default_factory=dict)
    """For each build and unfinished large family: the number of confirmed documents, and the refused ones."""
    pace: dict[str, tuple[int, float]] = field(default_factory=dict)
    """For each kind of work, its amount and its seconds: `model` (models loaded), `embedded` (bytes of text), the name
    of a sink (documents written)."""

    def run(self, plan: Plan, on_progress: Progress) -> None:
        """Execute the plan on all remaining targets. `on_progress` gets the number of documents just prepared."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batch") as thread:
            to_write = {target.build_id for target in self.targets() if plan.chunks_to_write(target.build_id)}
            writing = thread.submit(within_span(self._warm_up), to_write)

            def engines_wait() -> bool:
                return writing.done()

            for batch in self._batches(plan, on_progress, engines_wait):  # embeds the next batch while one is written
                writing.result()
                if not self.targets():
                    return
                writing = thread.submit(within_span(self._write), batch)
            writing.result()
        self._remove(plan)

    def _batches(self, plan: Plan, on_progress: Progress, engines_wait: Callable[[], bool]) -> Iterator[_Batch]:
        """Batches of families with their vectors. If vectors come slowly, batches are smaller, so that the engines
        write all the time and little is left to write after the last vector."""
        earlier = 0

        def is_enough(size: int) -> bool:
            return size >= max(EMBEDDED_AT_ONCE, _LEAST_SHARE * earlier) and (not earlier or engines_wait())

        embedded = self._embedded(plan, on_progress)
        for pairs in _by_size(embedded, WRITTEN_AT_ONCE, lambda pair: pair[0].size, is_enough):
            families = [family for family, _ in pairs]
            needed = plan.builds_of([each.family for each in families])
            changed = {build: plan.changed_documents(build, sorted(keys)) for build, keys in needed.items()}
            # Computes hashes, in this thread, while the engines write the previous batch.
            hashed = [each.hashed for each in families if each.last]
            earlier += sum(each.size for each in families)
            yield _Batch(families, hashed, [vectors for _, vectors in pairs], needed, changed)

    def _embedded(self, plan: Plan, on_progress: Progress) -> Iterator[tuple[FamilyDocuments, Vectors | None]]:
        """Families with their vectors; None for a family that only sinks without vectors need."""
        with_vectors = [target.build_id for target in self.targets() if target.holds_vectors]
        families = (each for page in plan.families_to_write() for each in self.session.reader.families(page))
        for group in _by_size(families, EMBEDDED_AT_ONCE, lambda family: family.size):
            needed = plan.builds_of([each.family for each in group])
            to_embed = set[str]().union(*(needed[build] for build in with_vectors))
            embedded = [each for each in group if each.family in to_embed]
            vectors = iter(self._embed(embedded, on_progress) if embedded else [])
            on_progress(sum(len(each.documents) for each in group if each.family not in to_embed))
            yield from ((each, next(vectors) if each.family in to_embed else None) for each in group)

    def _embed(self, families: Sequence[FamilyDocuments], on_progress: Progress) -> list[Vectors]:
        report, started, loading_before = self.embedder.report, monotonic(), self.embedder.loading_seconds
        encoded_before, bytes_before = report.encoded, report.encoded_bytes
        documents = [document for family in families for document in family.documents]
        with span("embed", documents=len(documents)):
            rows = self.embedder.embed(documents, on_progress)
        if amount := report.encoded - encoded_before:
            loading = self.embedder.loading_seconds
            seconds = monotonic() - started - (loading - loading_before)
            self._add_pace(EMBEDDED, report.encoded_bytes - bytes_before, seconds)
            if loading:
                self.pace[MODEL] = 1, loading
        on_progress(len(documents) - amount)
        return list(np.split(rows, np.cumsum([len(family.documents) for family in families])[:-1]))

    def _warm_up(self, builds: Collection[str]) -> None:
        """Open these builds, while the first batch is embedded."""
        for target in self.targets():
            slow = capability(target.build, SupportsWarmUp)
            if slow is not None and target.build_id in builds:
                with suppress(ChunksinkError):  # the write meets and reports it
                    slow.warm_up()

    def _write(self, batch: _Batch) -> None:
        """Record intents, write to all engines in parallel, then record receipts. Runs in a thread with its own
        connection."""
        targets = self.targets()
        with span("batch", families=len(batch.families)), self.session.lock(), State(self.session.state.home) as state:
            Catalog(state).note_hashes(batch.hashed)
            for target in targets:
                Receipts(state.db, target.build_id).intend(batch.needed[target.build_id])
            with ThreadPoolExecutor(max_workers=max(1, len(targets)), thread_name_prefix="sink") as threads:
                writing = [(target, threads.submit(within_span(self._replace), target, batch)) for target in targets]
            for target, future in writing:
                with self.outcome.noting_failure(target.sink):
                    sent, refused = future.result()
                    self.outcome.sink(target.sink).written += sent
                    if batch.needed[target.build_id]:
                        receipts = Receipts(state.db, target.build_id)
                        self.session.stamp(target.build, receipts)
                        self._confirm(receipts, target, batch, self._with_reasons(batch, refused))

    def _replace(self, target: Target, batch: _Batch) -> tuple[int, list[RefusedDocument]]:
        """Write the batch to one build. Returns how many documents the engine was sent, and those that it refused."""
        changed = batch.changed[target.build_id]
        families = [
            Family(each.documents, vectors, changed.get(each.family, ()), first=each.first, last=each.last)
            for each, vectors in zip(batch.families, batch.vectors, strict=True)
            if each.family in batch.needed[target.build_id]
        ]
        if not families:
            return 0, []
        started = monotonic()
        sent = target.build.replace(families)
        refused = target.build.flush()
        self._add_pace(target.sink, sum(len(family.documents) for family in families), monotonic() - started)
        return sent, refused

    def _confirm(self, receipts: Receipts, target: Target, batch: _Batch, refused: Sequence[RefusedDocument]) -> None:
        """Write receipts. A large family gets its receipt with its last part."""
        refused_of = defaultdict[str, list[RefusedDocument]](list)
        for one in refused:
            refused_of[one.parent_id].append(one)
        confirmed: list[Receipt] = []
        dead_letters: list[RefusedDocument] = []
        for each in batch.families:
            if each.family not in batch.needed[target.build_id]:
                continue
            documents, refused_so_far = self.parts.pop((target.build_id, each.family), (0, []))
            refused_so_far = refused_so_far + refused_of[each.family]
            documents += len(each.documents) - len(refused_of[each.family])
            if each.last:
                confirmed.append(Receipt(each.family, each.family_hash, documents, each.label))
                dead_letters += refused_so_far
            else:
                self.parts[target.build_id, each.family] = documents, refused_so_far
        receipts.confirm(confirmed, dead_letters)

    def _with_reasons(self, batch: _Batch, refused: Sequence[RefusedDocument]) -> list[RefusedDocument]:
        """Adds the encoder's reason to documents that were refused because they have no vector."""
        documents = {document.id: document for each in batch.families for document in each.documents}
        explained = []
        for one in refused:
            problem = self.embedder.problem_of(documents[one.id]) if one.id in documents else None
            explained.append(one if problem is None else replace(one, reason=f"{WITHOUT_VECTOR}{problem}"))
        return explained

    def _remove(self, plan: Plan) -> None:
        for target in self.targets():
            removals, receipts = plan.removals(target.build_id), Receipts(self.session.state.db, target.build_id)
            with self.outcome.noting_failure(target.sink):
                for start in range(0, len(removals), REMOVED_AT_ONCE):
                    families = removals[start : start + REMOVED_AT_ONCE]
                    with self.session.lock():
                        receipts.intend(families)
                        target.build.delete(families)
                        target.build.flush()
                        self.session.stamp(target.build, receipts)
                        receipts.confirm_removed(families)

    def _add_pace(self, work: str, amount: int, seconds: float) -> None:
        before, seconds_before = self.pace.get(work, (0, 0.0))
        self.pace[work] = before + amount, seconds_before + seconds


def _by_size(
    items: Iterable[T], most: int, size: Callable[[T], int], is_enough: Callable[[int], bool] = lambda size: False
) -> Iterator[list[T]]:
    """Batches of items. A batch ends when it reaches the size `most`, or earlier at a size that is enough."""
    batch: list[T] = []
    total = 0
    for item in items:
        batch.append(item)
        total += size(item)
        if total >= most or is_enough(total):
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
