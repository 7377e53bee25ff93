"""The one loop that all runs share: compare, plan, carry out, compare again.

A sync runs it on the live builds, a repair on the live builds after a scan, a rebuild on new ones.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import NotVerified, RebuildError
from chunksink.rebuild.executor import Executor, Lock, WriteResult
from chunksink.rebuild.flip import NotRemoved
from chunksink.rebuild.plan import FamilyCounts, Plan, unhashed
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.scan import Scan
from chunksink.rebuild.session import Session
from chunksink.rebuild.targets import Target
from chunksink.sinks.errors import SinkError

_ROUNDS = 3


@dataclass
class RunOutcome:
    """What a run did, by sink, as far as it came."""

    families: FamilyCounts = field(default_factory=FamilyCounts)
    chunks_written: int = 0
    chunks_deleted: int = 0
    by_sink: dict[str, FamilyCounts] = field(default_factory=dict)
    deleted_by_sink: dict[str, int] = field(default_factory=dict)
    done: WriteResult = field(default_factory=WriteResult)
    settings: dict[str, list[str]] = field(default_factory=dict)
    """By sink, settings of its live build that were brought to those configured."""
    scanned: list[str] = field(default_factory=list)
    """Sinks whose receipts were made anew from what the engine shows."""
    drifted: list[str] = field(default_factory=list)
    """Those of them that were scanned because they did not hold what had been confirmed."""
    made_again: list[str] = field(default_factory=list)
    """Sinks whose live build was gone or broken."""
    built: list[str] = field(default_factory=list)
    """Sinks that had no live build before."""
    unbuilt: dict[str, SinkError | RebuildError] = field(default_factory=dict)
    """Sinks that have no live build, and why they could not be built."""
    not_removed: tuple[NotRemoved, ...] = ()
    """Builds that nobody needs any more, of engines that would not remove them."""
    left_behind: int = 0
    """Sources that were in an index whose records are lost, and that no chunks have."""

    def include(self, earlier: "RunOutcome") -> None:
        """What an earlier part of the same run did, before it made broken builds anew: totals are of the last part."""
        self._include(earlier)
        self.chunks_written = max(self.chunks_written, earlier.chunks_written)
        self.chunks_deleted = max(self.chunks_deleted, earlier.chunks_deleted)
        self.deleted_by_sink = earlier.deleted_by_sink | self.deleted_by_sink

    def follow(self, earlier: "RunOutcome") -> None:
        """What an earlier part of the same run did, until the bus moved under it."""
        self._include(earlier)
        self.families = earlier.families.then(self.families)
        self.chunks_written += earlier.chunks_written
        self.chunks_deleted += earlier.chunks_deleted
        for sink, deleted in earlier.deleted_by_sink.items():
            self.deleted_by_sink[sink] = self.deleted_by_sink.get(sink, 0) + deleted

    def _include(self, earlier: "RunOutcome") -> None:
        for sink, counts in earlier.by_sink.items():
            self.by_sink[sink] = counts.then(self.by_sink.get(sink, FamilyCounts()))
        self.left_behind = max(self.left_behind, earlier.left_behind)
        self.done.include(earlier.done)
        self.settings = earlier.settings | self.settings
        self.unbuilt = earlier.unbuilt | self.unbuilt
        self.not_removed = earlier.not_removed + self.not_removed
        for mine, theirs in (
            (self.scanned, earlier.scanned),
            (self.drifted, earlier.drifted),
            (self.made_again, earlier.made_again),
            (self.built, earlier.built),
        ):
            mine.extend(sink for sink in theirs if sink not in mine)


class Convergence:
    """Brings some builds to what the catalog says."""

    def __init__(
        self, session: Session, targets: Sequence[Target], embedder: DocumentEmbedder, lock: Lock = nullcontext
    ):
        self._session = session
        self._targets = targets
        self._embedder = embedder
        self._lock = lock
        self._wrong: dict[str, str] = {}
        self.outcome = RunOutcome()

    def look(self, *, scan: bool = False, deep: bool = False, sign: bool = True) -> None:
        """Compares marker and count of each build with its records; where they differ the engine is scanned, and what
        has not our marker is signed, if `sign`."""
        for target in self._going():
            try:
                self._look_at(target, scan=scan, deep=deep, sign=sign)
            except SinkError as error:
                self.outcome.done.failed[target.sink] = error

    def plan(self, empty: Sequence[str] = ()) -> Plan:
        """Also for builds that are not there, and so `empty`."""
        db, builds = self._session.state.db, [target.build_id for target in self._going()]
        for page in unhashed(db, builds):
            self._session.records.project(page)
        with self._lock():
            return Plan(db, [*builds, *empty], removals=self._session.catalog.is_whole(), empty=empty)

    def run(self, plan: Plan) -> None:
        """Carries out the plan; then the engines are asked whether they hold as much as they confirmed.

        What the first round did is noted; later ones only put that right.
        """
        for number in range(_ROUNDS):
            noted = self._going() if number == 0 else []
            if plan.is_empty():
                self._note(plan, noted)
                return
            self._stamp(plan)
            executor = Executor(self._session.state, self._session.records, self._going(), self._embedder, self._lock)
            with self._session.stage("index", plan.chunks_to_write(), "chunks") as bar:
                try:
                    executor.run(plan, bar.advance)
                except PartitionChanged:  # what was done until then is done
                    self._note(plan, noted)
                    raise
                finally:
                    self.outcome.done.include(executor.done)
                    self.outcome.done.failed |= executor.done.failed
            # Not where the run was broken off: what happens here would take the place of why.
            with self._lock():
                self._session.state.note_pace(executor.done.pace)
                self._note(plan, noted)
            self._stamp(plan)
            before = len(self.outcome.scanned)
            self.look()
            if len(self.outcome.scanned) == before:
                return
            plan = self.plan()
        raise NotVerified(
            f"{'; '.join(self._wrong.values())}. So it was after every repair: look for who else writes there"
        )

    def _going(self) -> list[Target]:
        return [target for target in self._targets if target.sink not in self.outcome.done.failed]

    def _look_at(self, target: Target, *, scan: bool, deep: bool, sign: bool) -> None:
        receipts = Receipts(self._session.state.db, target.build_id)
        signed = target.build.marker() in {self._session.marker(target.build_id, stamp) for stamp in receipts.stamps()}
        if not scan:
            if signed and self._is_as_confirmed(target, receipts):
                return
            self.outcome.drifted.append(target.sink)
        self.outcome.scanned.append(target.sink)
        found = Scan(self._session.state.db, target.build, target.build_id, self._session.records)
        with self._session.stage(f"scan {target.sink}", receipts.documents(), "chunks") as bar:
            found.run(
                bar.advance,
                removals=self._session.catalog.is_whole(),
                cached=self._embedder.expected if deep and target.holds_vectors else None,
            )
        self._wrong[target.sink] = f"{target.sink} holds something else than it was sent: {found.examples()}"
        with self._lock():
            found.make_receipts(receipts)
        if sign and not signed:
            self._sign(target)

    def _stamp(self, plan: Plan) -> None:
        """Builds that are written to are signed before the first document and after the last: a copy from before this
        run, or from its middle, is not taken for the build."""
        for target in self._going():
            if plan.touches(target.build_id):
                try:
                    self._sign(target)
                except SinkError as error:
                    self.outcome.done.failed[target.sink] = error

    def _sign(self, target: Target) -> None:
        with self._lock():
            Receipts(self._session.state.db, target.build_id).renew_stamp(
                lambda stamp: target.build.sign(self._session.marker(target.build_id, stamp))
            )

    def _is_as_confirmed(self, target: Target, receipts: Receipts) -> bool:
        """By its count; where an intent is open, that is not known. One that no plan closes is closed by a scan."""
        if receipts.has_intents():
            return not receipts.has_lasting_intents(removals=self._session.catalog.is_whole())
        return target.build.count() == receipts.documents()

    def _note(self, plan: Plan, targets: Sequence[Target]) -> None:
        """What these have confirmed of a plan, after what was noted before."""
        if not targets:
            return
        outcome = self.outcome
        outcome.families = outcome.families.then(plan.confirmed())
        outcome.chunks_written += plan.chunks_written()
        leaving = {target.sink: plan.leaving(target.build_id, confirmed=True) for target in targets}
        for target in targets:
            earlier = outcome.by_sink.get(target.sink, FamilyCounts())
            outcome.by_sink[target.sink] = earlier.then(plan.confirmed(target.build_id))
            outcome.deleted_by_sink[target.sink] = outcome.deleted_by_sink.get(target.sink, 0) + leaving[target.sink]
        outcome.chunks_deleted += max(leaving.values())
