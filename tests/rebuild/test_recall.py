"""Vector search reaches the recall goal, also in builds of earlier versions, and recall is reported."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from secrets import token_hex

import pytest

import chunksink.sinks.meilisearch.reader as meilisearch_reader
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.recall import GOAL, MAX_DELETED, NEAREST, Recall
from chunksink.sinks.capabilities import SupportsNearest, SupportsReader
from chunksink.sinks.chroma import ChromaSink, Server
from chunksink.sinks.chroma.client import open_folder
from chunksink.sinks.chroma.folder import COLLECTION
from chunksink.sinks.chroma.handle import EF_SEARCH, ef_search
from chunksink.sinks.contract import Sink
from chunksink.sinks.document import Vectors
from tests.conftest import HEAVY
from tests.embeddings.helpers import HashEncoder
from tests.engines.servers import ChromaServer, MeilisearchServer
from tests.support.bus import commit, source
from tests.support.capabilities import required
from tests.support.home import Home
from tests.support.local_engines import chroma, memory
from tests.support.memory_sink import MemoryReader, MemorySink
from tests.support.public_index import meilisearch_in
from tests.support.tampering import lose

DOCUMENTS = 2400
TEXTS = [f"text {number}" for number in range(DOCUMENTS)]
ENCODER = HashEncoder(dimension=48)
"""Draws vectors among which narrow searches miss more neighbours than among those of a real model."""
QUESTIONS = [ENCODER.vector(text) for text in TEXTS[:50]]
OLD = 100
"""Chroma's own default, with which builds were made before."""


@pytest.fixture
def drawn(tmp_path: Path) -> Callable[[Callable[[Path], Sink]], Home]:
    """A home with an index of these texts in one sink."""

    def build(sink: Callable[[Path], Sink]) -> Home:
        home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), sink)
        home.encoder = ENCODER
        commit(home.root, "p", [record for text in TEXTS for record in source(text, text)])
        home.rebuild()
        return home

    return build


def recall_of(home: Home, sink: str = "chroma") -> Recall:
    found = home.verify(recall=True).sinks[sink].recall
    assert found is not None
    return found


def graph_of(home: Home, **settings: int) -> int:
    """The width of searches in the live Chroma build. With settings, another program's change of them."""
    client = open_folder(home.folder / "chroma" / home.live().builds["chroma"])
    try:
        collection = client.get_collection(COLLECTION, embedding_function=None)
        if settings:
            collection.modify(configuration={"hnsw": settings})  # type: ignore[typeddict-item]
        return int(client.get_collection(COLLECTION, embedding_function=None).configuration_json["hnsw"][EF_SEARCH])
    finally:
        client.close()  # type: ignore[attr-defined]


@pytest.mark.skipif(not HEAVY, reason="part of `make soak`")
def test_sync_raises_the_recall_of_an_old_build_to_the_goal(
    drawn: Callable[[Callable[[Path], Sink]], Home],
) -> None:
    """Also for readers that were open before."""
    home = drawn(chroma)
    assert graph_of(home) == ef_search(DOCUMENTS) > OLD
    assert recall_of(home).mean >= GOAL
    live = home.live()
    graph_of(home, **{EF_SEARCH: OLD})
    with (
        closing(chroma(home.folder)) as sink,
        closing(required(sink, SupportsReader).reader(live.builds["chroma"])) as held,
    ):
        reader = required(held, SupportsNearest)
        narrow = [reader.nearest(vector, NEAREST) for vector in QUESTIONS]
        low = recall_of(home)
        assert low.mean < GOAL
        assert (low.is_low, low.questions, low.documents) == (True, 100, DOCUMENTS)
        assert recall_of(home) == low, "the same build gives the same number"
        assert home.verify().sinks["chroma"].settings == (EF_SEARCH,)
        assert home.plan_sync().settings == {"chroma": [EF_SEARCH]}
        done = home.sync()
        assert (done.sinks["chroma"].settings, done.sinks["chroma"].written) == ((EF_SEARCH,), 0)
        assert (home.live(), graph_of(home)) == (live, ef_search(DOCUMENTS))
        assert recall_of(home).mean >= GOAL
        held.refresh()
        assert [reader.nearest(vector, NEAREST) for vector in QUESTIONS] != narrow
    verified = home.verify()
    assert verified.ok
    assert verified.sinks["chroma"].recall is None, "only if it was requested"
    assert home.sync().sinks["chroma"].settings == (), "nothing is due any more"


@pytest.mark.skipif(not HEAVY, reason="its graph is that of the embedded build; CHUNKSINK_SOAK_HEAVY")
def test_build_on_a_server_reaches_the_recall_goal(
    drawn: Callable[[Callable[[Path], Sink]], Home], chroma_server: ChromaServer
) -> None:
    assert recall_of(drawn(lambda _home: ChromaSink(Server(chroma_server.url)))).mean >= GOAL


@pytest.mark.skipif(not HEAVY, reason="thousands of vectors in Meilisearch: in `make soak`")
def test_meilisearch_reaches_the_recall_goal_with_more_candidates(
    drawn: Callable[[Callable[[Path], Sink]], Home],
    meilisearch_server: MeilisearchServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = drawn(meilisearch_in(meilisearch_server, f"recall-{token_hex(4)}"))
    assert recall_of(home, "meilisearch").mean >= GOAL
    monkeypatch.setattr(meilisearch_reader, "_CANDIDATES", ((math.inf, 0),))
    assert recall_of(home, "meilisearch").mean < GOAL


class SomeReader(MemoryReader):
    """An exact search that leaves out some documents."""

    share = 1.0
    vectors = 0

    def nearest(self, vector: Vectors, limit: int) -> list[str]:
        return [hit.id for hit in self.query(vector, limit)][: int(limit * self.share)]

    def index_size(self) -> int | None:
        return self.vectors or None


class SomeSink(MemorySink):
    def reader(self, build_id: str) -> MemoryReader:
        return SomeReader(self.content(build_id))


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """150 documents, and ten more with texts of others."""
    monkeypatch.setattr(SomeReader, "share", 1.0)
    monkeypatch.setattr(SomeReader, "vectors", 0)
    sink = SomeSink()
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), lambda _home: sink)
    texts = [f"text {number}" for number in range(150)] + [f"text {number}" for number in range(10)]
    commit(home.root, "p", [record for place, text in enumerate(texts) for record in source(f"{place}.md", text)])
    home.rebuild()
    yield home


@pytest.mark.parametrize(("share", "mean"), [(1.0, 1.0), (0.9, 0.9), (0.0, 0.0)])
def test_missed_documents_are_measured(known: Home, share: float, mean: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SomeReader, "share", share)
    found = recall_of(known, "memory")
    assert (found.mean, found.worst, found.questions, found.documents, found.deleted) == (mean, mean, 100, 160, 0.0)
    assert found.is_low == (mean < GOAL)


def test_any_of_equally_near_documents_counts_as_found(known: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def last_of_equals(self: SomeReader, vector: Vectors, limit: int) -> list[str]:
        hits = sorted(self.query(vector, 200), key=lambda hit: (-round(hit.score, 5), hit.id))
        return [hit.id for hit in sorted(hits, key=lambda hit: (-round(hit.score, 5), hit.id[::-1]))][:limit]

    monkeypatch.setattr(SomeReader, "nearest", last_of_equals)
    assert recall_of(known, "memory").mean == 1.0


def test_documents_unknown_to_the_catalog_do_not_count(known: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as an older version of a source that is held."""

    def with_strangers(self: SomeReader, vector: Vectors, limit: int) -> list[str]:
        return [*(f"stranger {number}" for number in range(10)), *(hit.id for hit in self.query(vector, limit - 10))]

    monkeypatch.setattr(SomeReader, "nearest", with_strangers)
    assert recall_of(known, "memory").mean == 1.0


def test_worn_graph_is_reported(known: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SomeReader, "vectors", 320)
    assert (recall_of(known, "memory").deleted, recall_of(known, "memory").is_slow) == (0.5, False)
    monkeypatch.setattr(SomeReader, "vectors", 1600)
    assert recall_of(known, "memory").deleted == 0.9 > MAX_DELETED
    assert recall_of(known, "memory").is_slow


def test_recall_of_an_incomplete_build_is_not_measured(known: Home) -> None:
    lose(known, "memory", known.contents()["memory"][:1])
    verified = known.verify(recall=True).sinks["memory"]
    assert (verified.ok, verified.recall) == (False, None)


def test_recall_of_an_exact_search_is_not_measured(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), memory())
    commit(home.root, "p", source("a.md", "a cat"))
    home.rebuild()
    assert home.verify(recall=True).sinks["memory"].recall is None
