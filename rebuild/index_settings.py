"""Settings of the engines' indexes: which are not as configured, and bringing them there."""

from collections.abc import Sequence
from contextlib import nullcontext

from chunksink.rebuild.convergence import Convergence
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.executor import Lock
from chunksink.rebuild.outcome import RunOutcome
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
    takes_vectors_again = []
    for target in targets:
        settings = capability(session.sinks[target.sink], SupportsSettings)
        if settings is None or target.sink in outcome.failed:
            continue
        try:
            if changed := settings.update_settings(target.build_id, **_vectors(generation, target)):
                outcome.sink(target.sink).settings = tuple(changed)
                if EMBEDDERS in changed:
                    takes_vectors_again.append(target)
        except SinkError as error:
            outcome.sink(target.sink).error = error
    # These vectors are compared one by one: some may have come while the engine took none.
    return Convergence(session, takes_vectors_again, embedder, outcome, lock).look(scan=True, deep=True)


def _vectors(generation: Generation, target: Target) -> dict[str, int]:
    return {"dimensions": generation.model.dimension} if target.holds_vectors else {}
