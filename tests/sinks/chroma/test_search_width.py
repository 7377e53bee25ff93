"""The width of Chroma's graph search grows with the build, deleted vectors included."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import chunksink.sinks.chroma.build as chroma_build
import chunksink.sinks.chroma.handle as chroma_handle
from chunksink.sinks.chroma import ChromaBuild, ChromaSink, EmbeddedChromaSink, Server
from chunksink.sinks.chroma.handle import EF_SEARCH, ef_search
from chunksink.sinks.conformance.samples import DIMENSIONS, family, marker
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Family
from chunksink.sinks.payload import unit
from tests.conftest import HEAVY
from tests.engines.servers import ChromaServer, run_chroma

NEAREST = 100
QUERIES = 20
"""A narrow search may find all neighbours of one vector by chance."""


@pytest.fixture(params=["embedded", "worker", "server"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> ChromaSink:
    if request.param == "server":
        server: ChromaServer = request.getfixturevalue("chroma_server")
        return ChromaSink(Server(server.url))
    embedded = EmbeddedChromaSink(tmp_path / "chroma")
    if request.param == "worker":
        embedded.prepare()
    return embedded


@pytest.mark.parametrize(
    ("documents", "width"), [(0, 10_000), (10_000, 10_000), (10_001, 1600), (200_001, 3200), (10**6, 6400)]
)
def test_search_width_depends_on_the_size_of_the_build(documents: int, width: int) -> None:
    assert ef_search(documents) == width


def test_graph_is_saved_after_a_hundred_writes(tmp_path: Path) -> None:
    signed = marker()
    with closing(EmbeddedChromaSink(tmp_path / "chroma")) as sink:
        with closing(sink.create(signed, DIMENSIONS)) as build:
            build.replace([family("a", [f"text {number}" for number in range(110)])])
            build.flush()
        with closing(sink.reader(signed.build_id)) as reader:
            assert reader.index_size() == 110


def test_grown_build_is_searched_more_widely(sink: ChromaSink, monkeypatch: pytest.MonkeyPatch) -> None:
    signed = marker()
    with closing(sink), closing(sink.create(signed, DIMENSIONS)) as made:
        made.replace([family("a", ["one", "two"])])
        made.flush()
        assert made.search_settings_due() == []  # type: ignore[attr-defined]
        assert made.update_search_settings() == []  # type: ignore[attr-defined]
    with closing(sink), closing(sink.open(signed.build_id)) as build:
        assert isinstance(build, ChromaBuild)
        monkeypatch.setattr(chroma_build, "ef_search", lambda documents: 1234 if documents == 2 else 800)
        assert build.search_settings_due() == [EF_SEARCH]
        assert build.update_search_settings() == [EF_SEARCH]
        assert build.search_settings_due() == build.update_search_settings() == []
        opened = build._handle.opened()
        collection = opened.client.get_collection(opened.collection.name, embedding_function=None)
        graph = collection.configuration_json["hnsw"]
        assert (graph[EF_SEARCH], graph["space"]) == (1234, "cosine")
        assert (build.marker(), build.count()) == (signed, 2)
        build.sign(signed)
        assert build.search_settings_due() == [], "a signature leaves it"
    with closing(sink), closing(sink.open(signed.build_id)) as build:
        assert build.search_settings_due() == []  # type: ignore[attr-defined]
    sink.drop(signed.build_id)


@pytest.mark.skipif(not HEAVY, reason="2,500 vectors are written; CHUNKSINK_SOAK_HEAVY")
def test_deleted_vectors_are_counted(tmp_path: Path, signed: Marker) -> None:
    sink: EmbeddedChromaSink = EmbeddedChromaSink(tmp_path / "chroma")
    with closing(sink), closing(sink.create(signed, DIMENSIONS)) as build:
        for version in range(5):
            build.replace([family("a", [f"{version} {place}" for place in range(500)])])
            build.flush()
        assert build.count() == 500
    with closing(sink.reader(signed.build_id)) as reader:
        size = reader.index_size()
    assert size is not None
    assert 1500 < size <= 2500


@pytest.mark.skipif(not HEAVY, reason="a server is started twice over 3,000 vectors; CHUNKSINK_SOAK_HEAVY")
def test_server_uses_the_new_width_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then it searches with the old width (see `docs/sinks.md`)."""
    signed, documents = marker(), family("a", [f"text {place}" for place in range(3000)]).documents
    vectors = unit(np.random.default_rng(1).standard_normal((len(documents), 64)))
    queries = vectors[:QUERIES]
    exact = [{documents[row].id for row in np.argsort(-(vectors @ query))[:NEAREST]} for query in queries]

    def found(server: ChromaServer) -> int:
        with closing(ChromaSink(Server(server.url)).reader(signed.build_id)) as reader:
            answers = [set(reader.nearest(query, NEAREST)) for query in queries]
        return sum(len(nearest & answer) for nearest, answer in zip(exact, answers, strict=True))

    monkeypatch.setattr(chroma_handle, "ef_search", lambda _documents: 10)
    with run_chroma(data=tmp_path) as server:
        with closing(ChromaSink(Server(server.url)).create(signed, 64)) as build:
            build.replace([Family(documents, vectors)])
            build.flush()
        before = found(server)
        with closing(ChromaSink(Server(server.url)).open(signed.build_id)) as build:
            assert isinstance(build, ChromaBuild)
            assert build.update_search_settings() == [EF_SEARCH]
        assert found(server) == before < QUERIES * NEAREST
    with run_chroma(data=tmp_path) as server:
        assert found(server) > before
