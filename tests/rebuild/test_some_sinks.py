"""Rebuilding some sinks while others stay, adding and removing sinks, and an interrupted flip."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.errors import OtherModel
from chunksink.rebuild.state import NO_MODEL, State
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import Refused
from chunksink.sinks.meilisearch import MeilisearchSink
from tests.conftest import sampled
from tests.embeddings.helpers import HashEncoder
from tests.engines.servers import MeilisearchServer
from tests.support.bus import commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import ENGINES, chroma, eager_jsonl, fts, jsonl
from tests.support.public_index import meilisearch_in, texts_in
from tests.support.watched_sinks import Moment, raising, watching

ALL = frozenset({"meilisearch", "fts", "chroma", "jsonl"})
CATS, DOGS = source("docs/a.md", "a cat"), source("docs/a.md", "a dog", version="2")


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "fts", fts)
    monkeypatch.setitem(ENGINES, "jsonl", eager_jsonl)


@pytest.fixture
def server_sink(
    meilisearch_server: MeilisearchServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path], MeilisearchSink]:
    sink = meilisearch_in(meilisearch_server, f"r{uuid.uuid4().hex[:10]}")
    monkeypatch.setitem(ENGINES, "meilisearch", sink)
    return sink


def home_in(tmp_path: Path, *makers: Callable[[Path], Sink]) -> Home:
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), *makers)
    commit(home.root, "p1", CATS)
    return home


def only(home: Home, *makers: Callable[[Path], Sink]) -> Home:
    some = Home(home.folder, home.root, *makers)
    some.encoder = home.encoder
    return some


def test_rebuild_of_one_sink_leaves_the_others_unchanged(
    tmp_path: Path, server_sink: Callable[[Path], MeilisearchSink]
) -> None:
    home = home_in(tmp_path, fts, server_sink)
    home.rebuild()
    before = home.live()
    commit(home.root, "p1", DOGS)
    for _ in range(3):
        only(home, fts).rebuild(keep=ALL)
    live = home.live()
    assert live.builds["meilisearch"] == before.builds["meilisearch"]
    assert live.builds["fts"] != before.builds["fts"]
    assert home.contents() == {"fts": projected(DOGS), "meilisearch": projected(CATS)}
    assert home.builds()["meilisearch"] == [before.builds["meilisearch"]], "shared, not copied"
    home.rebuild()
    assert home.contents() == {"fts": projected(DOGS), "meilisearch": projected(DOGS)}
    sink = server_sink(home.folder)
    assert texts_in(sink) == {"a dog"}
    home.rebuild()
    assert {name: len(builds) for name, builds in home.builds().items()} == {"fts": 2, "meilisearch": 2}
    sink.close()


def test_sinks_of_two_models_are_not_mixed(tmp_path: Path) -> None:
    home = home_in(tmp_path, fts, eager_jsonl, chroma)
    home.rebuild()
    live = home.live()
    home.encoder = HashEncoder(dimension=8, name="another")
    with pytest.raises(OtherModel, match=r"^chroma .* hash.* another"):
        only(home, eager_jsonl).rebuild(keep=ALL)
    assert home.live() == live


def test_sink_without_vectors_has_no_model_to_mix(tmp_path: Path) -> None:
    home = home_in(tmp_path, fts, chroma)
    home.rebuild()
    before = home.live()
    home.encoder = HashEncoder(dimension=8, name="another")
    only(home, fts).rebuild(keep=ALL)
    assert (home.live().model, home.live().builds["chroma"]) == (before.model, before.builds["chroma"])
    only(home, chroma).rebuild(keep=ALL)
    assert home.live().model.fingerprint == home.encoder.fingerprint
    assert home.contents() == {"fts": projected(CATS), "chroma": projected(CATS)}


def begun(home: Home, sink: str) -> dict[str, str]:
    """Kills a rebuild after this sink was sent its documents. Returns the unfinished builds."""
    die = Moment("flush", 1, raising(KeyboardInterrupt()), after=True)
    with pytest.raises(KeyboardInterrupt):
        home.rebuild(keep=ALL, wrap=watching(sink, die))
    with State.existing(home.folder) as state:
        unfinished = state.unfinished()
        assert unfinished is not None
        return unfinished.builds


SOME = ((fts,), (jsonl,), (fts, jsonl))


@pytest.mark.parametrize(("live", "first", "second"), sampled(product([(fts,), (fts, jsonl)], SOME, SOME), 5))
def test_partial_rebuild_is_continued_only_by_one_of_the_same_sinks(
    live: tuple[Callable[[Path], Sink], ...],
    first: tuple[Callable[[Path], Sink], ...],
    second: tuple[Callable[[Path], Sink], ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another one would write into builds that readers see."""
    monkeypatch.setitem(ENGINES, "jsonl", jsonl)
    home = home_in(tmp_path, *live)
    home.rebuild()
    before, contents = home.live().builds, home.contents()
    left = begun(only(home, *first), first[-1].__name__)
    commit(home.root, "p1", DOGS)

    def refuse() -> None:
        assert home.contents() == contents
        raise Refused("not now")

    refused = watching(second[-1].__name__, Moment("flush", 1, refuse, after=True))
    with pytest.raises(Refused):
        only(home, *second).rebuild(keep=ALL, wrap=refused)
    assert (home.live().builds, home.contents()) == (before, contents)
    only(home, *second).rebuild(keep=ALL)
    after, written = home.live().builds, {maker.__name__ for maker in second}
    assert {name for name in after if after[name] != before.get(name)} == written
    assert {name for name in written if after[name] == left.get(name)} == (written if first == second else set())


def test_build_shared_with_a_removed_sink_is_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "jsonl", jsonl)
    home = home_in(tmp_path, fts, jsonl)
    home.rebuild()
    begun(only(home, jsonl), "jsonl")
    only(home, jsonl).rebuild()
    assert list(home.live().builds) == ["jsonl"]


def test_sinks_without_vectors_need_no_model(tmp_path: Path) -> None:
    """Also if the first rebuild is only for them."""
    home = home_in(tmp_path, fts)
    home.rebuild(keep=ALL - {"meilisearch"})
    assert list(home.live().builds) == ["fts"]
    assert (home.encoder.asked, home.contents()) == ([], {"fts": projected(CATS)})
    with State.existing(home.folder) as state:
        assert (state.live().model, state.live().holds_vectors) == (NO_MODEL, False)
        assert state.model_fingerprints() == set(), "the cache keeps the vectors of current texts"
