"""Rebuilding some sinks and keeping others, sinks that come and go, and a flip that was cut off in the middle."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from chunkbus.layout import BusRoot
from rebuild.errors import OtherModel
from rebuild.state import State
from sinks.meilisearch import MeilisearchSink
from sinks.sink import Sink
from tests.conformance.test_meilisearch import SETTINGS
from tests.embeddings.helpers import HashEncoder
from tests.engines.servers import MeilisearchServer
from tests.rebuild.engines import ENGINES, chroma, fts
from tests.rebuild.support import Home, commit, projected, source

CATS, DOGS = source("docs/a.md", "a cat"), source("docs/a.md", "a dog", version="2")


@pytest.fixture
def server_sink(
    meilisearch_server: MeilisearchServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path], MeilisearchSink]:
    server, index = meilisearch_server, f"r{uuid.uuid4().hex[:10]}"

    def meilisearch(_home: Path) -> MeilisearchSink:
        return MeilisearchSink(server.url, server.key, settings=SETTINGS, index=index)

    monkeypatch.setitem(ENGINES, "meilisearch", meilisearch)
    return meilisearch


def home_in(tmp_path: Path, *makers: Callable[[Path], Sink]) -> Home:
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), *makers)
    commit(home.root, "p1", CATS)
    return home


def only(home: Home, *makers: Callable[[Path], Sink]) -> Home:
    some = Home(home.folder, home.root, *makers)
    some.encoder = home.encoder
    return some


def public_texts(sink: MeilisearchSink) -> set[str]:
    found = sink._connection.send(f"/indexes/{sink._indexes.public}/documents/fetch", {"limit": 10})  # type: ignore[attr-defined]
    return {document["text"] for document in found["results"]}


def test_one_sink_is_rebuilt_and_the_others_stay_as_they_are(
    tmp_path: Path, server_sink: Callable[[Path], MeilisearchSink]
) -> None:
    home = home_in(tmp_path, fts, server_sink)
    home.rebuild()
    before = home.live()
    commit(home.root, "p1", DOGS)
    for _ in range(3):
        only(home, fts).rebuild(keep_others=True)
    live = home.live()
    assert live.builds["meilisearch"] == before.builds["meilisearch"]
    assert live.builds["fts"] != before.builds["fts"]
    assert home.contents() == {"fts": projected(DOGS), "meilisearch": projected(CATS)}
    assert home.builds()["meilisearch"] == [before.builds["meilisearch"]], "shared, not copied"
    home.rebuild()
    assert home.contents() == {"fts": projected(DOGS), "meilisearch": projected(DOGS)}
    sink = server_sink(home.folder)
    assert public_texts(sink) == {"a dog"}
    home.rebuild()
    assert {name: len(builds) for name, builds in home.builds().items()} == {"fts": 2, "meilisearch": 2}
    sink.close()


def test_sinks_of_two_models_are_not_mixed(tmp_path: Path) -> None:
    home = home_in(tmp_path, fts, chroma)
    home.rebuild()
    live = home.live()
    home.encoder = HashEncoder(dimension=8, name="another")
    with pytest.raises(OtherModel, match="rebuild all sinks together"):
        only(home, fts).rebuild(keep_others=True)
    assert home.live() == live


def test_the_first_rebuild_may_be_of_one_sink(tmp_path: Path) -> None:
    home = home_in(tmp_path, fts)
    home.rebuild(keep_others=True)
    assert list(home.live().builds) == ["fts"]


def test_a_sink_that_is_not_configured_any_more_is_cleared_and_can_come_back(
    tmp_path: Path, server_sink: Callable[[Path], MeilisearchSink]
) -> None:
    home = home_in(tmp_path, fts, server_sink)
    home.rebuild()
    alone = only(home, fts)
    for _ in range(2):
        alone.rebuild()
    assert home.builds()["meilisearch"] == []
    assert list(home.live().builds) == ["fts"]
    home.rebuild()
    assert home.contents() == {"fts": projected(CATS), "meilisearch": projected(CATS)}


def test_nothing_is_embedded_for_sinks_that_want_no_vectors(tmp_path: Path) -> None:
    home = home_in(tmp_path, fts)
    home.rebuild()
    assert home.encoder.asked == []
    assert home.contents() == {"fts": projected(CATS)}


class Dies(BaseException):
    """In place of a kill."""


def test_a_run_that_died_between_the_swap_and_the_pointer_is_ended_by_the_next(
    tmp_path: Path, server_sink: Callable[[Path], MeilisearchSink], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server shows the new build already, our pointer does not; at no moment is the public index gone."""
    home = home_in(tmp_path, fts, server_sink)
    home.rebuild()
    commit(home.root, "p1", DOGS)
    with monkeypatch.context() as patch:

        def die(*_: object) -> None:
            raise Dies

        patch.setattr(State, "flip", die)
        with pytest.raises(Dies):
            home.rebuild()
    sink = server_sink(home.folder)
    assert public_texts(sink) == {"a dog"}
    seen: list[set[str]] = []

    class Watching(MeilisearchSink):
        def __getattribute__(self, name: str) -> object:
            if name in ("create", "drop", "flip"):
                seen.append(public_texts(sink))
            return super().__getattribute__(name)

    def watched(inner: Sink) -> Sink:
        if isinstance(inner, MeilisearchSink):
            inner.__class__ = Watching
        return inner

    home.rebuild(wrap=watched)
    assert len(seen) >= 3
    assert all(texts == {"a dog"} for texts in seen)
    assert home.contents() == {"fts": projected(DOGS), "meilisearch": projected(DOGS)}
    with State.existing(home.folder) as state:
        assert state.begun_flip() is None
    assert {name: len(builds) for name, builds in home.builds().items()} == {"fts": 2, "meilisearch": 2}
    sink.close()
