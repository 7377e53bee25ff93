"""Settings of the engines' indexes: which are not as configured, and bringing them there."""

from collections.abc import Sequence
from contextlib import nullcontext

from chunksink.rebuild.convergence import Convergence, RunOutcome
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.executor import Lock
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import Generation
from chunksink.rebuild.targets import Target
from chunksink.settings.engine_settings import EMBEDDERS
from chunksink.sinks.capabilities import SupportsSettings, capability
from chunksink.sinks.errors import SinkError


def settings_due(session: Session, live: Generation, targets: Sequence[Target]) -> dict[str, list[str]]:
    """By sink, index settings that are not as configured: a sync would set them."""
    due: dict[str, list[str]] = {}
    for target in targets:
        settings = capability(session.sinks[target.sink], SupportsSettings)
        if settings is not None and (names := settings.settings_due(target.build_id, **_vectors(live, target))):
            due[target.sink] = names
    return due


def update_settings(
    session: Session,
    generation: Generation,
    targets: Sequence[Target],
    embedder: DocumentEmbedder,
    outcome: RunOutcome,
    lock: Lock = nullcontext,
) -> bool:
    """Settings before documents: those that come are indexed once. Whether receipts were made anew meanwhile."""
    for target in targets:
        settings = capability(session.sinks[target.sink], SupportsSettings)
        if settings is None or target.sink in outcome.done.failed:
            continue
        try:
            if changed := settings.update_settings(target.build_id, **_vectors(generation, target)):
                outcome.settings[target.sink] = changed
        except SinkError as error:
            outcome.done.failed[target.sink] = error
    return _look_at_vectors(session, targets, embedder, outcome, lock)


def _look_at_vectors(
    session: Session, targets: Sequence[Target], embedder: DocumentEmbedder, outcome: RunOutcome, lock: Lock
) -> bool:
    """Where an engine takes vectors again, they are compared one by one: some may have come while it took none."""
    again = [target for target in targets if EMBEDDERS in outcome.settings.get(target.sink, ())]
    if again:
        convergence = Convergence(session, again, embedder, lock)
        convergence.look(scan=True, deep=True)
        outcome.done.failed |= convergence.outcome.done.failed
        outcome.scanned += [sink for sink in convergence.outcome.scanned if sink not in outcome.scanned]
    return bool(again)


def _vectors(generation: Generation, target: Target) -> dict[str, int]:
    return {"dimensions": generation.model.dimension} if target.holds_vectors else {}
