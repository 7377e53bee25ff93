"""A bus written during a rebuild yields one of its complete states or stops the run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import PartitionReader
from chunksink.rebuild import executor
from chunksink.rebuild.errors import NotVerified
from chunksink.rebuild.families import FamilyReader
from chunksink.rebuild.state import State
from chunksink.sinks.document import Document, Family
from tests.support.bus import FEBRUARY, commit, parent_of, projected, source
from tests.support.failed_rebuilds import answers, edit, edited_home, goes_through_after_all
from tests.support.home import Home
from tests.support.watched_sinks import Moment, WrappedBuild, watching, with_builds

pytestmark = pytest.mark.usefixtures("small_batches")


@pytest.fixture
def edited(root: BusRoot, home: Home) -> Home:
    return edited_home(root, home)


def test_partition_changed_while_read_is_read_again(root: BusRoot, edited: Home) -> None:
    """The catalog's offsets belong to the former file; the content there now must not be used."""
    new = source("docs/9.md", "something else altogether", "and more of it", version="9")
    edited.rebuild(wrap=watching("fts", Moment("create", 1, lambda: commit(root, "p1", new))))
    assert edited.contents() == {"fts": projected(new), "memory": projected(new)}
    assert (answers(edited, "okapi"), answers(edited, "something")) == (0, 1)


def test_partition_changed_after_verification_is_read_again(root: BusRoot, edited: Home) -> None:
    """The last round is under the lock, so the new index has what changed after the verification."""
    new = source("docs/9.md", "something else altogether", version="9")
    edited.rebuild(wrap=watching("memory", Moment("scan", 1, lambda: commit(root, "p1", new), after=True)))
    assert edited.contents() == {"fts": projected(new), "memory": projected(new)}


class Restless:
    """A bus that is rewritten again and again, each time with other texts in other places."""

    def __init__(self, root: BusRoot) -> None:
        self._root = root
        self.versions: list[list[Document]] = []

    def rewrite(self) -> None:
        number = len(self.versions)
        new = [source(f"docs/{n}.md", f"{'x' * number} {n}", version=f"r{number}") for n in range(4)]
        self.versions.append(projected(*new))
        commit(self._root, "p1", [record for records in new for record in records], at=FEBRUARY)


def test_bus_written_during_a_run_yields_one_of_its_states(root: BusRoot, edited: Home) -> None:
    bus = Restless(root)

    class Rewriting(WrappedBuild):
        def replace(self, families: Sequence[Family]) -> int:
            bus.rewrite()
            return int(self._build.replace(families))

    edited.rebuild(wrap=with_builds("fts", Rewriting))
    assert len(bus.versions) < 100
    contents = edited.contents()
    assert contents["fts"] in bus.versions
    assert contents["memory"] == contents["fts"]
    edit(root)
    goes_through_after_all(edited)


def test_bus_changed_at_every_read_stops_the_run(root: BusRoot, edited: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    before, contents = edited.live(), edited.contents()
    bus, read = Restless(root), FamilyReader.families

    def rewriting(*arguments: Any) -> Any:
        bus.rewrite()
        return read(*arguments)

    with monkeypatch.context() as patch, pytest.raises(NotVerified):
        patch.setattr(FamilyReader, "families", rewriting)
        edited.rebuild()
    assert 5 < len(bus.versions) < 200
    assert (edited.live(), edited.contents()) == (before, contents)
    edit(root)
    goes_through_after_all(edited)


def test_bus_written_continuously_does_not_stop_a_rebuild(
    root: BusRoot, edited: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At all readings but every fourteenth, a partition was just rewritten."""
    bus, read = Restless(root), FamilyReader.families
    readings = count(1)

    def rewriting(*arguments: Any) -> Any:
        if next(readings) % 14:
            bus.rewrite()
        return read(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(FamilyReader, "families", rewriting)
        edited.rebuild()
    assert edited.contents()["fts"] in bus.versions


def test_chunk_moved_to_another_tenant_during_a_run_is_read_again(root: BusRoot, home: Home) -> None:
    """Text and place are the same; only the tenant differs."""

    def of(*tenants: str) -> list[Record]:
        return [
            record
            for index, tenant in enumerate(tenants)
            for record in source("docs/t.md", f"text {index}", ids=f"{index} ", tenant_id=tenant)
        ]

    commit(root, "p1", of("aaa", "aaa"))
    home.rebuild()
    commit(root, "p1", of("bbb", "bbb"))
    moved = of("bbb", "ccc")
    outcome = home.sync(wrap=watching("fts", Moment("marker", 1, lambda: commit(root, "p1", moved))))
    assert outcome.families.added == 2
    assert home.contents()["fts"] == projected(moved[:1], moved[1:])


def test_reader_can_report_changed_chunks_after_another_threads_write(
    root: BusRoot, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open query would stop its connection from writing."""
    names = [f"docs/{number}.md" for number in range(9)]
    commit(root, "p1", [record for name in names for record in source(name, f"about {name}")])
    home.rebuild()
    commit(root, "p1", [record for name in reversed(names) for record in source(name, f"about {name}")])
    record = PartitionReader.record

    def beside(reader: PartitionReader, *arguments: Any) -> Any:
        with State(home.folder) as other:
            other.note_pace({"embedded": (1, 1.0)})
        return record(reader, *arguments)

    monkeypatch.setattr(PartitionReader, "record", beside)
    with home.session() as session, pytest.raises(PartitionChanged, match="p1"):
        session.reader.hash_families([parent_of(name) for name in names])


def test_interrupting_error_is_the_one_reported(root: BusRoot, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(root, "p1", source("docs/a.md", "a cat"))

    writer = State(home.folder)

    def broken_off(*_arguments: Any) -> None:
        writer.db.conn.execute("begin immediate")  # another run, that does not end meanwhile
        raise KeyboardInterrupt

    monkeypatch.setattr(executor.Executor, "run", broken_off)
    with writer, pytest.raises(KeyboardInterrupt):
        home.rebuild()


def test_metadata_moved_away_and_back_is_read_correctly(root: BusRoot, home: Home) -> None:
    """The metadata read in between is not used for the restored lines."""
    here, there = (source("docs/a.md", "the same text", tags=[tag]) for tag in ("one", "two"))
    commit(root, "p1", source("docs/b.md", "other"))
    home.rebuild()
    commit(root, "p1", here)
    home.sync(wrap=watching("fts", Moment("marker", 1, lambda: commit(root, "p1", there))))
    assert home.contents()["fts"] == projected(there)
    commit(root, "p1", here)
    home.sync()
    assert home.contents()["fts"] == projected(here)
