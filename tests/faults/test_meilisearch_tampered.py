"""Changes to the live index of Meilisearch by other programs: the next sync restores it, and leaves foreign indexes
alone."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.errors import OtherHome
from chunksink.rebuild.flip import roll_back
from chunksink.rebuild.forecast import plan_sync
from chunksink.rebuild.locks import writing
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import BuildBroken, BuildMissing, Refused
from chunksink.sinks.meilisearch import MeilisearchBuild, MeilisearchSink
from chunksink.sinks.meilisearch.tasks import Payload
from chunksink.sinks.retry import with_retries
from tests.conftest import HEAVY
from tests.engines.servers import MeilisearchServer, run_meilisearch
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.home import Engines, Home, sinks_with
from tests.support.local_engines import fts
from tests.support.meilisearch import SETTINGS, Server, public_texts
from tests.support.watched_sinks import Calls, Moment, watching

pytestmark = pytest.mark.promise(1)

CATS, DOGS = source("docs/a.md", "a cat", "a mat"), source("docs/a.md", "a dog", version="2", at=FEBRUARY)
BIRDS = source("docs/b.md", "a bird")
INDEX: Mapping[str, str] = {"primaryKey": "id"}


class Place(Server):
    """A public name on the server, and homes that use it."""

    def __init__(self, server: MeilisearchServer, folder: Path) -> None:
        super().__init__(server)
        self.folder = folder
        self.settings: dict[str, Any] = SETTINGS
        self.home = self.home_in("home")

    def home_in(self, folder: str) -> Home:
        engines: Engines = {"fts": fts, "meilisearch": self.sink_of}
        return Home(self.folder / folder, FolderRoot(self.folder / "chunks"), *engines.values(), engines=engines)

    def sink_of(self, _home: Path) -> MeilisearchSink:
        return self.sink(settings=self.settings)

    def texts(self) -> set[str]:
        return public_texts(self)

    def live(self, what: str) -> Any:
        return self.do("GET", f"/indexes/{self.index}/settings")[what]

    def embeddings(self) -> int:
        return int(self.do("GET", f"/indexes/{self.index}/stats")["numberOfEmbeddings"])


@pytest.fixture
def place(meilisearch_server: MeilisearchServer, tmp_path: Path) -> Iterator[Place]:
    place = Place(meilisearch_server, tmp_path)
    yield place
    for name in place.names():
        place.do("DELETE", f"/indexes/{name}")
    place.http.close()


@pytest.fixture
def built(place: Place) -> Place:
    commit(place.home.root, "p1", [*CATS, *BIRDS])
    place.home.rebuild()
    return place


# -- lost data -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mend", [Home.sync, Home.rebuild])
def test_server_wiped_during_a_write_is_filled_again(
    built: Place, mend: Callable[[Home], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the documents that arrive then, Meilisearch creates an index that refuses them."""
    home = built.home
    commit(home.root, "p1", [*DOGS, *BIRDS], at=FEBRUARY)
    send = MeilisearchBuild._send

    def wipe_and_send(build: MeilisearchBuild, payload: Payload) -> None:
        for name in built.names():
            built.do("DELETE", f"/indexes/{name}")
        send(build, payload)

    with monkeypatch.context() as patched:
        patched.setattr(MeilisearchBuild, "_send", wipe_and_send)
        outcome = home.sync()
    assert isinstance(outcome.failed["meilisearch"], BuildMissing)
    assert not any(home.refused().values()), "no document is to blame"
    assert built.do("GET", f"/indexes/{built.index}")["primaryKey"] is None, "so is what it made"
    mend(home)
    assert built.texts() == {"a dog", "a bird"}
    assert home.verify(deep=True).ok
    assert sinks_with(home.sync(), "scanned") == []


@pytest.mark.parametrize("call", ["replace", "flush"])
def test_server_that_loses_its_data_during_a_sync_is_filled_by_the_next(call: str, tmp_path: Path) -> None:
    """During the sync the server is ended, its folder removed, and a new one started at its address."""
    with ExitStack() as running:
        server = running.enter_context(run_meilisearch(data=tmp_path / "data"))
        place = Place(server, tmp_path)
        home = place.home
        commit(home.root, "p1", [*CATS, *BIRDS])
        home.rebuild()
        commit(home.root, "p1", [*DOGS, *BIRDS], at=FEBRUARY)

        def lose_all() -> None:
            running.close()
            shutil.rmtree(tmp_path / "data")
            running.enter_context(run_meilisearch(data=tmp_path / "data", key=server.key, port=server.port))

        def patient(sink: Sink) -> Sink:
            return with_retries(watching("meilisearch", moment)(sink))

        moment = Moment(call, 1, lose_all)
        assert list(home.sync(wrap=patient).failed) == ["meilisearch"]
        home.sync()
        assert place.texts() == {"a dog", "a bird"}
        assert home.verify(deep=True).ok
        place.http.close()


def test_empty_index_with_foreign_settings_is_not_changed(place: Place) -> None:
    place.do("POST", "/indexes", json={"uid": place.index})
    place.do("PATCH", f"/indexes/{place.index}/settings", json={"stopWords": ["the"]})
    commit(place.home.root, "p1", CATS)
    with pytest.raises(Refused, match="was not created by chunksink"):
        place.home.rebuild()
    assert place.live("stopWords") == ["the"]


def test_build_name_of_an_index_made_by_the_server_is_free(place: Place) -> None:
    with pytest.raises(Refused):
        place.sink().open("b1")
    documents = [{"id": "1", "parent_id": "2"}]
    assert place.do("POST", f"/indexes/{place.index}-b1/documents", json=documents)["status"] == "failed"
    commit(place.home.root, "p1", CATS)
    with writing(place.home.folder), place.home.session() as session:
        sink = session.sinks["meilisearch"]
        sink.create(session.marker("b1"), 8)
        assert sink.builds() == ["b1"]
    assert place.do("GET", f"/indexes/{place.index}-b1")["primaryKey"] == "id"


# -- the marker ------------------------------------------------------------------------------------------------------


LOSSES = {
    "synonyms": lambda place: place.do("PUT", f"/indexes/{place.index}/settings/synonyms", json={"boat": ["ship"]}),
    "all settings": lambda place: place.do("DELETE", f"/indexes/{place.index}/settings"),
}
Lose = Callable[[Place], Any]


@pytest.mark.parametrize("lose", LOSSES.values())
def test_live_index_without_its_marker_is_signed_by_a_sync(built: Place, lose: Lose) -> None:
    home = built.home
    lose(built)
    with built.home.session() as session, home.embedder() as embedder:
        assert plan_sync(session, session.state.live(), embedder).settings["meilisearch"]
    verified = home.verify()
    assert not verified.ok
    assert not verified.sinks["meilisearch"].shown
    assert isinstance(verified.failed["meilisearch"], BuildBroken)
    calls = Calls()
    outcome = home.sync(wrap=calls)
    assert (sinks_with(outcome, "drifted"), sinks_with(outcome, "settings")) == (["meilisearch"], ["meilisearch"])
    assert (calls.sent("meilisearch"), built.names()) == ([], {built.index}), "nothing is written again"
    live = built.do("GET", f"/indexes/{built.index}/settings")
    assert list(live.pop("synonyms")) == ["chunksinkmarker"]
    assert {name: live[name] for name in live if name in SETTINGS} | {"synonyms": {}} == SETTINGS
    assert built.embeddings() == 3
    assert home.verify(deep=True).ok
    assert (sinks_with(home.sync(), "scanned"), sinks_with(home.sync(), "settings")) == ([], [])


@pytest.mark.parametrize("lose", LOSSES.values() if HEAVY else [])
def test_live_index_without_its_marker_is_replaced_by_a_rebuild(built: Place, lose: Lose) -> None:
    home = built.home
    lose(built)
    commit(home.root, "p1", [*DOGS, *BIRDS], at=FEBRUARY)
    home.rebuild()
    assert built.texts() == {"a dog", "a bird"}
    assert home.verify(deep=True).ok
    assert len(built.names()) == 2, "the one before is kept, and known"
    home.rebuild()
    assert len(built.names()) == 2


@pytest.mark.parametrize("removed", [False, True])
def test_rollback_from_an_index_without_its_marker_works(removed: bool, built: Place) -> None:
    """If the previous index is missing, too, nothing is changed."""
    home = built.home
    commit(home.root, "p1", [*DOGS, *BIRDS], at=FEBRUARY)
    home.rebuild()
    LOSSES["synonyms"](built)
    (other,) = built.names() - {built.index}
    if removed:
        built.do("DELETE", f"/indexes/{other}")
    with writing(home.folder), home.session() as session:
        if removed:
            with pytest.raises(BuildMissing):
                roll_back(session)
        else:
            roll_back(session)
    assert built.texts() == ({"a dog", "a bird"} if removed else {"a cat", "a mat", "a bird"})
    home.sync()
    assert built.texts() == {"a dog", "a bird"}
    assert home.verify(deep=True).ok


def test_search_of_an_index_without_its_marker_names_the_remedy(built: Place) -> None:
    LOSSES["synonyms"](built)
    with closing(built.sink()) as sink, pytest.raises(BuildMissing, match=r"lost its marker.*run `chunksink sync`"):
        sink.reader(built.home.live().builds["meilisearch"])


def test_unmarked_index_of_other_documents_needs_explicit_consent(place: Place, built: Place) -> None:
    """The unmarked index of another home has the name of ours."""
    home, other = built.home, built.home_in("other")
    other.root = FolderRoot(built.folder / "theirs")
    commit(other.root, "q1", source("theirs/x.md", "x one", "x two"))
    built.do("DELETE", f"/indexes/{built.index}")
    other.rebuild()
    LOSSES["synonyms"](built)
    for run in (home.sync, home.rebuild):
        with pytest.raises(OtherHome, match=r"lost its marker.*sync --adopt"):
            run()
    assert "lost its marker" in str(home.verify().failed["meilisearch"])
    assert built.texts() == {"x one", "x two"}
    assert built.live("synonyms") == {"boat": ["ship"]}, "nothing was changed"
    home.sync(adopt=True, allow_deletions=10)
    assert built.texts() == {"a cat", "a mat", "a bird"}
    assert home.verify(deep=True).ok


@pytest.mark.parametrize(("documents", "adopt"), [([], False), ([{"id": "1", "name": "a lamp"}], True)])
def test_foreign_index_is_never_taken(documents: list[dict[str, str]], adopt: bool, built: Place) -> None:
    built.do("DELETE", f"/indexes/{built.index}")
    built.do("POST", "/indexes", json={"uid": built.index, **INDEX})
    built.do("POST", f"/indexes/{built.index}/documents", json=documents)
    failed = built.home.sync(adopt=adopt).failed["meilisearch"]
    assert "was not created by chunksink" in str(failed)
    assert "was not created by chunksink" in str(built.home.verify().failed["meilisearch"])
    with (
        built.home.session() as session,
        built.home.embedder() as embedder,
        pytest.raises(Refused, match="was not created by chunksink"),
    ):
        plan_sync(session, session.state.live(), embedder)
    with pytest.raises(Refused, match="was not created by chunksink"):
        built.home.rebuild(adopt=adopt)
    held = built.do("POST", f"/indexes/{built.index}/documents/fetch", json={})["results"]
    assert (held, built.live("synonyms")) == (documents, {})


# -- settings of an unfinished build ---------------------------------------------------------------------------------


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


def test_continued_rebuild_uses_the_current_settings(place: Place) -> None:
    home = place.home
    commit(home.root, "p1", CATS)
    with pytest.raises(Killed):
        home.rebuild(wrap=watching("meilisearch", Moment("flush", 1, die, after=True)))
    place.settings = {**SETTINGS, "stopWords": ["the"]}
    home.rebuild()
    assert place.live("stopWords") == ["the"]
    assert sinks_with(home.sync(), "settings") == []


def test_corrected_settings_file_is_used_by_the_blocked_rebuild(place: Place) -> None:
    home = place.home
    commit(home.root, "p1", CATS)
    place.settings = {**SETTINGS, "filterableAttributes": ["tags"]}
    with pytest.raises(Refused, match="differ from the settings file"):
        home.rebuild()
    place.settings = SETTINGS
    home.rebuild()
    assert place.texts() == {"a cat", "a mat"}
    assert home.verify(deep=True).ok


# -- the embedder ----------------------------------------------------------------------------------------------------


EMBEDDER = {"default": {"source": "userProvided", "dimensions": 8}}
REST = {
    "source": "rest",
    "url": "http://127.0.0.1:9",
    "request": {"input": "{{text}}"},
    "response": {"data": "{{embedding}}"},
    "dimensions": 8,
}
TAMPERED = {
    "removed": lambda place: place.do("DELETE", f"/indexes/{place.index}/settings/embedders"),
    "of another kind": lambda place: place.do(
        "PATCH", f"/indexes/{place.index}/settings/embedders", json={"default": REST}
    ),
    "of another length": lambda place: place.do(
        "PATCH", f"/indexes/{place.index}/settings/embedders", json={"default": {"dimensions": 4}}
    ),
}


@pytest.mark.parametrize(
    ("tampered", "deep"),
    [("removed", False), ("of another length", False), ("of another kind", False), ("removed", True)],
)
def test_changed_embedder_is_restored_with_its_vectors(tampered: str, deep: bool, built: Place) -> None:
    """Meanwhile the server keeps the vectors in the documents."""
    home = built.home
    TAMPERED[tampered](built)
    assert built.live("embedders") != EMBEDDER
    assert not deep or not home.verify(deep=True).ok
    calls = Calls()
    assert home.sync(wrap=calls, scan=deep, deep=deep).sinks["meilisearch"].settings == ("embedders",)
    assert calls.sent("meilisearch") == []
    assert (built.live("embedders"), built.embeddings()) == (EMBEDDER, 3)
    assert home.verify(deep=True).ok
    assert sinks_with(home.sync(), "settings") == []


def test_documents_written_without_an_embedder_get_their_vectors(built: Place) -> None:
    home = built.home
    TAMPERED["removed"](built)
    (bird,) = projected(BIRDS)
    fields = [{**bird.as_dict(), "_vectors": {"default": [1.0, 2.0]}}, {**projected(CATS)[0].as_dict()}]
    built.do("DELETE", f"/indexes/{built.index}/documents/{projected(CATS)[0].id}")
    assert built.do("POST", f"/indexes/{built.index}/documents", json=fields)["status"] == "succeeded"
    home.sync()
    assert built.embeddings() == 3
    assert home.verify(deep=True).ok


def test_foreign_vector_is_found_and_removed(built: Place) -> None:
    """Meilisearch searches both vectors, so the document would be found for another meaning."""
    home = built.home
    (bird,) = [each for each in home.contents()["meilisearch"] if each.id == projected(CATS)[0].id]
    ours = home.encoder.vector(bird.text).tolist()
    both = {"id": bird.id, "_vectors": {"default": {"embeddings": [ours, [0.05] * 8], "regenerate": False}}}
    assert built.do("PUT", f"/indexes/{built.index}/documents", json=[both])["status"] == "succeeded"
    assert home.verify(deep=True).sinks["meilisearch"].changed == (bird.id,)
    home.sync(scan=True, deep=True)
    assert home.verify(deep=True).ok
    assert built.embeddings() == 3


def test_foreign_embedder_is_not_changed(built: Place) -> None:
    other = {"theirs": {**REST, "documentTemplate": "x"}}
    home = built.home
    for each in projected(CATS, BIRDS):
        patch = [{"id": each.id, "_vectors": {"theirs": None}}]
        built.do("PUT", f"/indexes/{built.index}/documents", json=patch)
    task = built.do("PATCH", f"/indexes/{built.index}/settings/embedders", json=other)
    assert json.dumps(task.get("error")) == "null"
    assert sinks_with(home.sync(), "settings") == []
    assert set(built.live("embedders")) == {"default", "theirs"}
