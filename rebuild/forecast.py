"""The plan of the next sync, and its cost in vectors, tokens, seconds and money."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import Any

from chunksink.chunkbus.findings import Finding
from chunksink.embeddings.context import context_before
from chunksink.embeddings.encoder import ModelInfo
from chunksink.rebuild.catalog import TextPlace
from chunksink.rebuild.convergence import Convergence
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import OtherPlan, Removal, UnknownPlan
from chunksink.rebuild.flip import live_generation
from chunksink.rebuild.intake import retry_if_rewritten
from chunksink.rebuild.ownership import require_ours
from chunksink.rebuild.plan import FamilyCounts, Plan
from chunksink.rebuild.removals import held_by_reason, large_removal
from chunksink.rebuild.report import RunOutcome, first_findings
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import EMBEDDED, MODEL, Generation
from chunksink.rebuild.targets import Opening, open_targets, settings_due, was_left_unfinished
from chunksink.sinks.errors import BuildBroken, BuildMissing

_EXAMPLES = 20
_MIN_DIGITS = 12
"""A plan must be named by at least this many digits of its hash."""
_NO_BUILD = "it has no build yet"
SAMPLE = 300
"""Texts whose tokens are counted, enough for an estimate to a few percent."""

# Close to WordPiece for English, source code and scripts without spaces. For other alphabets, models differ by a factor
# of three; this is in between.
_TOKEN = re.compile(r"[A-Za-z\u00c0-\u024f]{1,7}|[0-9]{1,3}|[\u0370-\u1fff]{1,2}|\S")


@dataclass(frozen=True)
class SyncPlan:
    plan: Plan
    builds: dict[str, str]
    """The build of each configured sink; the sink's name if it has no build yet."""
    empty: dict[str, str]
    """Sinks whose build must be written completely, and why."""
    hash: str | None
    """Identifies what a sync would do; None if a configured sink has no build yet."""
    settings: dict[str, list[str]]
    """Index settings that a sync would change, by sink."""


@dataclass(frozen=True)
class SinkForecast:
    families: FamilyCounts
    seconds: float | None
    filled: str | None
    """Why the whole build must be written; None if it need not be."""


@dataclass(frozen=True)
class Forecast:
    """A plan in numbers. Seconds are None until a run has measured this machine."""

    hash: str | None
    """None if a configured sink has no build yet."""
    families: FamilyCounts
    superseded: int
    held: int
    chunks: int
    deleted: int
    cached: int
    """Chunks whose vector is in the cache."""
    missing: int
    """Texts that must be embedded."""
    repeated: int
    """Chunks that repeat one of these texts."""
    tokens: int
    """Estimated number of tokens in the texts to embed."""
    seconds: float | None
    cost: float | None
    """In the currency of the configured price; None if none is configured, or if the model is local."""
    sinks: dict[str, SinkForecast]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    rebuild_due: str | None
    settings: dict[str, list[str]]
    findings: tuple[Finding, ...]
    """See `first_findings`."""
    errors: int
    missing_partitions: tuple[str, ...]
    brake: Removal | None
    """The removal that would stop a sync without a flag."""

    def __repr__(self) -> str:
        sources = self.families
        changes = f"{sources.added:,} added, {sources.changed:,} changed, {sources.removed:,} removed"
        return f"<Forecast {changes}, {self.missing:,} vectors to compute>"

    def as_json(self) -> dict[str, Any]:
        facts = asdict(self)
        facts["families"] |= {name: facts.pop(name) for name in ("superseded", "held")}
        facts["chunks"] = {"written": self.chunks, "deleted": facts.pop("deleted")}
        facts["embeddings"] = {name: facts.pop(name) for name in ("cached", "missing", "repeated", "tokens")}
        facts["examples"] = {name: facts.pop(name) for name in ("added", "changed", "removed")}
        return facts


def plan(session: Session, *, adopt: bool = False) -> Forecast:
    """What the next sync would do and cost, even if it is the first. Only records of this home are written, except that
    an interrupted flip is completed."""
    with session.lock.at_start():
        live = live_generation(session, adopt=adopt)
        if live is None:
            embedder = session.embedders.configured(with_model=False, replace_damaged=False)
            unknown = replace(embedder.info, embed_context=session.config.embed_context)
            model = (session.embedders.configured_model() if session.wants_vectors else None) or unknown
        else:
            embedder = session.embedders.of_live(live, replace_damaged=False)
            model = embedder.info
        price = session.token_price(embedder)
        return retry_if_rewritten(
            lambda: forecast(session, plan_sync(session, live, embedder, adopt=adopt), model, price)
        )


def plan_sync(
    session: Session, live: Generation | None, embedder: DocumentEmbedder, *, adopt: bool = False
) -> SyncPlan:
    """Plan, without writing to engines. Unreadable builds count as empty; an unreachable engine is an error."""
    session.refresh()
    if live is None:
        require_ours(session, session.sinks, adopt=adopt)  # as a first sync does
        convergence = Convergence(session, [], embedder, RunOutcome())
        builds = {name: name for name in session.sinks}
        plan = convergence.plan(list(builds.values()))
        return SyncPlan(plan, builds, dict.fromkeys(builds, _NO_BUILD), None, {})
    outcome = RunOutcome()
    with open_targets(session, live, outcome, Opening(make=False, adopt=adopt)) as targets:
        # Builds that a sync recreates, because a run was killed while it wrote them.
        left_unfinished = {name for name in outcome.failed if was_left_unfinished(session, live.builds[name])}
        convergence = Convergence(session, targets, embedder, outcome)
        convergence.check(sign=False)
        builds = {name: live.builds.get(name, name) for name in session.sinks}
        empty = {name: _NO_BUILD for name in session.sinks if name not in live.builds}
        broken: set[str] = set()
        for name, error in outcome.failed.items():
            if isinstance(error, BuildMissing):
                empty[name] = "its build is gone; a sync writes all of it again"
            elif not isinstance(error, BuildBroken):
                raise error
            elif name in left_unfinished:
                empty[name] = "its build broke while it was written; a sync writes all of it again"
            else:
                broken.add(name)
                remedy = "`chunksink verify --repair` or a rebuild writes all of it again"
                empty[name] = f"its build is broken ({error.args[0]}); {remedy}"
        plan = convergence.plan([builds[name] for name in empty])
        due = {target.sink: settings_due(session, target) for target in targets}
        settings = {name: names for name, names in due.items() if names}
        in_hash = [builds[name] for name in live.builds if name in builds and name not in broken]
        plan_hash = plan.hash(in_hash, settings) if builds.keys() <= live.builds.keys() else None
        return SyncPlan(plan, builds, empty, plan_hash, settings)


def require_plan(
    session: Session, live: Generation, embedder: DocumentEmbedder, plan_hash: str, *, adopt: bool = False
) -> None:
    """Raises OtherPlan if the plan has another hash, UnknownPlan if it has none or `plan_hash` is too short. Call it
    before builds are recreated: recreating them is a part of the plan."""
    if len(plan_hash) < _MIN_DIGITS:
        raise UnknownPlan(
            f"{plan_hash!r:.100} is too short for the hash of a plan; nothing was written. Use {_MIN_DIGITS} or more "
            "of the digits that `chunksink plan` prints; if it prints none, run `chunksink sync` without --plan"
        )
    current = plan_sync(session, live, embedder, adopt=adopt).hash
    if current is None:
        raise UnknownPlan("an engine has no build yet: run `chunksink sync` without --plan; nothing was written")
    if not current.startswith(plan_hash):
        raise OtherPlan(
            f"a sync would now execute the plan {current:.12}, not {plan_hash:.12}; nothing was written. Run "
            "`chunksink plan` again"
        )


def forecast(session: Session, planned: SyncPlan, model: ModelInfo, price: float | None = None) -> Forecast:
    live = session.state.live_or_none()
    plan, builds = planned.plan, planned.builds
    texts = _texts_to_embed(session, plan, _with_vectors(session, live, builds), model)
    pace = session.state.pace()
    embedding = _seconds(texts.size, pace.get(EMBEDDED), pace.get(MODEL, 0.0))
    sinks = {
        name: SinkForecast(
            plan.counts(build),
            _seconds(plan.chunks_to_write(build), pace.get(name)),
            planned.empty.get(name),
        )
        for name, build in builds.items()
    }
    # The engines and the encoder work in parallel: the slowest decides.
    parts = [embedding, *(sink.seconds for sink in sinks.values())]
    measured = [seconds for seconds in parts if seconds is not None]
    return Forecast(
        hash=planned.hash,
        families=plan.counts(),
        superseded=session.catalog.counts().superseded,
        held=sum(held_by_reason(session.state.db, list(builds.values())).values()),
        chunks=plan.chunks_to_write(),
        deleted=max(map(plan.shrinkage, builds.values()), default=0),
        cached=texts.cached,
        missing=texts.missing,
        repeated=texts.repeated,
        tokens=texts.tokens,
        seconds=max(measured) if len(measured) == len(parts) else None,
        cost=None if price is None else texts.tokens / 1_000_000 * price,
        sinks=sinks,
        added=tuple(
            each.label for each in session.reader.families(plan.examples("write", False, _EXAMPLES)) if each.last
        ),
        changed=tuple(plan.examples("write", True, _EXAMPLES)),
        removed=tuple(plan.examples("remove", True, _EXAMPLES)),
        rebuild_due=None if live is None else session.rebuild_due(live),
        settings=planned.settings,
        findings=first_findings(session),
        errors=session.catalog.errors(),
        missing_partitions=tuple(session.catalog.missing_partitions()),
        brake=_brake(session, live, planned),
    )


def _brake(session: Session, live: Generation | None, planned: SyncPlan) -> Removal | None:
    """The removal that would stop a sync. Unknown before the first index, since there are no records of the engines."""
    if live is None:
        return None
    # For a sink without a build, a sync runs a rebuild of this sink, which checks all live builds.
    checked = live.builds_of(session.config.sinks) if planned.empty else list(planned.builds.values())
    return large_removal(session.state.db, checked)


def _with_vectors(session: Session, live: Generation | None, builds: Mapping[str, str]) -> list[str]:
    """The builds that get vectors. Live builds without vectors get none."""
    without = live.builds if live is not None and not live.holds_vectors else {}
    return [build for name, build in builds.items() if session.sinks[name].wants_vectors and name not in without]


@dataclass(frozen=True)
class _Texts:
    """The counts of `Forecast`, and the size of the missing texts in bytes of UTF-8."""

    cached: int
    missing: int
    repeated: int
    tokens: int
    size: int


def _texts_to_embed(session: Session, plan: Plan, builds: Sequence[str], model: ModelInfo) -> _Texts:
    """The texts to write to these builds. Tokens and size are estimated from a sample, since only the lengths of whole
    lines are known."""
    missing = repeated = size = cached = 0
    sample: list[TextPlace] = []
    for page in plan.texts_to_write(builds, bool(model.embed_context)):
        hits = session.embedders.cached_keys(model, [text.key for text, _ in page])
        misses = [text for text, _ in page if text.key not in hits]
        cached += sum(chunks for text, chunks in page if text.key in hits)
        repeated += sum(chunks - 1 for text, chunks in page if text.key not in hits)
        missing += len(misses)
        size += sum(text.place.length for text in misses)
        sample = sorted([*sample, *misses], key=attrgetter("key"))[:SAMPLE]  # sorted by hash, so as good as random
    passages = list(session.reader.passages(sorted(sample, key=attrgetter("partition"))))
    share = size / max(1, sum(text.place.length for text in sample))
    inputs = [
        context_before(each.text, each.context) + each.text if model.embed_context else each.text for each in passages
    ]
    tokens = sum(1 for each in inputs for _ in _TOKEN.finditer(each))
    own_size = sum(len(each.text.encode("utf-8", "surrogatepass")) for each in passages)
    return _Texts(cached, missing, repeated, round(share * tokens), round(share * own_size))


def _seconds(amount: int, pace: float | None, first: float = 0.0) -> float | None:
    if amount == 0:
        return 0.0
    return None if pace is None else round(first + amount * pace, 1)
