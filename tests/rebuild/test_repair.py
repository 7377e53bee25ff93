"""Documents that an engine lost, gained or changed: verify names exactly them and repair repairs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild.state import State
from chunksink.rebuild.verify import SinkCheck
from chunksink.sinks.document import Document
from tests.conftest import sampled
from tests.support.bus import commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import chroma, fts, memory
from tests.support.tampering import altered, digests, lose, put, require_sound
from tests.support.watched_sinks import Calls, Moment, raising, watching

pytestmark = [pytest.mark.promise(1), pytest.mark.promise(4)]

COUNT = 40
SOURCES = [source(f"docs/{number}.md", *(f"text {number} {part}" for part in range(3))) for number in range(COUNT)]
DOCUMENTS = projected(*SOURCES)


@pytest.fixture(params=["fts", "chroma"])
def engine(request: pytest.FixtureRequest) -> str:
    """The sink that is tampered with."""
    return str(request.param)


@pytest.fixture
def home(engine: str, tmp_path: Path, root: BusRoot) -> Home:
    home = Home(tmp_path / "home", root, fts, chroma if engine == "chroma" else memory())
    commit(root, "p1", [record for records in SOURCES for record in records])
    home.rebuild()
    return home


def found_in(home: Home, engine: str) -> SinkCheck:
    """Verify's findings for the engine; there must be none for the other one."""
    found = home.verify()
    assert found.failed == {}
    assert all(sink.ok for name, sink in found.sinks.items() if name != engine)
    assert found.ok == found.sinks[engine].ok
    return found.sinks[engine]


def repaired(home: Home, engine: str, tmp_path: Path) -> None:
    """After a repair the index equals a new one, and a sync writes nothing."""
    encoded = list(home.encoder.asked)
    home.sync(scan=True)
    assert home.encoder.asked == encoded, "no vector was computed again"
    for options in ({}, {"scan": True}):
        calls = Calls()
        home.sync(wrap=calls, **options)
        assert {call for _, call, _ in calls} <= {"scan"}
    assert home.verify(deep=True).ok
    require_sound(home, tmp_path)


def ids(*documents: Document) -> tuple[str, ...]:
    """In the order of verify."""
    return tuple(document.id for document in sorted(documents, key=lambda d: (d.parent_id, d.id)))


def test_loss_of_nearly_all_documents_is_repaired(home: Home, engine: str, tmp_path: Path) -> None:
    """97 of 100 documents, of whole families and of parts of them."""
    kept = DOCUMENTS[:: len(DOCUMENTS) // 3][:3]
    lost = [document for document in DOCUMENTS if document not in kept]
    assert len(lost) >= 0.97 * len(DOCUMENTS)
    lose(home, engine, lost)
    assert home.contents()[engine] == kept
    found = found_in(home, engine)
    assert (found.missing, found.extra, found.changed) == (ids(*lost), (), ())
    assert (found.families, found.chunks) == (len({d.parent_id for d in kept}), 3)
    repaired(home, engine, tmp_path)


def test_foreign_documents_of_every_kind_are_removed(home: Home, engine: str, tmp_path: Path) -> None:
    one, other = DOCUMENTS[0], next(d for d in DOCUMENTS if d.parent_id != DOCUMENTS[0].parent_id)
    strangers = [
        altered(one, id="copy-under-another-id"),
        altered(other, id="copy-in-another-family", parent_id=one.parent_id),
        altered(one, id="of-nobody", parent_id="f" * 64),
    ]
    put(home, engine, strangers)
    assert len(home.contents()[engine]) == len(DOCUMENTS) + 3
    found = found_in(home, engine)
    assert (found.missing, found.extra, found.changed) == ((), ids(*strangers), ())
    repaired(home, engine, tmp_path)


@pytest.mark.parametrize(
    "fields",
    sampled(
        [
            {"text": "somebody else's words"},
            {"title": "Another title"},
            {"tags": ("one", "too many")},
            {"tenant_key": "0" * 64},
            {"text_hash": "0" * 64},
            {"document_hash": "0" * 64},
        ]
    ),
    ids=lambda fields: next(iter(fields)),
)
def test_changed_documents_are_repaired(fields: dict[str, object], home: Home, engine: str, tmp_path: Path) -> None:
    victim = DOCUMENTS[7]
    put(home, engine, [altered(victim, **fields)])
    found = found_in(home, engine)
    assert (found.missing, found.extra, found.changed) == ((), (), (victim.id,))
    repaired(home, engine, tmp_path)


def test_digest_depends_on_the_content_only(home: Home, engine: str, tmp_path: Path) -> None:
    before = digests(home)
    family = [document for document in DOCUMENTS if document.parent_id == DOCUMENTS[5].parent_id]
    put(home, engine, [altered(document, title="x") for document in family])
    assert {name for name, digest in digests(home).items() if digest != before[name]} == {engine}
    home.sync(scan=True)
    assert digests(home) == before
    home.rebuild()
    assert digests(home) == before


def test_killed_repair_is_finished_by_the_next_sync(home: Home, engine: str, tmp_path: Path) -> None:
    """The scan recorded the changed documents: the engine reports the expected hashes for them."""
    put(home, engine, [altered(DOCUMENTS[7], title="Another title")])
    with pytest.raises(KeyboardInterrupt):
        home.sync(scan=True, wrap=watching(engine, Moment("replace", 1, raising(KeyboardInterrupt()))))
    home.sync()
    assert home.verify().ok
    with State.existing(home.folder) as state:
        assert state.db.execute("select count(*) from changed").fetchone() == (0,)
