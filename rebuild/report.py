"""What a run tells in the end: one shape for a sync, a repair and a rebuild, for people and for machines."""

from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from time import monotonic
from typing import Any, Literal

from chunksink.chunkbus.findings import Finding
from chunksink.rebuild.catalog import CatalogCounts, RepeatedTexts
from chunksink.rebuild.convergence import RunOutcome
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import InvalidBus, RebuildError
from chunksink.rebuild.flip import NotRemoved
from chunksink.rebuild.model_change import ModelChange
from chunksink.rebuild.plan import FamilyCounts
from chunksink.rebuild.receipts import DeadLetter, Receipts
from chunksink.rebuild.removals import held_by_reason
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import NO_MODEL, Generation
from chunksink.sinks.errors import SinkError

_EXAMPLES = 20

RunStatus = Literal["ok", "refused", "held", "failed"]


@dataclass(frozen=True)
class SinkReport:
    """What a run did in one sink, and what stands refused there; nothing, where it could not be built yet."""

    families: FamilyCounts = field(default_factory=FamilyCounts)
    written: int = 0
    deleted: int = 0
    chunks: int = 0
    refused: tuple[DeadLetter, ...] = ()
    scanned: bool = False
    """Whether all that the engine holds was read."""
    drifted: bool = False
    """Whether that was because it did not hold what had been confirmed."""
    made_again: bool = False
    """Whether its live build was gone or broken, so that all of it was written."""
    built: bool = False
    """Whether it had no live build before, so that all of it was written."""
    held_and_lost: int = 0
    """Sources that it had and lost, and that were not written again since they are held."""
    settings: tuple[str, ...] = ()
    """Index settings that were changed."""
    error: SinkError | RebuildError | None = None


@dataclass(frozen=True)
class RunReport:
    """`status` is the worst that is to be said of the index now: a sink could not be written, families are held
    because chunks are missing or invalid, documents stand refused."""

    run_id: str
    generation: str
    families: FamilyCounts
    total: CatalogCounts
    """What the chunks say, with what is held."""
    held: dict[str, int]
    """Why families are left as they are, and how many for each reason."""
    left_behind: int
    """Sources that were in an index whose records are lost, and that no chunks have."""
    findings: tuple[Finding, ...]
    """Errors in partitions, which are left out until they are valid."""
    missing_partitions: tuple[str, ...]
    written: int
    deleted: int
    embeddings: dict[str, Any]
    repeated: RepeatedTexts | None
    sinks: dict[str, SinkReport]
    model_change: ModelChange | None
    """By a rebuild, and how much the answers change with it."""
    rebuild_due: str | None
    """Why a rebuild would make another index than the live one, if it would."""
    unconfigured: tuple[str, ...]
    """Sinks of the live index that are not configured any more: they stay as they are."""
    not_removed: tuple[NotRemoved, ...]
    """Builds that nobody needs any more, of engines that would not remove them."""
    seconds: float

    def __repr__(self) -> str:
        return f"<RunReport {self.status}: {self.written:,} chunks written, {self.deleted:,} deleted>"

    @property
    def status(self) -> RunStatus:
        if any(sink.error for sink in self.sinks.values()):
            return "failed"
        if self.held or self.findings or self.missing_partitions:
            return "held"
        return "refused" if any(sink.refused for sink in self.sinks.values()) else "ok"

    def as_json(self) -> dict[str, Any]:
        held = sum(self.held.values())
        families = asdict(self.families) | {"superseded": self.total.superseded, "held": held}
        return {
            "run_id": self.run_id,
            "status": self.status,
            "generation": self.generation,
            "families": families,
            "chunks": {"written": self.written, "deleted": self.deleted},
            "embeddings": self.embeddings,
            "sinks": {name: _sink_as_json(sink) for name, sink in self.sinks.items()},
            "held": dict(islice(self.held.items(), _EXAMPLES)),
            "left_behind": self.left_behind,
            "findings": [asdict(finding) for finding in self.findings[:_EXAMPLES]],
            "missing_partitions": list(self.missing_partitions),
            "repeated_texts": asdict(self.repeated) if self.repeated else None,
            "model_change": asdict(self.model_change) if self.model_change else None,
            "rebuild_due": self.rebuild_due,
            "unconfigured": list(self.unconfigured),
            "not_removed": [asdict(build) for build in self.not_removed],
            "seconds": round(self.seconds, 3),
        }


def conclude(
    session: Session,
    generation: Generation,
    outcome: RunOutcome,
    embedder: DocumentEmbedder,
    *,
    rebuild_due: str | None = None,
    model_change: ModelChange | None = None,
    repeated: bool = False,
) -> RunReport:
    """The report of a run, which also ends the run's record.

    `repeated` counts texts that several sources share, which takes time.
    """
    catalog = session.catalog
    builds = generation.builds
    # Only what this run writes: of others it knows nothing.
    sinks = {
        name: _sink_report(session, name, build, outcome)
        for name, build in builds.items()
        if name in session.sinks or name in outcome.done.failed
    }
    reasons = {**session.unreachable, **outcome.unbuilt}
    sinks |= {
        name: SinkReport(error=error)
        for name, error in reasons.items()
        if name not in builds and not isinstance(error, InvalidBus)  # what is held is reported anyway
    }
    report = RunReport(
        run_id=session.log.run_id,
        generation=generation.id,
        families=outcome.families,
        total=catalog.counts(),
        held=held_by_reason(session.state.db, [build for name, build in builds.items() if name in session.sinks]),
        left_behind=outcome.left_behind,
        findings=tuple(finding for finding in catalog.findings() if finding.is_error),
        missing_partitions=tuple(catalog.missing_partitions()),
        written=outcome.chunks_written,
        deleted=outcome.chunks_deleted,
        embeddings=_embeddings(embedder),
        repeated=catalog.repeated_texts() if repeated else None,
        sinks=sinks,
        model_change=model_change,
        rebuild_due=rebuild_due,
        unconfigured=tuple(name for name in builds if name not in session.config.sinks),
        not_removed=outcome.not_removed,
        seconds=monotonic() - session.started,
    )
    facts = report.as_json()
    del facts["run_id"], facts["status"]
    session.log.finish(report.status, **facts)
    return report


def _sink_report(session: Session, name: str, build_id: str, outcome: RunOutcome) -> SinkReport:
    receipts = Receipts(session.state.db, build_id)
    return SinkReport(
        families=outcome.by_sink.get(name, FamilyCounts()),
        written=outcome.done.written.get(name, 0),
        deleted=outcome.deleted_by_sink.get(name, 0),
        chunks=receipts.documents(),
        refused=tuple(receipts.dead_letters()),
        scanned=name in outcome.scanned,
        drifted=name in outcome.drifted,
        made_again=name in outcome.made_again,
        built=name in outcome.built,
        held_and_lost=receipts.held_and_lost(),
        settings=tuple(outcome.settings.get(name, ())),
        error=outcome.done.failed.get(name),
    )


def _sink_as_json(sink: SinkReport) -> dict[str, Any]:
    refused = [{"id": each.id, "parent_id": each.family, "reason": each.reason} for each in sink.refused]
    return asdict(replace(sink, refused=(), error=None)) | {
        "refused": refused,
        "error": str(sink.error) if sink.error else None,
    }


def _embeddings(embedder: DocumentEmbedder) -> dict[str, Any]:
    done, info = embedder.report, embedder.info
    there = info.fingerprint != NO_MODEL.fingerprint
    return {
        "model": info.name if there else None,
        "fingerprint": info.fingerprint if there else None,
        "precision": info.precision if there else None,
        "computed": done.encoded,
        "cached": done.reused,
        "refused": done.refused,
        "problems": {hash.hex(): problem for hash, problem in islice(done.problems.items(), _EXAMPLES)},
        "long_chunks": done.over_length,
        "corrupt": done.corrupt,
        "salvaged": [asdict(each) for each in done.salvaged],
    }
