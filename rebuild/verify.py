"""Verify: every live build is read through its engine's interface and compared with the chunks.

Syncs can run meanwhile. A repair is a sync after a scan has recreated the receipts.
"""

from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.rebuild.embedder import Lookup
from chunksink.rebuild.errors import OtherHome, Removal
from chunksink.rebuild.flip import live_generation
from chunksink.rebuild.intake import retry_if_rewritten
from chunksink.rebuild.locks import reading_live
from chunksink.rebuild.ownership import is_shown, require_our_build
from chunksink.rebuild.recall import Recall, measure
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.removals import held_by_reason, large_removal
from chunksink.rebuild.report import RunOutcome
from chunksink.rebuild.scan import CHANGED, EXTRA, MISSING, DriftedSource, Scan
from chunksink.rebuild.schema import exists
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import Generation
from chunksink.rebuild.targets import Opening, Target, open_targets, settings_due
from chunksink.sinks.errors import BuildBroken, BuildMissing, SinkError


@dataclass(frozen=True)
class SinkCheck:
    """The result for one sink. `missing`, `extra`, `changed` and `refused` are ids of documents."""

    families: int
    chunks: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    changed: tuple[str, ...]
    drifted_sources: tuple[DriftedSource, ...]
    refused: tuple[str, ...]
    digest: str
    shown: bool
    """Whether other programs find the build under the sink's public name, if the sink has one."""
    settings: tuple[str, ...]
    unjudged: int
    """Vectors that could not be compared, because their texts have no cached vector."""
    recall: Recall | None = None
    """The recall of its vector search, if it was measured."""

    @property
    def matches_chunks(self) -> bool:
        return not (self.missing or self.extra or self.changed)

    @property
    def ok(self) -> bool:
        return self.matches_chunks and self.shown and not (self.settings or self.unjudged)

    @property
    def is_behind(self) -> bool:
        """Whether the only differences are changes that wait for a sync."""
        is_pending = not self.matches_chunks and all(source.pending for source in self.drifted_sources)
        return is_pending and self.shown and not (self.settings or self.unjudged)


@dataclass(frozen=True)
class InputPartition:
    partition: str
    reading_id: int
    """The id of its last valid reading."""
    state: str
    checksum: str
    chunks: int


@dataclass(frozen=True)
class VerifyReport:
    live: Generation
    inputs: tuple[InputPartition, ...]
    """The partitions that the builds were compared with."""
    sinks: dict[str, SinkCheck]
    """By sink. A missing or broken build counts as empty. Other sinks that could not be read have no result."""
    failed: dict[str, SinkError | OtherHome]
    """Sinks that could not be read, whose searches miss documents, whose marker is lost, or that another home uses."""
    unconfigured: tuple[str, ...]
    """Sinks of the live index that are no longer configured; they were not checked."""
    unbuilt: tuple[str, ...]
    """Configured sinks without a build."""
    held: int
    """Sources that were not compared, because their chunks are missing, invalid or contradictory."""
    unread: tuple[str, ...]
    """Partitions that are missing or invalid. While there are any, documents of families that are not in the catalog
    do not count as extra, since these partitions may contain them."""
    brake: Removal | None
    """The removal that would stop a sync or repair without a flag."""

    def __repr__(self) -> str:
        return f"<VerifyReport {', '.join([self.status, *self.drifted])}>"

    @property
    def unknown(self) -> dict[str, SinkError]:
        """Sinks without a result."""
        failed = self.failed.items()
        return {name: error for name, error in failed if isinstance(error, SinkError) and name not in self.sinks}

    @property
    def ok(self) -> bool:
        return not (self.failed or self.unbuilt) and all(sink.ok for sink in self.sinks.values())

    @property
    def status(self) -> Literal["ok", "behind", "held", "drift", "failed"]:
        """The worst result: `drift`, `failed` (a sink could not be read), `held` (chunks could not be compared) or
        `behind` (changes wait for a sync)."""
        if self.drifted or self.failed:
            return "drift" if self.drifted else "failed"
        return "held" if self.held or self.unread else "ok" if self.ok else "behind"

    @property
    def drifted(self) -> dict[str, str | None]:
        """The builds that are wrong and not only behind, by sink; None for a sink without a build."""
        different = (name for name, sink in self.sinks.items() if not (sink.ok or sink.is_behind))
        wrong = [*self.unbuilt, *self.failed, *different]
        return {name: self.live.builds.get(name) for name in wrong if name not in self.unknown}

    def as_json(self) -> dict[str, Any]:
        """The same fields for each sink; null or empty for one without a result."""
        names = [*self.sinks, *(name for name in self.failed if name not in self.sinks)]
        sinks = {name: _as_json(self.sinks.get(name), self.failed.get(name)) for name in names}
        lists = {"unconfigured": self.unconfigured, "unbuilt": self.unbuilt, "unread": self.unread}
        facts = {"ok": self.ok, "status": self.status, "sinks": sinks, "held": self.held}
        return facts | {name: list(of) for name, of in lists.items()}

    def numbers(self) -> dict[str, dict[str, Any]]:
        """For the record of the run: errors, builds, and numbers instead of lists. Errors come first, because
        `chunksink runs` cuts long values off."""
        counted = ("missing", "extra", "changed", "refused", "drifted_sources")
        numbers: dict[str, dict[str, Any]] = {name: {"error": str(error)} for name, error in self.failed.items()}
        for name, sink in self.sinks.items():
            numbers.setdefault(name, {})["build"] = self.live.builds[name]
            numbers[name] |= {field: len(value) if field in counted else value for field, value in asdict(sink).items()}
        return numbers


def _as_json(sink: SinkCheck | None, error: Exception | None) -> dict[str, Any]:
    facts: dict[str, Any] = dict.fromkeys(("families", "chunks", "digest", "shown", "unjudged", "recall"))
    facts |= dict.fromkeys(("missing", "extra", "changed", "drifted_sources", "refused", "settings"), ())
    if sink is not None:
        facts = asdict(sink)
    ok = error is None and sink is not None and sink.ok
    return {"ok": ok, **facts, "error": str(error) if error else None}


def verify(session: Session, *, deep: bool = False, recall: bool = False) -> VerifyReport:
    """Compare every live build with the chunks; with `deep`, also every vector with the cached one. With `recall`,
    measure how many of the nearest documents each build's vector search finds.

    If there are differences and another run has written meanwhile, everything is compared again with the writer's lock
    held.
    """
    report: VerifyReport | None = None
    with ExitStack() as stack, suppress(PartitionChanged):
        with session.lock.at_start():
            _refresh(session)
            live = stack.enter_context(reading_live(session.state))
            version = session.state.version()
        report = _verify(session, live, deep, recall)
        if report.ok and session.state.live() == live:
            return report
    with session.lock():
        if report is not None and session.state.version() == version:
            return report
        return retry_if_rewritten(partial(_verify_now, session, deep, recall))


def _verify_now(session: Session, deep: bool, recall: bool) -> VerifyReport:
    _refresh(session)
    return _verify(session, session.state.live(), deep, recall)


def _refresh(session: Session) -> None:
    live_generation(session)
    session.state.live()  # an error if nothing was built yet, before the chunks are read
    session.refresh()


def _verify(session: Session, live: Generation, deep: bool, recall: bool) -> VerifyReport:
    """Raises PartitionChanged if another run has read chunks meanwhile."""
    inputs = _inputs(session)
    changed = PartitionChanged(f"another run has read chunks into {session.state.home} meanwhile; run again")
    if exists(session.state.db, "undecided"):
        raise changed
    opened = RunOutcome()
    failed: dict[str, SinkError | OtherHome] = dict(session.unreachable)
    embedder = session.embedders.of_live(live, replace_damaged=False) if deep or recall else None
    cached = embedder.expected if embedder is not None and deep else None
    checks: dict[str, SinkCheck] = {}
    with open_targets(session, live, opened, Opening(make=False, adopt=True)) as targets:
        by_name = {target.sink: target for target in targets}
        for name in (name for name in session.sinks if name in live.builds):
            try:
                if name in opened.failed:
                    raise opened.failed[name]
                target = by_name[name]
                checks[name], damage = _compared(session, live, name, target, cached)
                if damage:
                    failed[name] = BuildBroken(damage)
                require_our_build(session, session.sinks[name], target.build, adopt=False)
                if target.build.marker() is None:
                    failed[name] = BuildBroken(
                        "the build has lost its marker, by which searches recognise it", "`chunksink sync` restores it"
                    )
                if embedder is not None and recall and target.holds_vectors and checks[name].matches_chunks:
                    measured = measure(session.state, session.sinks[name], target.build_id, embedder.cached)
                    checks[name] = replace(checks[name], recall=measured)
            except (BuildMissing, BuildBroken) as error:
                failed[name] = error
                checks[name], _ = _compared(session, live, name, None, None)
            except (SinkError, OtherHome) as error:
                failed[name] = error
    if _inputs(session) != inputs:
        raise changed
    return VerifyReport(
        live,
        inputs,
        checks,
        failed,
        unconfigured=tuple(name for name in live.builds if name not in {*session.sinks, *session.unreachable}),
        unbuilt=tuple(name for name in session.sinks if name not in live.builds),
        held=sum(held_by_reason(session.state.db, list(live.builds.values())).values()),
        unread=tuple(session.catalog.unread_partitions()),
        brake=large_removal(session.state.db, live.builds_of(session.config.sinks)),
    )


def _inputs(session: Session) -> tuple[InputPartition, ...]:
    rows = session.state.db.execute(
        "select key, reading_id, state, checksum, (select count(*) from chunk where partition = key) from partition "
        "where checksum is not null order by key"
    )
    return tuple(InputPartition(*row) for row in rows)


def _compared(
    session: Session, live: Generation, name: str, target: Target | None, cached: Lookup | None
) -> tuple[SinkCheck, str]:
    """The result, and why searches of the engine miss documents, or "". Without a target, all documents are missing."""
    build_id = live.builds[name]
    receipts = Receipts(session.state.db, build_id)
    holds_vectors = session.sinks[name].wants_vectors and live.holds_vectors
    scan = Scan(session.state.db, target.build if target else None, build_id, session.reader)
    with session.timed(f"verify {name}", receipts.documents(), "chunks") as advance:
        scan.run(advance, cached if holds_vectors else None)
    families, chunks, digest = scan.totals(live.model_fingerprint if holds_vectors else None)
    verified = SinkCheck(
        families=families,
        chunks=chunks,
        missing=tuple(scan.drift(MISSING)),
        extra=tuple(scan.drift(EXTRA)),
        changed=tuple(scan.drift(CHANGED)),
        drifted_sources=tuple(scan.drifted_sources()),
        refused=tuple(letter.id for letter in receipts.dead_letters()),
        digest=digest,
        shown=is_shown(session, session.sinks[name], build_id),
        settings=tuple(settings_due(session, target)) if target else (),
        unjudged=scan.unjudged,
    )
    return verified, scan.damage
