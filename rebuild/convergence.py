"""The one loop that all runs share: compare, plan, carry out, compare again.

A sync runs it on the live builds, a repair on the live builds after a scan, a rebuild on new ones.
"""

from collections.abc import Sequence
from contextlib import nullcontext

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.runlog import utc_now
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import NotVerified
from chunksink.rebuild.executor import Executor, Lock
from chunksink.rebuild.plan import Plan, unhashed
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.report import RunOutcome
from chunksink.rebuild.scan import Scan
from chunksink.rebuild.session import Session
from chunksink.rebuild.spot_check import SpotCheck
from chunksink.rebuild.state import Generation
from chunksink.rebuild.targets import Target, dimensions
from chunksink.settings.engine_settings import EMBEDDERS
from chunksink.sinks.capabilities import SupportsSearchSettings, SupportsSettings, capability
from chunksink.sinks.errors import SinkError

_ROUNDS = 3


class Convergence:
    """Brings some builds to what the catalog says."""

    def __init__(
        self,
        session: Session,
        targets: Sequence[Target],
        embedder: DocumentEmbedder,
        outcome: RunOutcome,
        lock: Lock = nullcontext,
    ) -> None:
        self._session = session
        self._targets = targets
        self._embedder = embedder
        self._outcome = outcome
        self._lock = lock
        self._wrong: dict[str, str] = {}

    def look(self, *, scan: bool = False, deep: bool = False, sign: bool = True, spots: bool = False) -> bool:
        """Compares marker and count of each build with its records, and with `spots` some of its documents; where they
        differ the engine is scanned, and what has not our marker is signed, if `sign`. Returns whether any was scanned.
        """
        scanned = False
        for target in self._going():
            try:
                scanned |= self._look_at(target, scan=scan, deep=deep, sign=sign, spots=spots)
            except SinkError as error:
                self._outcome.sink(target.sink).error = error
        return scanned

    def update_settings(self, generation: Generation) -> bool:
        """Brings index settings to those configured, before documents: those that come are indexed once. Returns
        whether receipts were made anew meanwhile."""
        takes_vectors_again = False
        for target in self._going():
            settings = capability(self._session.sinks[target.sink], SupportsSettings)
            try:
                changed = self._fit_search(target)
                if settings is not None:
                    changed += settings.update_settings(target.build_id, **dimensions(generation, target))
                if changed:
                    self._outcome.sink(target.sink).settings = tuple(changed)
                    # Some vectors may have come while the engine took none: they are compared one by one.
                    takes_vectors_again |= EMBEDDERS in changed and self._look_at(target, scan=True, deep=True)
            except SinkError as error:
                self._outcome.sink(target.sink).error = error
        return takes_vectors_again

    def plan(self, empty: Sequence[str] = ()) -> Plan:
        """Also for builds that are not there, and so `empty`."""
        db, builds = self._session.state.db, [target.build_id for target in self._going()]
        for page in unhashed(db, builds):
            self._session.records.project(page)
        with self._lock():
            return Plan(db, [*builds, *empty], removals=self._session.catalog.is_whole(), empty=empty)

    def run(self, plan: Plan) -> None:
        """Carries out the plan and counts the engines again. Only the first round is noted; later ones repair."""
        for number in range(_ROUNDS):
            noted = {target.sink: target.build_id for target in self._going()} if number == 0 else {}
            if plan.is_empty():
                self._outcome.note(plan, noted)
                return
            executor = Executor(self._session, self._going(), self._embedder, self._outcome, self._lock)
            with self._session.stage("index", plan.chunks_to_write(), "chunks") as bar:
                try:
                    executor.run(plan, bar.advance)
                except PartitionChanged:  # what was done until then is done
                    self._outcome.note(plan, noted)
                    raise
            # Not where the run was broken off: what happens here would take the place of why.
            with self._lock():
                self._session.state.note_pace(executor.pace)
                self._outcome.note(plan, noted)
            if not self.look():
                self._fit_searches()
                return
            plan = self.plan()
        raise NotVerified(
            f"{'; '.join(self._wrong.values())}. So it was after every repair: look for who else writes there"
        )

    def _going(self) -> list[Target]:
        return [target for target in self._targets if target.sink not in self._outcome.failed]

    def _look_at(self, target: Target, *, scan: bool, deep: bool, sign: bool = True, spots: bool = False) -> bool:
        """Whether it was scanned."""
        receipts = Receipts(self._session.state.db, target.build_id)
        signed = target.build.marker() in {self._session.marker(target.build_id, stamp) for stamp in receipts.stamps()}
        if not scan:
            if signed and self._is_as_confirmed(target, receipts) and not (spots and self._finds_drift(target)):
                return False
            self._outcome.sink(target.sink).drifted = True
        self._outcome.sink(target.sink).scanned = True
        found, began = self._scan(target), utc_now()
        with self._session.stage(f"scan {target.sink}", receipts.documents(), "chunks") as bar:
            found.run(
                bar.advance,
                removals=self._session.catalog.is_whole(),
                cached=self._embedder.expected if deep and target.holds_vectors else None,
            )
        self._wrong[target.sink] = f"{target.sink} holds something else than it was sent: {found.examples()}"
        report, (lost, altered) = self._outcome.sink(target.sink), found.losses()
        report.lost, report.altered = max(report.lost, lost), max(report.altered, altered)
        with self._lock():
            # What is known of it changes, and an older copy may bear this stamp. The new one is expected before the
            # marker bears it: a run that is killed in between scans again.
            renewed = receipts.has_intents() or not found.is_clean() if signed else sign
            stamp = receipts.expect_new_stamp() if renewed else ""
            found.make_receipts(receipts)
            if renewed:
                target.build.sign(self._session.marker(target.build_id, stamp))
            SpotCheck(self._session.state.db, target.build_id).note_scan(began)
        return True

    def _finds_drift(self, target: Target) -> bool:
        """In the part of it whose turn it is."""
        check = SpotCheck(self._session.state.db, target.build_id)
        if not check.is_due(target.build):
            return False
        families = check.families()
        if families and self._scan(target).finds_drift_in(families):
            return True
        check.note()
        return False

    def _scan(self, target: Target) -> Scan:
        return Scan(self._session.state.db, target.build, target.build_id, self._session.records)

    def _fit_searches(self) -> None:
        """Builds have grown or shrunk."""
        for target in self._going():
            try:
                self._fit_search(target)
            except SinkError as error:
                self._outcome.sink(target.sink).error = error

    def _fit_search(self, target: Target) -> list[str]:
        """Settings of its search follow from what a build holds; where they changed it is signed, and readers open it
        again."""
        settings = capability(target.build, SupportsSearchSettings)
        changed = [] if settings is None else settings.update_search_settings()
        if changed:
            with self._lock():
                self._session.stamp(target.build, Receipts(self._session.state.db, target.build_id))
        return changed

    def _is_as_confirmed(self, target: Target, receipts: Receipts) -> bool:
        """By its count; where an intent is open, that is not known. One that no plan closes is closed by a scan."""
        if receipts.has_intents():
            return not receipts.has_lasting_intents(removals=self._session.catalog.is_whole())
        return target.build.count() == receipts.documents()
