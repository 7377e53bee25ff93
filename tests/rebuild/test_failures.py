"""A rebuild that fails leaves what readers see as it was; the next plain one works and takes the remains along."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.rebuild import executor
from chunksink.rebuild.flip import NotRemoved
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.state import State
from chunksink.sinks.errors import SinkError, Unreachable
from chunksink.sinks.fts import FtsSink
from tests.embeddings.helpers import HashEncoder
from tests.rebuild.support import FEBRUARY, Home, commit, parent_of, projected, source
from tests.rebuild.wrapping import Calls, Moment, watching

pytestmark = pytest.mark.promise(5)

EDITED = [source(f"docs/{number}.md", f"tapir {number}", f"zebra {number}", version="2") for number in range(4)]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "EMBEDDED_AT_ONCE", 2)
    monkeypatch.setattr(executor, "WRITTEN_AT_ONCE", 2)


@pytest.fixture
def edited(root: BusRoot, home: Home) -> Home:
    """Two generations are there, and the bus has moved on since."""
    for version in ("0", "1"):
        commit(root, "p1", source("docs/0.md", "okapi", version=version))
        home.rebuild()
    edit(root)
    return home


def edit(root: BusRoot) -> None:
    commit(root, "p1", [record for records in EDITED for record in records], at=FEBRUARY)


def answers(home: Home, word: str) -> int:
    """How many hits a reader of the live generation has."""
    with closing(FtsSink(home.folder / "fts").reader(home.live().builds["fts"])) as reader:
        return len(reader.search(word))


@pytest.mark.parametrize("engine", ["fts", "memory"])
@pytest.mark.parametrize(
    ("call", "number", "after"),
    [
        ("create", 1, False),
        ("create", 1, True),
        ("replace", 1, True),
        ("replace", 2, False),
        ("flush", 1, True),
        ("flush", 2, False),
        ("flush", 2, True),
        ("scan", 1, False),
        ("flip", 1, False),
    ],
)
def test_an_engine_that_fails(edited: Home, engine: str, call: str, number: int, after: bool) -> None:
    before, contents = edited.live(), edited.contents()

    def fail() -> None:
        raise Unreachable(f"{engine} went away at {call}")

    with pytest.raises(SinkError, match="went away"):
        edited.rebuild(wrap=watching(engine, Moment(call, number, fail, after=after)))
    assert (edited.live(), edited.contents()) == (before, contents)
    assert (answers(edited, "okapi"), answers(edited, "tapir")) == (1, 0)
    goes_through_after_all(edited, flips_first=call == "flip")


def goes_through_after_all(home: Home, *, flips_first: bool = False) -> None:
    """`flips_first`: the run that failed had verified its generation, so the next one shows that before its own."""
    before = home.live()
    if flips_first:
        with State.existing(home.folder) as state:
            before = state.begun_flip() or before
    report = home.rebuild()
    assert home.live().id == report.generation
    wanted = projected(*EDITED)
    assert all(documents == wanted for documents in home.contents().values())
    assert (answers(home, "okapi"), answers(home, "tapir")) == (0, 4)
    kept = sorted([before.id.lower(), report.generation.lower()])
    assert home.builds() == {name: [f"{name}-{id_}" for id_ in kept] for name in home.builds()}


def test_runs_that_fail_again_and_again_do_not_pile_up(edited: Home) -> None:
    def fail() -> None:
        raise Unreachable("fts went away")

    seen = set()
    for _ in range(3):
        with pytest.raises(Unreachable):
            edited.rebuild(wrap=watching("fts", Moment("scan", 1, fail)))
        assert {len(builds) for builds in edited.builds().values()} == {3}  # live, previous, and the one that failed
        seen.add(unfinished(edited))
    assert len(seen) == 1
    goes_through_after_all(edited)
    assert edited.live().id in seen


def unfinished(home: Home) -> str | None:
    """The generation that a failed run has left."""
    with State.existing(home.folder) as state:
        found = state.unfinished()
        return found.id if found else None


def test_the_next_run_goes_on_where_the_failed_one_stopped(edited: Home) -> None:
    """What was confirmed is not sent again; what was sent and not confirmed is."""

    def fail() -> None:
        raise Unreachable("fts went away")

    with pytest.raises(Unreachable):
        edited.rebuild(wrap=watching("fts", Moment("flush", 3, fail, after=True)))
    left = unfinished(edited)
    with State.existing(edited.folder) as state:
        build = f"fts-{str(left).lower()}"
        confirmed = {family for (family,) in state.db.execute("select family from receipt where build = ?", [build])}
        begun = {family for (family,) in state.db.execute("select family from intent where build = ?", [build])}
    assert (len(confirmed), len(begun)) == (2, 1)
    calls = Calls()
    assert edited.rebuild(wrap=calls).generation == left
    every = sorted(parent_of(f"docs/{number}.md") for number in range(4))
    assert begun
    assert calls.sent("fts") == sorted(set(every) - confirmed)
    assert unfinished(edited) is None


def test_what_another_model_has_begun_is_not_gone_on_with(edited: Home) -> None:
    def fail() -> None:
        raise Unreachable("memory went away")

    with pytest.raises(Unreachable):
        edited.rebuild(wrap=watching("memory", Moment("flush", 2, fail)))
    left = unfinished(edited)
    edited.encoder = HashEncoder(dimension=4, name="another")
    goes_through_after_all(edited)
    assert edited.live().id != left
    assert edited.live().model_fingerprint == edited.encoder.fingerprint


def test_what_was_begun_for_other_sinks_is_not_gone_on_with(edited: Home) -> None:
    def fail() -> None:
        raise Unreachable("memory went away")

    with pytest.raises(Unreachable):
        edited.rebuild(wrap=watching("memory", Moment("flush", 2, fail)))
    left = unfinished(edited)
    memory = edited.makers[1]
    edited.makers = edited.makers[:1]
    edited.open_sink = lambda _name: memory(edited.folder)  # type: ignore[method-assign]
    assert edited.rebuild().generation != left
    assert unfinished(edited) is None
    assert len(edited.builds()["fts"]) == 2
    assert f"memory-{left}".lower() not in memory(edited.folder).builds()


def test_an_engine_that_cannot_drop_an_old_build_leaves_the_new_one_live(edited: Home) -> None:
    """It fails after the commit: the run says so, and the next one tries again."""

    def fail() -> None:
        raise Unreachable("fts went away at drop")

    oldest = edited.builds()["fts"][0]
    rebuilt = edited.rebuild(wrap=watching("fts", Moment("drop", 1, fail)))
    assert rebuilt.not_removed == (NotRemoved("fts", oldest, "fts went away at drop"),)
    assert answers(edited, "tapir") == 4
    assert len(edited.builds()["fts"]) == 3
    goes_through_after_all(edited)


def test_a_build_of_lost_records_that_cannot_be_removed_is_told(edited: Home) -> None:
    def fail() -> None:
        raise Unreachable("fts went away at drop")

    before = edited.builds()["fts"]
    (edited.folder / "state.db").unlink()
    rebuilt = edited.rebuild(wrap=watching("fts", Moment("drop", 1, fail)))
    [left] = rebuilt.not_removed
    assert (left.sink, left.build in before, left.reason) == ("fts", True, "fts went away at drop")
    goes_through_after_all(edited)


def test_a_model_that_fails_halfway_computes_only_the_rest_again(edited: Home) -> None:
    class Tired(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            if len(self.asked) >= 4:
                raise EmbeddingsError("the model is out of memory")
            return super().encode(texts)

    edited.encoder = Tired(dimension=8)
    with pytest.raises(EmbeddingsError):
        edited.rebuild()
    assert answers(edited, "okapi") == 1
    edited.encoder = HashEncoder(dimension=8)
    goes_through_after_all(edited)
    assert sorted(edited.encoder.asked) == ["tapir 2", "tapir 3", "zebra 2", "zebra 3"]


@pytest.mark.parametrize("step", ["intend", "confirm"])
def test_a_full_disk_under_the_state_leaves_the_live_generation(
    step: str, edited: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(edited.folder))

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(Receipts, step, Moment(step, 3, full).around(step, getattr(Receipts, step)))
        edited.rebuild()
    assert answers(edited, "okapi") == 1
    left = unfinished(edited)
    goes_through_after_all(edited)
    assert edited.live().id == left


def test_the_first_rebuild_of_all_may_fail_too(root: BusRoot, tmp_path: Path, embedded_home: Home) -> None:
    edit(root)

    def fail() -> None:
        raise Unreachable("chroma went away")

    with pytest.raises(Unreachable):
        embedded_home.rebuild(wrap=watching("chroma", Moment("flush", 2, fail)))
    embedded_home.rebuild()
    wanted = projected(*EDITED)
    assert embedded_home.contents() == {"fts": wanted, "chroma": wanted}
    assert {name: len(builds) for name, builds in embedded_home.builds().items()} == {"fts": 1, "chroma": 1}
