"""The loop that all runs share: compare, plan, execute, compare again.

A sync runs it on the live builds, a repair on the live builds after a scan, a rebuild on new ones.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.runlog import utc_now
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.rebuild.compute import missing_texts
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import NotVerified
from chunksink.rebuild.executor import Executor
from chunksink.rebuild.plan import Plan, unhashed
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.report import RunOutcome
from chunksink.rebuild.scan import Scan
from chunksink.rebuild.session import Session
from chunksink.rebuild.spot_check import SpotCheck
from chunksink.rebuild.state import EMBEDDED, MODEL
from chunksink.rebuild.targets import Target
from chunksink.sinks.capabilities import SupportsSearchSettings, SupportsSettings, capability
from chunksink.sinks.projection import projection_id

_ROUNDS = 3
_PARTS = {MODEL: "load", EMBEDDED: "embed"}
"""Names of measured work in `Session.seconds`. The names of sinks become `write SINK`."""


@dataclass(eq=False)
class Convergence:
    """Updates some builds to match the catalog."""

    session: Session
    targets: Sequence[Target]
    embedder: DocumentEmbedder
    outcome: RunOutcome
    differences: dict[str, str] = field(default_factory=dict)
    """What differed in each sink that the last check scanned, for messages."""

    def check(self, *, scan: bool = False, deep: bool = False, sign: bool = True, spot_check: bool = False) -> bool:
        """Compare the marker and the number of documents of each build with its records, and scan builds that differ.
        Returns whether any build was scanned.

        With `scan`, all builds are scanned; with `deep`, scans also compare vectors; with `spot_check`, some documents
        are compared, too. Without `sign`, nothing is written to the engines, so the next run scans
        again those that differ.
        """
        scanned = False
        self.differences.clear()
        for target in self._remaining():
            with self.outcome.noting_failure(target.sink):
                scanned |= self._check_build(target, scan=scan, deep=deep, sign=sign, spot_check=spot_check)
        return scanned

    def update_settings(self) -> bool:
        """Apply the configured index settings. Call it before documents are written, so that they are indexed once.
        Returns whether a build was scanned."""
        scanned = False
        for target in self._remaining():
            settings = capability(self.session.sinks[target.sink], SupportsSettings)
            with self.outcome.noting_failure(target.sink):
                if settings is None:
                    continue
                changed = settings.update_settings(target.build_id, target.dimensions)
                if changed.names:
                    self.outcome.sink(target.sink).settings = changed.names
                if changed.vectors_in_doubt:
                    scanned |= self._check_build(target, scan=True, deep=True)
        return scanned

    def plan(self, empty: Sequence[str] = ()) -> Plan:
        """The plan for the remaining targets, and for `empty` builds, whose documents will all be written."""
        db, builds = self.session.state.db, [target.build_id for target in self._remaining()]
        for page in unhashed(db, builds):
            self.session.reader.hash_families(page)
        with self.session.lock():
            return Plan(db, [*builds, *empty], empty)

    def run(self, plan: Plan) -> None:
        """Execute the plan and check the builds. If the check scans builds, another plan is executed; its families and
        deletions are not added to the report. Raises NotVerified if builds still differ after several rounds."""
        reported = {target.sink: target.build_id for target in self._remaining()}
        for _ in range(_ROUNDS):
            if plan.is_empty():
                self.outcome.note(plan, reported)
            else:
                self._execute(plan, reported)
            if plan.is_empty() or not self.check():
                self._finish()
                return
            plan, reported = self.plan(), {}
        raise NotVerified(
            f"{'; '.join(self.differences.values())}. Still wrong after repair. Is another program writing to it?"
        )

    def _execute(self, plan: Plan, reported: Mapping[str, str]) -> None:
        self._fill_cache(plan)
        executor = Executor(self.session, self._remaining, self.embedder, self.outcome)
        with self.session.timed("index", plan.chunks_to_write(), "chunks") as advance:
            try:
                executor.run(plan, advance)
            except (PartitionChanged, EmbeddingsError):  # report what was done before
                self.outcome.note(plan, reported)
                raise
        # Not in a `finally`: an error from here would hide why the run failed.
        with self.session.lock():
            self.session.state.note_pace(executor.pace)
            for work, (_, seconds) in executor.pace.items():
                self.session.note_seconds(_PARTS.get(work) or f"write {work}", seconds)
            self.outcome.note(plan, reported)

    def _fill_cache(self, plan: Plan) -> None:
        """Let `compute` embed the texts of the plan, unless an endpoint embeds them or all are recomputed."""
        compute, embedder = self.session.compute, self.embedder
        builds = [target.build_id for target in self._remaining() if target.holds_vectors]
        if compute is None or not builds or embedder.info.device == "endpoint" or embedder.recomputes:
            return
        with (
            self.session.timed(compute.name, plan.chunks_to_write(), "chunks") as advance,
            closing(missing_texts(plan, builds, embedder, advance)) as missing,
        ):
            compute.embed(missing, embedder, advance)

    def _note_projection(self) -> None:
        """Record that the builds have the custom fields, so that searches may use them."""
        projection, noted = projection_id(self.session.intake.fields), self.session.state.projections()
        with self.session.lock():
            for target in self._remaining():
                if noted.get(target.build_id) != projection:
                    self.session.state.note_projection(target.build_id, projection)

    def _remaining(self) -> list[Target]:
        """The targets that have not failed."""
        return [target for target in self.targets if target.sink not in self.outcome.failed]

    def _check_build(
        self, target: Target, *, scan: bool, deep: bool, sign: bool = True, spot_check: bool = False
    ) -> bool:
        """Returns whether the build was scanned."""
        db, build_id, report = self.session.state.db, target.build_id, self.outcome.sink(target.sink)
        receipts, spots = Receipts(db, build_id), SpotCheck(db, build_id)
        build_scan = Scan(db, target.build, build_id, self.session.reader)
        signed = target.build.marker() in {self.session.marker(build_id, stamp) for stamp in receipts.stamps()}
        if not scan:
            matches = signed and self._has_confirmed_count(target, receipts)
            if matches and not (spot_check and spots.finds_drift(target.build, build_scan)):
                return False
            report.drifted = True
        report.scanned, began = True, utc_now()
        with self.session.timed(f"scan {target.sink}", receipts.documents(), "chunks") as advance:
            build_scan.run(advance, self.embedder.expected if deep and target.holds_vectors else None)
        what = build_scan.examples() or "its marker, or its number of documents"
        self.differences[target.sink] = f"{target.sink} differs from what was written: {what}"
        lost, altered, names = build_scan.losses()
        report.lost, report.altered = max(report.lost, lost), max(report.altered, altered)
        report.drifted_sources = report.drifted_sources or tuple(names)
        # If receipts change, the build needs a new stamp. With the old stamp, an older copy of the build would pass for
        # this one.
        must_sign = not signed or receipts.has_intents() or not build_scan.is_clean()
        with self.session.lock():
            if must_sign:  # no stamp is valid until the build is signed, so after a kill here the next run scans again
                receipts.expect_stamps(())
            build_scan.make_receipts()
            if must_sign and sign:
                self.session.stamp(target.build, receipts)
            spots.note_scan(began)
        return True

    def _finish(self) -> None:
        """Adapt search settings to the size of the builds. A new stamp makes readers open a changed build again."""
        for target in self._remaining():
            settings = capability(target.build, SupportsSearchSettings)
            with self.outcome.noting_failure(target.sink):
                changed = [] if settings is None else settings.update_search_settings()
                if changed:
                    with self.session.lock():
                        self.session.stamp(target.build, Receipts(self.session.state.db, target.build_id))
                done = self.outcome.sink(target.sink)
                if not done.written:  # after writes, changed search settings are expected
                    done.settings += tuple(changed)
        self._note_projection()

    def _has_confirmed_count(self, target: Target, receipts: Receipts) -> bool:
        """Whether the build has as many documents as its receipts say. With open intents, the number is unknown. Then
        this returns whether the next plan writes or removes every family with an intent, so that no scan is needed."""
        if receipts.has_intents():
            return not receipts.has_lasting_intents()
        return target.build.count() == receipts.documents()
