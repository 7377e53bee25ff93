"""Meilisearch with a public name that other programs search: whole runs on a real server."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from chunksink.rebuild import flip
from chunksink.rebuild.errors import OtherHome
from chunksink.rebuild.flip import roll_back
from chunksink.rebuild.locks import writing
from tests.engines.servers import MeilisearchServer
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.home import Home, sinks_with
from tests.support.meilisearch import SETTINGS
from tests.support.public_index import home_with, meilisearch_in, public_texts, server_sink, texts

pytestmark = pytest.mark.promise(5)

Make = Callable[..., Home]

CATS, DOGS = source("docs/a.md", "a cat", "a mat"), source("docs/a.md", "a dog", version="2", at=FEBRUARY)
BIRDS = source("docs/b.md", "a bird")


@pytest.fixture
def home_in(meilisearch_server: MeilisearchServer, tmp_path: Path) -> Make:
    """Homes that use one public name of one server."""
    index = f"p{uuid.uuid4().hex[:10]}"

    def make(folder: str = "home", settings: dict[str, object] = SETTINGS, index: str = index) -> Home:
        sink = meilisearch_in(meilisearch_server, index, settings)
        return home_with(tmp_path / folder, sink, chunks=tmp_path / "chunks")

    return make


def test_home_without_records_recognises_its_index(home_in: Make) -> None:
    """Searches have no gap, and no build without a record stays."""
    home = home_in()
    commit(home.root, "p1", CATS)
    home.rebuild()
    home.lose_records()
    commit(home.root, "p1", DOGS, at=FEBRUARY)
    home.rebuild()
    assert public_texts(home) == texts(DOGS)
    assert {name: len(builds) for name, builds in home.builds().items()} == {"fts": 1, "meilisearch": 1}


def test_interrupted_adoption_is_finished_by_the_next(home_in: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = home_in("one"), home_in("two")
    commit(first.root, "p1", CATS)
    first.rebuild()

    def die(*_given: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(flip, "show", die)
        second.rebuild(adopt=True)
    with pytest.raises(OtherHome, match="--adopt"):
        second.rebuild()
    second.rebuild(adopt=True)
    assert public_texts(second) == texts(CATS)
    assert second.verify().ok


def test_another_home_does_not_take_the_name_without_consent(home_in: Make) -> None:
    first, second = home_in("one"), home_in("two")
    commit(first.root, "p1", CATS)
    first.rebuild()
    for look in (second.rebuild, second.plan_sync):
        with pytest.raises(OtherHome, match=r"the option `index` of Meilisearch.*--adopt"):
            look()
    assert public_texts(first) == texts(CATS)
    assert first.verify().ok
    second.rebuild(adopt=True)
    assert public_texts(second) == texts(CATS)
    verified = first.verify()
    assert (verified.ok, list(verified.failed), verified.sinks["meilisearch"].ok) == (False, ["meilisearch"], True)
    assert isinstance(verified.failed["meilisearch"], OtherHome)
    commit(first.root, "p1", DOGS, at=FEBRUARY)
    for look in (first.sync, first.plan_sync, first.rebuild):
        with pytest.raises(OtherHome, match="--adopt"):
            look()
    assert first.contents() == {"fts": projected(CATS), "meilisearch": projected(CATS)}, "nothing was written"


def test_refused_sync_leaves_no_index(home_in: Make) -> None:
    """Two homes' indexes were swapped: neither has its build under its name, and neither creates another one."""
    one, other = home_in("one"), home_in("two", index=f"q{uuid.uuid4().hex[:10]}")
    commit(one.root, "p1", CATS)
    one.rebuild()
    other.rebuild()
    names = [server_sink(home)._indexes.public for home in (one, other)]

    def swap() -> None:
        sink = server_sink(one)
        order = partial(sink._connection.control.swap_indexes, [{"indexes": names}])
        sink._indexes._single_tasks.run("swap", order)
        sink.close()

    swap()
    with pytest.raises(OtherHome):
        one.sync()
    swap()
    synced = one.sync()
    assert (sinks_with(synced, "scanned"), sinks_with(synced, "made_again")) == ([], []), "no record was lost"
    one.rebuild()
    with writing(one.folder), one.session() as session:
        roll_back(session)
    assert public_texts(one) == texts(CATS)
    assert len(one.builds()["meilisearch"]) == 2
