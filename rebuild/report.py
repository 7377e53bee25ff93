"""The outcome of a run while it works, and its final report; the same for syncs, repairs and rebuilds."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from time import monotonic
from typing import Any, Literal

from chunksink.chunkbus.findings import Finding
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.rebuild.catalog import CatalogCounts, RepeatedTexts
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import InvalidBus, RebuildError
from chunksink.rebuild.families import source_names
from chunksink.rebuild.model_change import ModelChange
from chunksink.rebuild.plan import FamilyCounts, Plan
from chunksink.rebuild.receipts import DeadLetter, Receipts
from chunksink.rebuild.removals import held_by_reason, held_families
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import NO_MODEL, Generation
from chunksink.sinks.errors import SinkError

_EXAMPLES = 20

RunStatus = Literal["ok", "refused", "held", "failed"]


@dataclass
class SinkReport:
    """What a run did in one sink."""

    families: FamilyCounts = field(default_factory=FamilyCounts)
    written: int = 0
    """Documents sent to it, without those that it already had."""
    deleted: int = 0
    """By how many documents its sources have shrunk."""
    chunks: int = 0
    """Confirmed documents of its live build after the run."""
    refused: tuple[DeadLetter, ...] = ()
    """Documents that its live build lacks because the engine refused them."""
    scanned: bool = False
    """A scan of the engine recreated its receipts."""
    drifted: bool = False
    """It was scanned because it differed from its records."""
    lost: int = 0
    """Sources that lack confirmed documents, according to a scan."""
    altered: int = 0
    """Other sources that differ from what was confirmed."""
    drifted_sources: tuple[str, ...] = ()
    made_again: bool = False
    """Its live build was missing or broken and was written again."""
    built: bool = False
    """It had no live build before."""
    held_and_missing: int = 0
    """Sources that it lacks and that were not written because they are held."""
    settings: tuple[str, ...] = ()
    error: SinkError | RebuildError | EmbeddingsError | None = None
    """Why it could not be written or built; the state of its last batch is unknown."""


@dataclass(frozen=True)
class NotRemoved:
    """An unused build that its engine did not remove; a later run tries again."""

    sink: str
    build: str
    reason: str


@dataclass
class RunOutcome:
    """What a run did. Totals count a family once, not once per sink."""

    families: FamilyCounts = field(default_factory=FamilyCounts)
    chunks_deleted: int = 0
    sinks: dict[str, SinkReport] = field(default_factory=dict)
    not_removed: dict[str, NotRemoved] = field(default_factory=dict)
    """By build."""
    model_change: ModelChange | None = None
    evaluation: Mapping[str, Any] | None = None

    def sink(self, name: str) -> SinkReport:
        return self.sinks.setdefault(name, SinkReport())

    @contextmanager
    def noting_failure(self, name: str) -> Iterator[None]:
        """Record an engine error that the block raises. The run continues without this sink."""
        try:
            yield
        except SinkError as error:
            self.sink(name).error = error

    @property
    def chunks_written(self) -> int:
        """The largest number of documents sent to one sink."""
        return max((sink.written for sink in self.sinks.values()), default=0)

    @property
    def failed(self) -> dict[str, SinkError | RebuildError | EmbeddingsError]:
        return {name: sink.error for name, sink in self.sinks.items() if sink.error is not None}

    def note(self, plan: Plan, builds: Mapping[str, str]) -> None:
        """Add the confirmed part of a plan. `builds` are by sink."""
        if not builds:
            return
        self.families = self.families.then(plan.confirmed())
        shrinkage = {name: plan.shrinkage(build, confirmed=True) for name, build in builds.items()}
        for name, build in builds.items():
            sink = self.sink(name)
            sink.families = sink.families.then(plan.confirmed(build))
            sink.deleted += shrinkage[name]
        self.chunks_deleted += max(shrinkage.values())


@dataclass(frozen=True)
class RunReport:
    """The final report. `status` is the first of these that applies: `failed` (a sink could not be written), `held`
    (partitions are missing or invalid, or sources are held), `refused` (an engine refused documents), `ok`."""

    run_id: str
    generation: str
    families: FamilyCounts
    total: CatalogCounts
    """All current families and chunks, including held ones."""
    held: dict[str, int]
    """Reasons why families are held, and how many for each."""
    held_sources: dict[str, tuple[str, ...]]
    """Names of some held sources, by reason."""
    findings: tuple[Finding, ...]
    """See `first_findings`."""
    errors: int
    wrong_field_values: int
    """Values of a wrong type for their custom field; documents are indexed without them."""
    missing_partitions: tuple[str, ...]
    written: int
    deleted: int
    embeddings: dict[str, Any]
    repeated: RepeatedTexts | None
    sinks: dict[str, SinkReport]
    model_change: ModelChange | None
    """In a rebuild: how much the answers change with a new model."""
    evaluation: Mapping[str, Any] | None
    """In a rebuild with a check: how good the answers are, compared with those before."""
    rebuild_due: str | None
    """Why a rebuild would make a different index."""
    unconfigured: tuple[str, ...]
    """Sinks of the live index that are no longer configured, so they were not updated."""
    not_removed: tuple[NotRemoved, ...]
    seconds: float

    def __repr__(self) -> str:
        return f"<RunReport {self.status}: {self.written:,} chunks written, {self.deleted:,} deleted>"

    @property
    def status(self) -> RunStatus:
        if any(sink.error for sink in self.sinks.values()):
            return "failed"
        if self.held or self.errors or self.missing_partitions:
            return "held"
        return "refused" if any(sink.refused for sink in self.sinks.values()) else "ok"

    def as_json(self) -> dict[str, Any]:
        facts = asdict(replace(self, sinks={}))
        repeated, total = facts.pop("repeated"), facts.pop("total")
        facts["status"] = self.status
        facts["families"] |= {"superseded": total["superseded"], "held": sum(self.held.values())}
        facts["chunks"] = {"written": facts.pop("written"), "deleted": facts.pop("deleted")}
        facts["sinks"] = {name: _sink_as_json(sink) for name, sink in self.sinks.items()}
        facts["held"] = dict(islice(self.held.items(), _EXAMPLES))
        facts["repeated_texts"] = repeated
        facts["seconds"] = round(self.seconds, 3)
        return facts


def first_findings(session: Session) -> tuple[Finding, ...]:
    """The first errors in partitions, then the first warnings in partitions that this run has read."""
    errors = (finding for finding in session.catalog.findings(_EXAMPLES) if finding.is_error)
    return (*errors, *session.intake.warnings(_EXAMPLES))


def conclude(
    session: Session,
    generation: Generation,
    outcome: RunOutcome,
    embedder: DocumentEmbedder,
    *,
    rebuild_due: str | None = None,
    repeated: bool = False,
) -> RunReport:
    """Make the report of a run and finish its record. With `repeated`, it counts texts that sources share (slow)."""
    catalog, builds = session.catalog, generation.builds
    sinks = {
        name: _with_records(session, build, outcome.sink(name))
        for name, build in builds.items()
        if name in session.sinks or name in outcome.failed
    }
    for name, error in outcome.failed.items():
        # A sink that was not built because of invalid chunks has no entry: `held` and `findings` explain it.
        if name not in builds and not isinstance(error, InvalidBus):
            sinks[name] = outcome.sinks[name]
    written = [build for name, build in builds.items() if name in session.sinks]
    report = RunReport(
        run_id=session.log.run_id,
        generation=generation.id,
        families=outcome.families,
        total=catalog.counts(),
        held=held_by_reason(session.state.db, written),
        held_sources=_held_sources(session, written),
        findings=first_findings(session),
        errors=catalog.errors(),
        wrong_field_values=catalog.wrong_field_values(),
        missing_partitions=tuple(catalog.missing_partitions()),
        written=outcome.chunks_written,
        deleted=outcome.chunks_deleted,
        embeddings=_embeddings(embedder),
        repeated=_repeated_texts(session) if repeated else None,
        sinks=sinks,
        model_change=outcome.model_change,
        evaluation=outcome.evaluation,
        rebuild_due=rebuild_due,
        unconfigured=tuple(name for name in builds if name not in session.config.sinks),
        not_removed=tuple(outcome.not_removed.values()),
        seconds=monotonic() - session.started,
    )
    facts = report.as_json()
    # Names are left out of the record: `forget` finds a source there only by its key, its ids and the name that the
    # user gave.
    del facts["run_id"], facts["status"], facts["held_sources"]
    if report.repeated:
        del facts["repeated_texts"]["sources"]
    for sink in facts["sinks"].values():
        del sink["drifted_sources"]
    session.log.finish(report.status, bus=session.intake.root.place, **facts)
    return report


def _held_sources(session: Session, builds: Sequence[str]) -> dict[str, tuple[str, ...]]:
    sources: dict[str, tuple[str, ...]] = {}
    for held in held_families(session.state.db, session.intake.root, builds, _EXAMPLES):
        sources[held.detail] = (*sources.get(held.detail, ()), held.source or held.family)
    return sources


def _repeated_texts(session: Session) -> RepeatedTexts:
    repeated = session.catalog.repeated_texts()
    families = [family for pair in repeated.sources for family in pair]
    names = source_names(session.state.db, session.intake.root, families)
    return replace(repeated, sources=tuple((names[one], names[other]) for one, other in repeated.sources))


def _with_records(session: Session, build_id: str, sink: SinkReport) -> SinkReport:
    receipts = Receipts(session.state.db, build_id)
    return replace(
        sink,
        chunks=receipts.documents(),
        refused=tuple(receipts.dead_letters()),
        held_and_missing=receipts.held_and_missing(),
    )


def _sink_as_json(sink: SinkReport) -> dict[str, Any]:
    refused = [{"id": each.id, "parent_id": each.family, "reason": each.reason} for each in sink.refused]
    return asdict(replace(sink, refused=(), error=None)) | {
        "refused": refused,
        "error": str(sink.error) if sink.error else None,
    }


def _embeddings(embedder: DocumentEmbedder) -> dict[str, Any]:
    done, info = embedder.report, embedder.info
    has_model = info.fingerprint != NO_MODEL.fingerprint
    return {
        "model": info.name if has_model else None,
        "fingerprint": info.fingerprint if has_model else None,
        "precision": info.precision if has_model else None,
        "runtime": embedder.runtime,
        "computed": done.encoded,
        "cached": done.reused,
        "refused": done.refused,
        "problems": {key.hex(): problem for key, problem in islice(done.problems.items(), _EXAMPLES)},
        "long_chunks": done.over_length,
        "long_texts": info.long_texts if has_model else None,
        "corrupt": done.corrupt,
        "set_aside": done.set_aside,
    }
