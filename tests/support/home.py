"""A home with real sinks, and ways to run and inspect it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from chunksink.chunkbus.findings import Finding
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.runlog import RunLog
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.pool import EncoderPool
from chunksink.embeddings.settings import EncoderSettings
from chunksink.embeddings.vectors import EmbedReport
from chunksink.rebuild.catalog import Catalog, HeldFamily
from chunksink.rebuild.embedder import DocumentEmbedder, Embedders
from chunksink.rebuild.families import FamilyReader
from chunksink.rebuild.flip import live_generation
from chunksink.rebuild.forecast import SyncPlan, plan_sync
from chunksink.rebuild.intake import Intake
from chunksink.rebuild.locks import RebuildLock, WriterLock
from chunksink.rebuild.rebuild import Rebuild, RebuildOptions
from chunksink.rebuild.receipts import DeadLetter, Receipts
from chunksink.rebuild.report import NotRemoved, RunOutcome
from chunksink.rebuild.session import Session, Stage
from chunksink.rebuild.state import Generation, State
from chunksink.rebuild.sync import SyncOptions, sync_live
from chunksink.rebuild.verify import VerifyReport, verify
from chunksink.settings.config import Config
from chunksink.sinks.contract import Build, Sink
from chunksink.sinks.document import Document
from tests.embeddings.helpers import HashEncoder
from tests.support.local_engines import ENGINES

Wrap = Callable[[Sink], Sink]
Engines = Mapping[str, Callable[[Path], Sink]]


@contextmanager
def counted_steps(db: Any) -> Iterator[list[int]]:
    """The work of the database, in thousands of its steps. It is the same on every machine."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    db.conn.set_progress_handler(count, 1000)
    yield steps
    db.conn.set_progress_handler(None, 0)


def held(build: Build) -> list[Document]:
    """The content of a build, read back through its own interface."""
    documents = [found.document for found in build.scan(content=True) if found.document is not None]
    assert len(documents) == build.count()
    return sorted(documents, key=lambda d: d.id)


def each(outcome: RunOutcome, what: str) -> dict[str, Any]:
    """One field of each sink's outcome."""
    return {name: getattr(sink, what) for name, sink in outcome.sinks.items()}


def sinks_with(outcome: RunOutcome, what: str) -> list[str]:
    """The sinks in whose outcome this field is true."""
    return [name for name, value in each(outcome, what).items() if value]


def reasons(home: "Home") -> dict[str, str]:
    """The reason for each held family."""
    return {family: each.reason for family, each in home.held().items()}


def digests(home: "Home") -> dict[str, str]:
    """The digest of each engine's content. `verify` must find no difference."""
    verified = home.verify()
    assert verified.ok, verified
    return {name: sink.digest for name, sink in verified.sinks.items()}


class PoisonedEncoder(HashEncoder):
    """An encoder that refuses texts with a certain word."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = super().encode(texts)
        rows[["poison" in text for text in texts]] = np.nan
        return rows


@dataclass(frozen=True)
class RebuildResult:
    generation: str
    families: int
    chunks: int
    superseded: int
    refused: dict[str, tuple[DeadLetter, ...]]
    not_removed: tuple[NotRemoved, ...]


class CatalogProbe:
    """A catalog in its own home, with queries for tests."""

    def __init__(self, home: Path, root: FolderRoot) -> None:
        self.state = State(home)
        self.catalog = Catalog(self.state)
        self._root = root

    def refresh(self) -> "CatalogProbe":
        Intake(self._root, self.state).refresh()
        return self

    def current(self) -> dict[str, str]:
        """Maps each family to the partition from which it is taken."""
        return {family.family: family.partition for family in self.catalog.families()}


@dataclass(frozen=True)
class OneEmbedder:
    """Replaces a session's embedders: the same one for every index."""

    embedder: DocumentEmbedder

    def of_live(self, _live: Generation, **_options: bool) -> DocumentEmbedder:
        return self.embedder


class Home:
    """A home folder and its sinks. Each run creates its sinks, as every process does."""

    def __init__(
        self, folder: Path, root: FolderRoot, *makers: Callable[[Path], Sink], engines: Engines | None = None
    ) -> None:
        """`engines` opens sinks that this home does not write any more."""
        self.engines = ENGINES if engines is None else engines
        self.folder = folder
        self.root = root
        self.makers = makers
        self.encoder = HashEncoder(dimension=8)
        self.settings = EncoderSettings("hash")
        self.embedded = EmbedReport()
        self.findings: list[Finding] = []

    @contextmanager
    def session(self, wrap: Wrap = lambda sink: sink, stage: Stage | None = None) -> Iterator[Session]:
        """The home, open for one run."""
        sinks = [wrap(maker(self.folder)) for maker in self.makers]
        names = tuple(sink.name for sink in sinks)
        config = Config(home=str(self.folder), chunks=str(self.root.path), sinks=names)
        try:
            with State(self.folder) as state, RunLog(self.folder, "test") as log, ExitStack() as stack:
                catalog = Catalog(state)
                yield Session(
                    config=config,
                    state=state,
                    catalog=catalog,
                    intake=Intake(self.root, state, on_finding=self.findings.append),
                    reader=FamilyReader(self.root, catalog),
                    sinks={sink.name: sink for sink in sinks},
                    open_sink=lambda name: self.engines[name](self.folder),
                    embedders=Embedders(config, stack, EncoderPool()),
                    lock=WriterLock(self.folder),
                    rebuild_lock=RebuildLock(self.folder),
                    log=log,
                    stage=stage,
                )
        finally:
            for sink in sinks:
                sink.close()

    @contextmanager
    def embedder(self) -> Iterator[DocumentEmbedder]:
        with VectorCache.open(self.folder / "vectors.db") as cache:
            embedder = DocumentEmbedder(self.settings, self.encoder, cache)
            try:
                yield embedder
            finally:
                self.embedded = embedder.report

    def rebuild(self, *, wrap: Wrap = lambda sink: sink, stage: Stage | None = None, **options: Any) -> RebuildResult:
        with self.session(wrap, stage) as session, self.embedder() as embedder:
            session.refresh(reread=True)
            building = Rebuild(session, embedder, RebuildOptions(**options))
            made = building.run()
            counts = session.catalog.counts()
            return RebuildResult(
                made.id,
                counts.families,
                counts.chunks,
                counts.superseded,
                {sink: tuple(Receipts(session.state.db, build).dead_letters()) for sink, build in made.builds.items()},
                tuple(building.outcome.not_removed.values()),
            )

    def rebuild_outcome(self, *, wrap: Wrap = lambda sink: sink) -> RunOutcome:
        with self.session(wrap) as session, self.embedder() as embedder:
            session.refresh(reread=True)
            building = Rebuild(session, embedder)
            building.run()
            return building.outcome

    def sync(self, *, wrap: Wrap = lambda sink: sink, stage: Stage | None = None, **options: Any) -> RunOutcome:
        """Sync a home that has a live generation."""
        with self.session(wrap, stage) as session, session.lock(), self.embedder() as embedder:
            live, outcome = live_generation(session) or session.state.live(), RunOutcome()
            sync_live(session, live, embedder, SyncOptions(**options), outcome)
            return outcome

    def plan_sync(self, *, wrap: Wrap = lambda sink: sink) -> SyncPlan:
        with self.session(wrap) as session, self.embedder() as embedder:
            return plan_sync(session, session.state.live_or_none(), embedder)

    def verify(self, *, deep: bool = False, recall: bool = False, wrap: Wrap = lambda sink: sink) -> VerifyReport:
        with self.session(wrap) as session, self.embedder() as embedder:
            return verify(replace(session, embedders=OneEmbedder(embedder)), deep=deep, recall=recall)

    def live(self) -> Generation:
        with State.existing(self.folder) as state:
            return state.live()

    def unfinished(self) -> str | None:
        """The generation that a failed run has left."""
        with State.existing(self.folder) as state:
            found = state.unfinished()
            return found.id if found else None

    def held(self) -> dict[str, HeldFamily]:
        """The held families."""
        with State.existing(self.folder) as state:
            return {each.family: each for each in Catalog(state).held()}

    def refused(self) -> dict[str, list[str]]:
        """For each sink, the ids of documents refused in its live build."""
        with State.existing(self.folder) as state:
            live = state.live().builds
            return {name: [each.id for each in Receipts(state.db, id).dead_letters()] for name, id in live.items()}

    def lose_records(self) -> None:
        for file in self.folder.glob("state.db*"):
            file.unlink()

    def contents(self) -> dict[str, list[Document]]:
        """The content of each sink in the live generation."""
        live = self.live()
        found = {}
        for maker in self.makers:
            sink = maker(self.folder)
            build = sink.open(live.builds[sink.name])
            found[sink.name] = held(build)
            build.close()
            sink.close()
        return found

    def builds(self) -> dict[str, list[str]]:
        """Every build in every sink."""
        return {sink.name: sink.builds() for sink in (maker(self.folder) for maker in self.makers)}
