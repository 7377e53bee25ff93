"""A failed rebuild keeps the live generation; the next one succeeds and removes the remains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.layout import BusRoot
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.rebuild.report import NotRemoved
from chunksink.rebuild.state import State
from chunksink.sinks.errors import Refused, SinkError, Unreachable
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import FEBRUARY, commit, parent_of, source
from tests.support.failed_rebuilds import answers, edited_home, goes_through_after_all
from tests.support.home import Home
from tests.support.local_engines import fts
from tests.support.memory_sink import MemorySink
from tests.support.watched_sinks import Calls, Moment, raising, watching

pytestmark = [pytest.mark.promise(5), pytest.mark.usefixtures("small_batches")]


@pytest.fixture
def edited(root: BusRoot, home: Home) -> Home:
    return edited_home(root, home)


class SecondSink(MemorySink):
    name = "second"


class GoneEncoder(HashEncoder):
    def encode(self, texts: Sequence[str]) -> Vectors:
        raise EmbeddingsError("the endpoint is gone")


def test_sink_that_failed_before_the_endpoint_keeps_its_error(root: FolderRoot, tmp_path: Path) -> None:
    sinks = MemorySink(), SecondSink()
    home = Home(tmp_path / "home", root, fts, lambda _home: sinks[0], lambda _home: sinks[1])
    commit(root, "p1", source("a.md", "an okapi"))
    home.rebuild()
    commit(root, "p1", source("a.md", "a tapir", version="2", at=FEBRUARY), at=FEBRUARY)
    home.encoder = GoneEncoder(dimension=8)
    outcome = home.sync(wrap=watching("memory", Moment("open", 1, raising(Refused("wrong key")))))
    errors = {name: type(error) for name, error in outcome.failed.items()}
    assert errors == {"memory": Refused, "second": EmbeddingsError}
    assert answers(home, "tapir") == 1


@pytest.mark.parametrize("engine", ["fts", "memory"])
@pytest.mark.parametrize(
    ("call", "number", "after"),
    [
        ("create", 1, False),
        ("create", 1, True),
        ("replace", 2, False),
        ("flush", 1, True),
        ("flush", 2, True),
        ("scan", 1, False),
        ("flip", 1, False),
    ],
)
def test_failing_engine_leaves_the_live_generation(
    edited: Home, engine: str, call: str, number: int, after: bool
) -> None:
    before, contents = edited.live(), edited.contents()

    fail = raising(Unreachable(f"{engine} went away at {call}"))
    with pytest.raises(SinkError, match="went away"):
        edited.rebuild(wrap=watching(engine, Moment(call, number, fail, after=after)))
    assert (edited.live(), edited.contents()) == (before, contents)
    assert (answers(edited, "okapi"), answers(edited, "tapir")) == (1, 0)
    goes_through_after_all(edited, flips_first=call == "flip")


def test_repeated_failures_do_not_accumulate_builds(edited: Home) -> None:
    fail = raising(Unreachable("fts went away"))

    seen = set()
    for _ in range(3):
        with pytest.raises(Unreachable):
            edited.rebuild(wrap=watching("fts", Moment("scan", 1, fail)))
        assert {len(builds) for builds in edited.builds().values()} == {3}  # live, previous, and the one that failed
        seen.add(edited.unfinished())
    assert len(seen) == 1
    goes_through_after_all(edited)
    assert edited.live().id in seen


def test_next_run_continues_where_the_failed_one_stopped(edited: Home) -> None:
    """Confirmed documents are not sent again; unconfirmed ones are."""
    fail = raising(Unreachable("fts went away"))
    with pytest.raises(Unreachable):
        edited.rebuild(wrap=watching("fts", Moment("flush", 3, fail, after=True)))
    left = edited.unfinished()
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
    assert edited.unfinished() is None


def test_build_started_with_another_model_is_not_continued(edited: Home) -> None:
    fail = raising(Unreachable("memory went away"))
    with pytest.raises(Unreachable):
        edited.rebuild(wrap=watching("memory", Moment("flush", 2, fail)))
    left = edited.unfinished()
    edited.encoder = HashEncoder(dimension=4, name="another")
    goes_through_after_all(edited)
    assert edited.live().id != left
    assert edited.live().model_fingerprint == edited.encoder.fingerprint


@pytest.mark.parametrize("lost", [False, True])
def test_engine_that_cannot_drop_an_old_build_leaves_the_new_one_live(lost: bool, edited: Home) -> None:
    """It fails after the commit: the run reports it and the next one retries, even if no record names the build."""
    fail = raising(Unreachable("fts went away at drop"))
    before = edited.builds()["fts"]
    if lost:
        edited.lose_records()
    [left] = edited.rebuild(wrap=watching("fts", Moment("drop", 1, fail))).not_removed
    assert left == NotRemoved("fts", left.build, "fts went away at drop")
    assert left.build in (before if lost else before[:1])
    assert answers(edited, "tapir") == 4
    assert left.build in edited.builds()["fts"]
    goes_through_after_all(edited)


def test_model_that_fails_halfway_computes_only_the_rest_again(edited: Home) -> None:
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
