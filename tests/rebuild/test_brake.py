"""A run that would remove a large share of the index stops before it writes anything."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.rebuild.errors import Brake
from chunksink.rebuild.state import State
from tests.conftest import sampled
from tests.engines.servers import MeilisearchServer
from tests.support.bus import FEBRUARY, commit, parent_of, projected, source
from tests.support.home import Home
from tests.support.local_engines import fts
from tests.support.meilisearch import SETTINGS
from tests.support.public_index import meilisearch_in
from tests.support.tampering import altered, lose, put, require_sound, sink_of
from tests.support.watched_sinks import Calls, Moment, raising, watching

pytestmark = pytest.mark.promise(6)


def sources(*numbers: int) -> list[dict[str, object]]:
    return [record for number in numbers for record in source(f"docs/{number}.md", f"text {number}", f"more {number}")]


def of(home: Home, total: int) -> None:
    commit(home.root, "p1", sources(*range(total)))
    home.rebuild()


def texts(home: Home) -> int:
    contents = home.contents()
    assert contents["fts"] == contents["memory"]
    return len(contents["fts"])


@contextmanager
def stopped(removed: int, total: int = 20, named: str = "docs/") -> Iterator[None]:
    """The brake stops the run in this block, and names some of the sources."""
    with pytest.raises(Brake, match=named) as error:
        yield
    removal = error.value.removal
    assert (removal.removed, removal.total, removal.flag) == (removed, total, f"--allow-deletions {removed}")


RUNS: dict[str, Callable[..., object]] = {
    "sync": Home.sync,
    "repair": partial(Home.sync, scan=True),
    "rebuild": Home.rebuild,
}
STOPS = (
    (20, 10, True),
    (20, 11, False),
    (50, 39, True),
    (50, 40, False),
    (12, 0, True),
    (9, 0, False),
)


@pytest.mark.parametrize(("how", "case"), sampled(product(RUNS, STOPS), 3))
def test_brake_stops_above_a_fifth_and_at_least_ten(how: str, case: tuple[int, int, bool], home: Home) -> None:
    total, left, stops = case
    of(home, total)
    commit(home.root, "p1", sources(*range(left)))
    live, calls = home.live(), Calls()
    run = partial(RUNS[how], home, wrap=calls)
    if stops:
        with stopped(total - left, total):
            run()
        assert {call for _, call, _ in calls} <= {"scan"}
        assert (home.live(), texts(home)) == (live, 2 * total)
        with State.existing(home.folder) as state:
            assert state.unfinished() is None
    else:
        run()
        assert texts(home) == 2 * left


def test_brake_counts_withdrawn_but_not_replaced_sources(home: Home) -> None:
    of(home, 20)
    edited = [r for n in range(20) for r in source(f"docs/{n}.md", f"text {n}, edited", version="2", at=FEBRUARY)]
    commit(home.root, "p1", edited)
    home.sync()
    assert texts(home) == 20
    withdrawn = [Tombstone(parent_id=parent_of(f"docs/{number}.md")) for number in range(10)]
    commit(home.root, "p2", [], at="2026-09-01T00:00:00Z", tombstones=withdrawn)
    with stopped(10):
        home.sync()
    assert texts(home) == 20


def test_held_sources_are_not_removed(home: Home) -> None:
    """A bus folder that is not mounted empties no index, even with deletions allowed."""
    commit(home.root, "p2", [])
    of(home, 20)
    for path in (home.root.chunks_file("p1"), home.root.manifest_file("p1")):
        path.unlink()
    assert home.sync(allow_deletions=20).families.removed == 0
    assert texts(home) == 40


def test_brake_in_a_home_without_records_counts_documents_in_the_builds(home: Home, tmp_path: Path) -> None:
    """The remains of a killed rebuild, a newer build with fewer documents, do not hide the loss."""
    of(home, 20)
    with pytest.raises(KeyboardInterrupt):
        home.rebuild(wrap=watching("fts", Moment("flush", 1, raising(KeyboardInterrupt()))))
    home.lose_records()
    commit(home.root, "p1", sources(*range(8)))
    before = home.builds()
    for _ in range(2):
        with stopped(12, named="docs/10.md, docs/11.md"):
            home.rebuild(allow_deletions=11)
        assert home.builds() == before
    home.rebuild(allow_deletions=12)
    assert texts(home) == 16
    assert {name: len(builds) for name, builds in home.builds().items()} == {"fts": 1, "memory": 1}
    with State.existing(home.folder) as state:
        assert state.db.execute("select count(distinct build) from receipt").fetchone() == (2,)
    require_sound(home, tmp_path)


def test_brake_with_several_lost_builds_uses_the_fullest(root: FolderRoot, tmp_path: Path) -> None:
    home = Home(tmp_path / "home", root, fts)
    of(home, 20)
    with pytest.raises(KeyboardInterrupt):
        home.rebuild(wrap=watching("fts", Moment("replace", 1, raising(KeyboardInterrupt()))))
    home.lose_records()
    commit(home.root, "p1", [])
    with stopped(20):
        home.rebuild()


def test_loss_is_remembered_while_the_bus_is_emptied_during_the_rebuild(home: Home) -> None:
    """Also if the remains of a rebuild that was killed after the loss are removed first."""
    of(home, 20)
    home.lose_records()
    with pytest.raises(KeyboardInterrupt):
        home.rebuild(wrap=watching("fts", Moment("flush", 1, raising(KeyboardInterrupt()))))
    alone = Home(home.folder, home.root, home.makers[1])
    with stopped(20):
        alone.rebuild(wrap=watching("memory", Moment("flush", 1, lambda: commit(home.root, "p1", []))))


def test_builds_of_another_home_do_not_count_for_the_brake(home: Home) -> None:
    of(home, 20)
    home.lose_records()
    (home.folder / "home.id").unlink()
    commit(home.root, "p1", sources(*range(8)))
    home.rebuild(adopt=True)
    assert texts(home) == 16


def test_brake_without_records_counts_documents_in_the_engines(home: Home) -> None:
    of(home, 20)
    with State.existing(home.folder) as state, state.db.atomic():
        state.db.execute("delete from receipt")
    commit(home.root, "p1", sources(*range(8)))
    with stopped(12):
        home.sync()
    assert texts(home) == 40


@pytest.mark.parametrize("how", RUNS)
def test_brake_without_builds_counts_recorded_documents(how: str, home: Home, tmp_path: Path) -> None:
    of(home, 20)
    commit(home.root, "p1", sources(*range(8)))
    for name, build in home.live().builds.items():
        with closing(sink_of(home, name)) as sink:
            sink.drop(build)
    run = partial(RUNS[how], home)
    with stopped(12):
        run()
    assert home.builds() == {"fts": [], "memory": []}
    run(allow_deletions=12)
    require_sound(home, tmp_path)


def test_repair_continues_when_a_missing_partition_forbids_removals(home: Home) -> None:
    of(home, 20)
    commit(home.root, "p2", source("docs/missing.md", "a", "b"))
    home.sync()
    commit(home.root, "p1", sources(*range(5)))
    for path in (home.root.chunks_file("p2"), home.root.manifest_file("p2")):
        path.unlink()
    lose(home, "fts", [document for document in home.contents()["fts"] if document.text == "text 0"])
    home.sync(scan=True)
    assert texts(home) == 42


def test_brake_counts_shrunken_sources_while_a_partition_is_missing(home: Home) -> None:
    """Sources that are gone do not count: they are kept."""

    def chunked(chunks: int, *numbers: int) -> list[dict[str, object]]:
        texts = [f"part {number}" for number in range(chunks)]
        return [record for number in numbers for record in source(f"docs/{number}.md", *texts, version=str(chunks))]

    commit(home.root, "p1", chunked(20, *range(20)))
    commit(home.root, "p2", source("docs/missing.md", "a", "b"))
    home.rebuild()
    commit(home.root, "p1", chunked(1, *range(1, 20)), at=FEBRUARY)
    for path in (home.root.chunks_file("p2"), home.root.manifest_file("p2")):
        path.unlink()
    with pytest.raises(Brake) as error:
        home.sync()
    assert (error.value.removal.removed, error.value.removal.chunks) == (19, 19 * 19)
    assert texts(home) == 402
    home.sync(allow_deletions=19)
    assert texts(home) == 20 + 19 + 2


def test_brake_does_not_count_the_build_of_a_sink_that_is_no_longer_used(home: Home) -> None:
    commit(home.root, "p1", sources(*range(60)))
    home.rebuild()
    alone = Home(home.folder, home.root, home.makers[0])
    for left in (52, 44, 36):
        commit(home.root, "p1", sources(*range(left)))
        alone.sync()
    alone.rebuild()
    assert len(alone.contents()["fts"]) == 72


def test_sources_of_another_program_do_not_count_for_the_brake(home: Home) -> None:
    of(home, 20)
    foreign = [each for number in range(15) for each in projected(source(f"foreign/{number}.md", f"other {number}"))]
    put(home, "memory", foreign)
    home.sync(scan=True)
    assert texts(home) == 40


def test_settings_are_unchanged_when_the_brake_stops(tmp_path: Path, meilisearch_server: MeilisearchServer) -> None:
    index, settings = f"b{uuid.uuid4().hex[:10]}", dict(SETTINGS)
    meilisearch = meilisearch_in(meilisearch_server, index, settings)
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), meilisearch)
    of(home, 20)
    settings["stopWords"] = ["zzz"]
    commit(home.root, "p1", sources(0))
    with pytest.raises(Brake):
        home.sync()
    with closing(meilisearch(home.folder)) as sink:
        (build,) = sink.builds()
        assert sink.settings_due(build) == ["stopWords"]
        home.sync(allow_deletions=19)
        assert sink.settings_due(build) == []
        sink.drop(build)


@pytest.mark.parametrize(
    ("run", "left", "stops"),
    [(run, *case) for run, case in sampled(product(RUNS.values(), [(0, True), (2, True), (59, True), (60, False)]))],
)
def test_brake_stops_when_a_large_source_is_gone_or_nearly_empty(
    run: Callable[..., object], left: int, stops: bool, home: Home
) -> None:
    def large(chunks: int) -> list[dict[str, object]]:
        return source("docs/large.md", *(f"part {number}" for number in range(chunks)), version=str(chunks))

    commit(home.root, "p1", [*sources(*range(20)), *large(240)])
    home.rebuild()
    commit(home.root, "p1", [*sources(*range(20)), *(large(left) if left else [])], at=FEBRUARY)
    if stops:
        with pytest.raises(Brake) as error:
            run(home)
        assert (error.value.removal.removed, error.value.removal.chunks) == (1, 240 - left)
        assert texts(home) == 280
    run(home, allow_deletions=1 if stops else 0)
    assert texts(home) == 40 + left


@pytest.mark.parametrize("parent", ["docs/1.md", "docs/unknown.md"])
def test_repair_removes_surplus_documents_without_a_flag(parent: str, home: Home) -> None:
    of(home, 20)
    surplus = projected(source(parent, *(f"surplus {number}" for number in range(200)), ids="other"))
    put(home, "memory", [altered(each, parent_id=parent_of(parent)) for each in surplus])
    home.sync(scan=True)
    assert texts(home) == 40


@pytest.mark.parametrize(
    ("how", "before", "left"), sampled(product(["sync", "rebuild"], ["nothing", "plan", "repair"], [0, 2]))
)
def test_brake_counts_a_large_source_after_a_scan(how: str, before: str, left: int, home: Home) -> None:
    """Another program has added documents, also to sources of ours. They do not count, and are not named."""

    def large(chunks: int) -> list[dict[str, object]]:
        return source("docs/large.md", *(f"part {number}" for number in range(chunks)), version=str(chunks))

    commit(home.root, "p1", [*sources(*range(20)), *large(240)])
    home.rebuild()
    surplus = [
        altered(each, parent_id=parent_of(parent))
        for parent in ("docs/1.md", "docs/large.md", "another/1.md")
        for each in projected(source(parent, *(f"surplus {number}" for number in range(150)), ids="other"))
    ]
    for name in home.live().builds:
        put(home, name, surplus)
    commit(home.root, "p1", [*sources(*range(20)), *(large(left) if left else [])], at=FEBRUARY)
    if before == "plan":
        home.plan_sync()
    elif before == "repair":
        with pytest.raises(Brake):
            home.sync(scan=True)
    with pytest.raises(Brake, match=r"(?<!, )docs/large\.md$") as error:
        RUNS[how](home)
    assert error.value.removal.chunks == 240 - left
    RUNS[how](home, allow_deletions=2)
    assert texts(home) == 40 + left


def test_brake_in_a_home_without_records_counts_a_large_source(home: Home) -> None:
    large = source("docs/large.md", *(f"part {number}" for number in range(240)))
    commit(home.root, "p1", [*sources(*range(20)), *large])
    home.rebuild()
    home.lose_records()
    commit(home.root, "p1", sources(*range(20)))
    with pytest.raises(Brake) as error:
        home.rebuild()
    assert (error.value.removal.removed, error.value.removal.chunks) == (1, 240)
    home.rebuild(allow_deletions=1)
    assert texts(home) == 40
