"""Session: everything that one run works with."""

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Protocol

from chunksink.chunkbus.brake import allowance_problem
from chunksink.chunkbus.runlog import RunLog
from chunksink.chunkbus.spans import span
from chunksink.chunkbus.validation import Progress
from chunksink.embeddings.fingerprint import digest_of_files, file_digests
from chunksink.embeddings.resolve import default_model_cache
from chunksink.embeddings.settings import EncoderSettings, changed_settings
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.compute import Compute
from chunksink.rebuild.embedder import DocumentEmbedder, Embedders
from chunksink.rebuild.errors import RebuildError
from chunksink.rebuild.families import FamilyReader
from chunksink.rebuild.intake import Intake, ignore
from chunksink.rebuild.locks import RebuildLock, WriterLock
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.state import Generation, State
from chunksink.settings.config import Config
from chunksink.sinks.contract import Build, Marker, Sink
from chunksink.sinks.errors import SinkError
from chunksink.sinks.projection import PROJECTION_VERSION


class Advance(Protocol):
    def advance(self, amount: int) -> object:
        """Add this amount to the work done."""


Stage = Callable[[str, int | None, str], AbstractContextManager[Advance | None]]
"""Opens the display of a stage of the work: name, total amount if known, unit."""


@dataclass(frozen=True)
class RunOptions:
    """What a run may do only on request."""

    adopt: bool = False
    """Take over builds of another home."""
    allow_deletions: int = 0
    """The brake does not stop a run in which at most this many sources are removed or lose most of their chunks. In a
    rebuild, each engine may also refuse up to this many documents."""
    deep: bool = False
    """In scans, also compare every vector with the cached one."""

    def __post_init__(self) -> None:
        if wrong := allowance_problem(self.allow_deletions):
            raise RebuildError(wrong)


@dataclass(frozen=True, eq=False)
class Session:
    config: Config
    state: State
    catalog: Catalog
    intake: Intake
    reader: FamilyReader
    sinks: Mapping[str, Sink]
    """The sinks that this run writes."""
    open_sink: Callable[[str], Sink]
    """Opens a sink that this run does not write."""
    embedders: Embedders
    lock: WriterLock
    rebuild_lock: RebuildLock
    log: RunLog
    unreachable: Mapping[str, SinkError] = field(default_factory=dict)
    """Configured sinks that did not answer."""
    stage: Stage | None = None
    compute: Compute | None = None
    """Computes vectors before a plan is executed; None if the executor computes all of them."""
    started: float = field(default_factory=monotonic)
    seconds: dict[str, float] = field(default_factory=dict)
    """How long the run has spent in each stage, and in the parts of the stage `index` that the executor measures."""

    @contextmanager
    def timed(self, name: str, total: int | None, unit: str) -> Iterator[Progress]:
        """A stage of the work, displayed and measured. Call the yielded function with the amounts of work done."""
        started = monotonic()
        try:
            with span(name), self.stage(name, total, unit) if self.stage else nullcontext() as bar:
                yield bar.advance if bar is not None else ignore
        finally:
            self.note_seconds(name, monotonic() - started)

    def note_seconds(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def note_totals(self) -> None:
        """Add the work of this run to the totals of the home. Raises HomeLocked if another run has the lock: after a
        short wait if this run computed vectors, the most expensive work; else at once."""
        work = defaultdict[tuple[str, str], float](float)
        work |= {("seconds", name): seconds for name, seconds in self.seconds.items()}
        for embedder in self.embedders.opened:
            done = embedder.report
            work["vectors", "computed"] += done.encoded
            work["vectors", "reused"] += done.reused
            work["tokens", ""] += embedder.tokens
            work["cost", ""] += embedder.tokens / 1_000_000 * (self.token_price(embedder) or 0)
        with self.lock.at_start() if work["vectors", "computed"] else self.lock(0):
            self.state.add_totals(work)

    def token_price(self, embedder: DocumentEmbedder) -> float | None:
        """The price of a million tokens; None if none is configured, or if the model is local."""
        return None if embedder.settings.endpoint is None else self.config.token_price

    def sink(self, name: str) -> Sink:
        return self.sinks.get(name) or self.open_sink(name)

    @property
    def wants_vectors(self) -> bool:
        return any(sink.wants_vectors for sink in self.sinks.values())

    def marker(self, build_id: str, stamp: str = "") -> Marker:
        return Marker(self.state.home_id, build_id, PROJECTION_VERSION, stamp)

    def stamp(self, build: Build, receipts: Receipts) -> None:
        """Write a marker with a new random stamp into the build, so that an older copy of it, such as a restored
        one, is recognised. Call it after the engine has confirmed a batch, before its receipts are written.

        If the run is killed during this call, both stamps count as valid. That is safe: the build differs from its
        receipts only in families with open intents."""
        new = secrets.token_hex(8)
        receipts.expect_stamps({*receipts.stamps(), new})
        build.sign(self.marker(receipts.build_id, new))
        receipts.expect_stamps({new})

    def owns(self, marker: Marker | None) -> bool:
        """Whether a build with this marker was made by this home. A build without a marker belongs to nobody."""
        return marker is not None and marker.home_id == self.state.home_id

    def refresh(self, *, reread: bool = False, any_bus: bool = False) -> None:
        """Read new and changed partitions into the catalog; with `reread`, all. Raises OtherBus, as the intake does."""
        self.intake.root.refresh()
        size = self.intake.pending_bytes(reread=reread)
        with self.timed("validate", size, "B") as advance:
            self.intake.refresh(advance, reread=reread, any_bus=any_bus)

    def rebuild_due(self, live: Generation) -> str | None:
        """Why a rebuild would make a different index, judging by settings and files."""
        if live.holds_vectors:
            return model_mismatch(EncoderSettings.of(self.config), live, self.config.model_cache_path)
        without = [name for name, sink in self.sinks.items() if name in live.builds and sink.wants_vectors]
        return f"{' and '.join(without)} should have vectors, but the live index has none" if without else None


def model_mismatch(configured: EncoderSettings, live: Generation, model_cache: Path | None) -> str | None:
    """Why a rebuild would use another model than the live index; None if it would not, or the index has no vectors."""
    if not live.holds_vectors:
        return None
    changed = changed_settings(configured, live.encoder)
    if not changed:
        return _files_changed(live, model_cache or default_model_cache())
    if configured.model != live.encoder.model:
        return f"the live index was made with {live.encoder.model}, but {configured.model} is configured"
    values = "; ".join(_change(name, before, now) for name, (before, now) in changed.items())
    return f"the live index was made with other settings of {configured.model}: {values}"


def _change(name: str, before: object, now: object) -> str:
    shown = ("the default" if setting is None else repr(setting) for setting in (before, now))
    return f"{name} was {' and is now '.join(shown)}"


def _files_changed(live: Generation, model_cache: Path) -> str | None:
    """The reason if files of a local model differ from those that made the index; else None."""
    folder = Path(live.model.source.partition(":")[2])
    if not live.model.files or not folder.is_dir():
        return None
    if digest_of_files(file_digests(folder, model_cache)) == live.model.files:
        return None
    return f"files of the model {live.model.name} in {folder} have changed since the live index was made"
