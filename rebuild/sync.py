"""Sync: update the live builds to match the chunks, with the fewest writes.

A sink without a live build gets one by a rebuild of that sink. If nothing is live yet, everything is built.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from chunksink.embeddings.errors import EmbeddingsError, EndpointDenied, EndpointUnavailable, ModelError
from chunksink.rebuild.convergence import Convergence
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import HomeLocked, InvalidBus, NotVerified
from chunksink.rebuild.families import passage_of
from chunksink.rebuild.flip import forget_lost_previous, live_generation, show
from chunksink.rebuild.forecast import require_plan
from chunksink.rebuild.intake import retry_if_rewritten
from chunksink.rebuild.rebuild import Rebuild, RebuildOptions, rebuild
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.removals import brake
from chunksink.rebuild.report import RunOutcome, RunReport, conclude
from chunksink.rebuild.session import RunOptions, Session
from chunksink.rebuild.state import Generation
from chunksink.rebuild.targets import Opening, Target, open_targets
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import BuildBroken, SinkError

_RETRIED_TEXTS = 100
"""How many refused texts a run tries again in each sink."""


@dataclass(frozen=True)
class SyncOptions(RunOptions):
    plan_hash: str | None = None
    """Execute only the plan whose hash begins with these 12 or more digits."""
    rebuild: bool = False
    """Rebuild everything if the configured model has changed."""
    scan: bool = False
    """Scan the engines instead of trusting receipts, and recreate broken builds."""
    strict: bool = False
    """Stop if any partition is missing or invalid, or a source is held."""


def sync(session: Session, options: SyncOptions = SyncOptions()) -> RunReport:
    """Sync the live builds, and build missing ones. With `plan_hash`, a sink without a live build is an error."""
    outcome = RunOutcome()
    while True:
        with session.lock.at_start():
            live = _live_to_sync(session, options)
            unbuilt = None
            if live is not None and options.plan_hash is None:
                unbuilt = _sink_without_build(session, live, outcome)
            if live is not None and unbuilt is None:
                embedder = session.embedders.of_live(live)
                sync_live(session, live, embedder, options, outcome)
                for name, error in session.unreachable.items():
                    outcome.sink(name).error = error
                return conclude(session, live, outcome, embedder, rebuild_due=session.rebuild_due(live))
        if unbuilt is not None:
            _build_sink(session, unbuilt, options, outcome)
        elif (report := _build_all(session, options)) is not None:
            return report


def _live_to_sync(session: Session, options: SyncOptions) -> Generation | None:
    """The live generation; None if all sinks must be built. The caller holds the writer's lock."""
    live = live_generation(session, adopt=options.adopt)
    if options.plan_hash is not None:
        return live or session.state.live()
    return None if live is not None and options.rebuild and session.rebuild_due(live) else live


def _sink_without_build(session: Session, live: Generation, outcome: RunOutcome) -> Sink | None:
    """A configured sink that has no build in this generation and was not tried in this run."""
    tried = {*live.builds, *session.unreachable, *outcome.failed}
    return next((sink for name, sink in session.sinks.items() if name not in tried), None)


def _build_all(session: Session, options: SyncOptions) -> RunReport | None:
    """Build all sinks. None if another run has done so meanwhile."""
    for error in session.unreachable.values():
        raise error
    with session.rebuild_lock.at_start():
        with session.lock.at_start():
            if _live_to_sync(session, options) is not None:
                return None
        # If the records were lost, engines still have builds, and these must not lose documents.
        is_new = not any(sink.builds() for sink in session.sinks.values())
        build_options = RebuildOptions(
            adopt=options.adopt,
            allow_deletions=options.allow_deletions,
            leave_out_held=is_new and not options.strict,
        )
        return rebuild(session, build_options)


def _build_sink(session: Session, sink: Sink, options: SyncOptions, outcome: RunOutcome) -> None:
    """Make a new live generation: a build of this sink, and all live builds, even of sinks that are no longer
    configured. If this fails, the other sinks are still synced."""
    try:
        with session.rebuild_lock.at_start():
            with session.lock.at_start():
                live = live_generation(session, adopt=options.adopt)
            if live is None or sink.name in live.builds:  # another run has built it meanwhile
                return
            first_vectors = sink.wants_vectors and not live.holds_vectors
            embedder = session.embedders.of_live(live, first_vectors=first_vectors)
            build_options = RebuildOptions(
                adopt=options.adopt, allow_deletions=options.allow_deletions, keep=frozenset(live.builds)
            )
            building = Rebuild(replace(session, sinks={sink.name: sink}), embedder, build_options)
            building.run()
        outcome.sinks |= building.outcome.sinks
        outcome.sink(sink.name).built = True
        outcome.not_removed |= building.outcome.not_removed
    except (SinkError, EmbeddingsError, HomeLocked, InvalidBus, NotVerified) as error:
        outcome.sink(sink.name).error = error
        session.log.write("waiting", sink=sink.name, reason=str(error))


def sync_live(
    session: Session, live: Generation, embedder: DocumentEmbedder, options: SyncOptions, outcome: RunOutcome
) -> None:
    """Sync the live builds. The caller has held the writer's lock since it read the live generation.

    If vectors cannot be computed, the sinks that need them have failed. Raises EmbeddingsError if no others are live.
    """
    attempt = partial(_sync, session, live, embedder, options, outcome)
    if options.plan_hash is not None:  # a second attempt would execute another plan
        attempt()
        return
    try:
        retry_if_rewritten(attempt)
        broken = {name for name, error in outcome.failed.items() if isinstance(error, BuildBroken)} & live.builds.keys()
        if options.scan and broken:  # some builds turn out to be broken only when they are read or written
            for name in broken:
                session.sinks[name].drop(live.builds[name])
            retry_if_rewritten(attempt)
    except EmbeddingsError as error:
        failed = outcome.failed
        needing = {name for name, sink in session.sinks.items() if sink.wants_vectors and name in live.builds}
        others = {name: sink for name, sink in session.sinks.items() if name not in needing}
        if not needing or others.keys().isdisjoint(live.builds):
            raise
        sync_live(replace(session, sinks=others), live, embedder, options, outcome)
        for name in needing:
            outcome.sink(name).error = failed.get(name, error)


def _sync(
    session: Session, live: Generation, embedder: DocumentEmbedder, options: SyncOptions, outcome: RunOutcome
) -> None:
    for name in live.builds.keys() & outcome.sinks.keys():
        outcome.sinks[name].error = None  # from an earlier attempt
    session.refresh()
    if options.strict:
        session.catalog.require_valid()
    if options.plan_hash is not None:
        require_plan(session, live, embedder, options.plan_hash, adopt=options.adopt)

    live_builds = [live.builds[name] for name in session.sinks if name in live.builds]
    stop_large_removal = partial(brake, session.state.db, live_builds, options.allow_deletions)
    if options.scan:
        stop_large_removal()
    opening = Opening(heal=options.scan, adopt=options.adopt, before_making=stop_large_removal)
    with open_targets(session, live, outcome, opening) as targets:
        for target in targets:
            if target.made:
                outcome.sink(target.sink).made_again = True
                forget_lost_previous(session)
        convergence = Convergence(session, targets, embedder, outcome)
        if options.deep and any(target.holds_vectors for target in targets):
            _fill_cache(session, embedder)
        convergence.check(scan=options.scan, deep=options.deep, spot_check=True)
        if options.plan_hash is None and embedder.settings.endpoint is not None:
            _retry_refused_texts(session, embedder, targets)
        plan = convergence.plan()
        opened = [target.build_id for target in targets]
        if plan.needs_brake_check(opened):
            brake(session.state.db, opened, options.allow_deletions)
        if convergence.update_settings():
            plan = convergence.plan()
        convergence.run(plan)
        for target in targets:
            if target.sink not in outcome.failed:
                with outcome.noting_failure(target.sink):  # a recreated build is shown only after it is complete
                    show(session, target.sink, target.build_id, adopt=options.adopt)


def _retry_refused_texts(session: Session, embedder: DocumentEmbedder, targets: Sequence[Target]) -> None:
    """Send refused texts to the endpoint again. If a text gets a vector now, its source is written again.

    An unavailable endpoint is only logged. The run fails later if it needs the endpoint for other texts."""
    try:
        for target in targets:
            if target.holds_vectors:
                receipts = Receipts(session.state.db, target.build_id)
                refused = receipts.next_without_vector(_RETRIED_TEXTS)
                documents = [
                    document
                    for family in session.reader.families(list(refused))
                    for document in family.documents
                    if document.id in refused[family.family]
                ]
                embedder.fill(map(passage_of, documents), lambda _texts: None)
                vectors = embedder.cached([passage_of(document).key for document in documents])
                receipts.intend({document.parent_id for document in documents if passage_of(document).key in vectors})
    except (EndpointDenied, EndpointUnavailable, ModelError) as error:
        session.log.write("not_asked_again", reason=str(error))


def _fill_cache(session: Session, embedder: DocumentEmbedder) -> None:
    """Compute the missing vectors of all current texts whose chunks can be read."""
    with session.timed("embed", None, "texts") as advance:
        for page in session.catalog.readable_texts():
            cached = embedder.cached([place.key for place in page])
            embedder.fill(session.reader.passages([place for place in page if place.key not in cached]), advance)
