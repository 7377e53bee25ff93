"""Homes of two sinks, one of them behind a proxy, and a bus that alternates between two versions.

The expected result of a version is the content of a home without any fault.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.state import State
from chunksink.sinks.chroma import ChromaSink, Server
from chunksink.sinks.contract import Sink
from chunksink.sinks.document import Document
from chunksink.sinks.document import family_hash as hash_of_family
from chunksink.sinks.errors import SinkError
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.meilisearch.sink import Limits
from chunksink.sinks.retry import Fault, RetryPolicy, with_retries
from tests.engines.servers import ChromaServer, MeilisearchServer
from tests.faults.proxy import Proxy, When
from tests.support.bus import FEBRUARY, commit, parent_of, source
from tests.support.home import Engines, Home, held
from tests.support.local_engines import fts
from tests.support.meilisearch import SETTINGS

TIMEOUT = 0.5  # timeout of a request; on a busy machine, a slower one is an additional transient fault
SHORT = RetryPolicy(0.2, first_wait_seconds=0.01, longest_wait_seconds=0.1)
LONG = RetryPolicy(60, first_wait_seconds=0.01, longest_wait_seconds=0.1)

Texts = dict[str, tuple[str, ...]]
"""The texts of each source."""

KEPT: Texts = {f"docs/kept{number}.md": (f"kept {number}", f"also {number}") for number in range(3)}
VERSIONS: tuple[Texts, Texts] = (
    {
        **KEPT,
        "docs/a.md": ("okapi one", "okapi two", "okapi three"),
        "docs/b.md": ("lemur one", "lemur two"),
        "docs/c.md": ("gnu",),
    },
    {
        **KEPT,
        "docs/a.md": ("okapi one", "tapir"),
        "docs/b.md": ("zebra one", "zebra two", "zebra three"),
        "docs/d.md": ("yak",),
    },
)
"""Between them two sources are edited, one comes and one goes, in either direction."""


@dataclass(frozen=True)
class Engine:
    """A real server, and what the tests need to know about this engine."""

    name: str
    url: str
    connect: Callable[[str], Sink]
    """A sink on the server at this address."""
    write: str
    """In the first line of a request that carries documents."""


def meilisearch(server: MeilisearchServer, *, patience: float = 20, timeout: float = TIMEOUT) -> Engine:
    index = f"f{uuid.uuid4().hex[:10]}"
    limits = Limits(patience=patience)
    connect = partial(MeilisearchSink, key=server.key, settings=SETTINGS, index=index, limits=limits, timeout=timeout)
    return Engine("meilisearch", server.url, connect, "/documents ")


def chroma(server: ChromaServer) -> Engine:
    prefix = f"f{uuid.uuid4().hex[:10]}"

    def connect(url: str) -> Sink:
        return ChromaSink(Server(url, prefix=prefix, timeout=TIMEOUT))

    return Engine("chroma", server.url, connect, "/upsert ")


def sources(version: int) -> list[list[Record]]:
    return [
        source(name, *texts, version="0" if name in KEPT else str(version), at=FEBRUARY)
        for name, texts in VERSIONS[version].items()
    ]


@dataclass
class Faulty:
    """A home with the keyword sink and with an engine that is reached through the proxy."""

    folder: Path
    engine: Engine
    proxy: Proxy
    patience: RetryPolicy = LONG
    faults: list[Fault] = field(default_factory=list)
    version: int = 0

    def __post_init__(self) -> None:
        engines: Engines = {"fts": fts, self.engine.name: self._behind}
        root = FolderRoot(self.folder / "chunks")
        self.home = Home(self.folder / "home", root, *engines.values(), engines=engines)

    def show(self, version: int) -> None:
        """Set the bus to this version."""
        commit(self.home.root, "p1", [record for records in sources(version) for record in records])
        self.version = version

    def move(self) -> None:
        """Set the bus to the other version."""
        self.show(1 - self.version)

    def digests(self) -> dict[str, str]:
        verified = self.home.verify(deep=True)
        assert verified.ok, verified
        return {name: sink.digest for name, sink in verified.sinks.items()}

    def requests(self, run: Callable[[], object]) -> list[str]:
        """The requests of a run without faults."""
        self.proxy.heal()
        run()
        return list(self.proxy.requests)

    def failing(self, run: Callable[[], object]) -> SinkError:
        """The error of the engine in the run's report or exception."""
        self.patience = SHORT
        try:
            outcome = run()
        except SinkError as error:
            return error
        finally:
            self.patience = LONG
        failed = outcome.failed  # type: ignore[attr-defined]
        assert list(failed) == [self.engine.name]
        return failed[self.engine.name]  # type: ignore[no-any-return]

    def behind_it(self) -> list[Document]:
        """The content of the engine's live build, read without the proxy."""
        return self._held(with_retries(self.engine.connect(self.engine.url), LONG))  # a busy machine may be slow

    def beside_it(self) -> list[Document]:
        """The content of the other sink."""
        return self._held(fts(self.home.folder))

    def receipts(self) -> dict[str, tuple[str, int]]:
        """Receipts of the engine's live build: hash and documents of each family without an open intent."""
        build = self.home.live().builds[self.engine.name]
        with State(self.home.folder) as state:
            rows = state.db.execute(
                "select family, family_hash, documents from receipt r where build = ? and not exists "
                "(select 1 from intent i where i.build = r.build and i.family = r.family)",
                [build],
            ).fetchall()
        return {family: (family_hash, documents) for family, family_hash, documents in rows}

    def drop(self) -> None:
        with closing(self.engine.connect(self.engine.url)) as sink:
            for build in sink.builds():
                sink.drop(build)

    def _held(self, engine: Sink) -> list[Document]:
        with closing(engine) as sink, closing(sink.open(self.home.live().builds[sink.name])) as build:
            return held(build)

    def _behind(self, _home: Path) -> Sink:
        return with_retries(self.engine.connect(self.proxy.url), self.patience, on_fault=self.faults.append)


@contextmanager
def faulty(folder: Path, engine: Engine) -> Iterator[Faulty]:
    """A home whose live generation is the first version. Nothing of it stays in the engine afterwards."""
    with Proxy(engine.url) as proxy:
        made = Faulty(folder, engine, proxy)
        made.show(0)
        try:
            made.home.rebuild()
            yield made
        finally:
            proxy.heal()
            made.drop()


def oracles(folder: Path, engine: Engine) -> tuple[dict[str, str], dict[str, str]]:
    """The digests of both versions, each from a clean rebuild into a home that never had a fault."""
    found = []
    for version in (0, 1):
        with faulty(folder / str(version), engine) as clean:
            clean.show(version)
            clean.home.rebuild()
            found.append(clean.digests())
    return found[0], found[1]


def assert_complete(found: list[Document]) -> None:
    """Every source that both versions have is present and complete in one of them."""
    texts: dict[str, set[str]] = {}
    for document in found:
        texts.setdefault(document.parent_id, set()).add(document.text)
    for name in VERSIONS[0].keys() & VERSIONS[1].keys():
        there = texts.get(parent_of(name), set())
        assert any(set(version[name]) <= there for version in VERSIONS), name


def assert_receipts_hold(receipts: dict[str, tuple[str, int]], found: list[Document]) -> None:
    """Every receipt matches the engine, and unconfirmed families have none."""
    there: dict[str, list[str]] = {}
    for document in found:
        there.setdefault(document.parent_id, []).append(document.document_hash)
    for family, (family_hash, documents) in receipts.items():
        assert (hash_of_family(there[family]), len(there[family])) == (family_hash, documents)


def occurrence(wanted: int, mark: str = "") -> When:
    """The n-th request with this mark. Polling of tasks is not counted."""
    seen = 0

    def when(_: int, request: bytes) -> bool:
        nonlocal seen
        line = request.partition(b"\r\n")[0].decode()
        counts = mark in line and not is_poll(line)
        seen += counts
        return counts and seen == wanted

    return when


def since_occurrence(wanted: int, mark: str = "") -> When:
    """The n-th request with this mark and all later ones."""
    hit = occurrence(wanted, mark)
    begun = False

    def when(number: int, request: bytes) -> bool:
        nonlocal begun
        begun = begun or hit(number, request)
        return begun

    return when


def is_poll(line: str) -> bool:
    return "/tasks" in line
