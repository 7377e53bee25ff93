"""Recall: a search by vectors finds what is there, also in a build that was made before, and it is reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.embeddings.load import load_encoder
from chunksink.embeddings.resolve import resolve_model
from chunksink.rebuild.recall import GOAL, NEAREST, WORN, Recall
from chunksink.sinks.chroma.client import open_folder
from chunksink.sinks.chroma.folder import COLLECTION
from chunksink.sinks.chroma.handle import EF_SEARCH, ef_search
from chunksink.sinks.document import Vectors
from chunksink.sinks.memory import MemoryReader, MemorySink
from tests.conftest import ROOT
from tests.support.bus import commit, source
from tests.support.home import Home
from tests.support.local_engines import chroma, memory
from tests.support.tampering import lose

PASSAGES = 2400
OLD = 100
"""Chroma's own default, with which builds were made before."""


def passages() -> list[str]:
    """Short ones, of this project's own pages."""
    pages = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))
    sentences = (" ".join(part.split())[:80] for page in pages for part in re.split(r"(?<=[.:;|])\s+|\n\n|\n- ", page))
    return list(dict.fromkeys(text for text in sentences if len(text) > 25))[:PASSAGES]


def recall_of(home: Home, sink: str = "chroma") -> Recall:
    found = home.verify(recall=True).sinks[sink].recall
    assert found is not None
    return found


def graph_of(home: Home, **settings: int) -> int:
    """How widely searches in the live Chroma build go; with other settings first, as another program would set them."""
    client = open_folder(home.folder / "chroma" / home.live().builds["chroma"])
    try:
        collection = client.get_collection(COLLECTION, embedding_function=None)
        if settings:
            collection.modify(configuration={"hnsw": settings})  # type: ignore[typeddict-item]
        return int(client.get_collection(COLLECTION, embedding_function=None).configuration_json["hnsw"][EF_SEARCH])
    finally:
        client.close()  # type: ignore[attr-defined]


def test_an_old_build_misses_too_much_and_a_sync_brings_it_to_the_goal(tmp_path: Path) -> None:
    """With the real model and real text. Readers that were opened before see it, too."""
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), chroma)
    texts = passages()
    commit(home.root, "p", [record for text in texts for record in source(text, text)])
    with closing(load_encoder(str(resolve_model(network=False).folder), precision="auto")) as encoder:
        home.encoder = encoder  # type: ignore[assignment]
        home.rebuild()
        assert graph_of(home) == ef_search(len(texts)) > OLD
        assert recall_of(home).mean >= GOAL
        live = home.live()
        graph_of(home, **{EF_SEARCH: OLD})
        with closing(chroma(home.folder)) as sink, closing(sink.reader(live.builds["chroma"])) as reader:  # type: ignore[attr-defined]
            vector = encoder.encode(["Which documents does a search find?"])[0]
            narrow = reader.query(vector, NEAREST)
            low = recall_of(home)
            assert low.is_low
            assert low.mean < GOAL
            assert (low.questions, low.documents) == (100, len(texts))
            assert recall_of(home) == low, "the same build gives the same number"
            assert home.verify().sinks["chroma"].settings == (EF_SEARCH,)
            assert home.plan_sync().settings == {"chroma": [EF_SEARCH]}
            done = home.sync()
            assert (done.sinks["chroma"].settings, done.sinks["chroma"].written) == ((EF_SEARCH,), 0)
            assert (home.live(), graph_of(home)) == (live, ef_search(len(texts)))
            assert not recall_of(home).is_low
            reader.refresh()
            wide = reader.query(vector, NEAREST)
            assert sum(hit.score for hit in wide) >= sum(hit.score for hit in narrow)
    verified = home.verify()
    assert verified.ok
    assert verified.sinks["chroma"].recall is None, "only where it was asked for"
    assert home.sync().sinks["chroma"].settings == (), "nothing is due any more"


class SomeReader(MemoryReader):
    """Compares everything, and answers with a part of it."""

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
    """150 documents, and ten more with a text that another one has."""
    monkeypatch.setattr(SomeReader, "share", 1.0)
    monkeypatch.setattr(SomeReader, "vectors", 0)
    sink = SomeSink()
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), lambda _home: sink)
    texts = [f"text {number}" for number in range(150)] + [f"text {number}" for number in range(10)]
    commit(home.root, "p", [record for place, text in enumerate(texts) for record in source(f"{place}.md", text)])
    home.rebuild()
    yield home


@pytest.mark.parametrize(("share", "mean"), [(1.0, 1.0), (0.9, 0.9), (0.0, 0.0)])
def test_what_a_search_leaves_out_is_measured(
    known: Home, share: float, mean: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SomeReader, "share", share)
    found = recall_of(known, "memory")
    assert (found.mean, found.worst, found.questions, found.documents, found.deleted) == (mean, mean, 100, 160, 0.0)
    assert found.is_low == (mean < GOAL)


def test_of_equally_near_documents_any_is_right(known: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def last_of_equals(self: SomeReader, vector: Vectors, limit: int) -> list[str]:
        hits = sorted(self.query(vector, 200), key=lambda hit: (-round(hit.score, 5), hit.id))
        return [hit.id for hit in sorted(hits, key=lambda hit: (-round(hit.score, 5), hit.id[::-1]))][:limit]

    monkeypatch.setattr(SomeReader, "nearest", last_of_equals)
    assert recall_of(known, "memory").mean == 1.0


def test_what_the_catalog_does_not_know_takes_no_place(known: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as an older version of a source that is held."""

    def with_strangers(self: SomeReader, vector: Vectors, limit: int) -> list[str]:
        return [*(f"stranger {number}" for number in range(10)), *(hit.id for hit in self.query(vector, limit - 10))]

    monkeypatch.setattr(SomeReader, "nearest", with_strangers)
    assert recall_of(known, "memory").mean == 1.0


def test_a_worn_graph_is_reported(known: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SomeReader, "vectors", 320)
    assert (recall_of(known, "memory").deleted, recall_of(known, "memory").is_worn) == (0.5, False)
    monkeypatch.setattr(SomeReader, "vectors", 1600)
    assert recall_of(known, "memory").deleted == 0.9 > WORN
    assert recall_of(known, "memory").is_worn


def test_a_build_that_lost_something_is_not_measured(known: Home) -> None:
    """Its losses are reported, and would count as missed."""
    lose(known, "memory", known.contents()["memory"][:1])
    verified = known.verify(recall=True).sinks["memory"]
    assert (verified.ok, verified.recall) == (False, None)


def test_an_exact_search_is_not_measured(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), memory())
    commit(home.root, "p", source("a.md", "a cat"))
    home.rebuild()
    assert home.verify(recall=True).sinks["memory"].recall is None
