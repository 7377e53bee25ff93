"""A rebuild that fails leaves what readers see as it was; the next plain one works and takes the remains along."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from chunkbus.errors import PartitionChanged
from chunkbus.layout import BusRoot
from embeddings.encoder import Vectors
from embeddings.errors import EmbeddingsError
from rebuild import fill
from rebuild.state import State
from sinks.errors import SinkError, Unreachable
from sinks.fts import FtsSink
from tests.embeddings.helpers import HashEncoder
from tests.rebuild.support import FEBRUARY, Home, commit, projected, source
from tests.rebuild.wrapping import Moment, watching

EDITED = [source(f"docs/{number}.md", f"tapir {number}", f"zebra {number}", version="2") for number in range(4)]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill, "EMBEDDED_AT_ONCE", 2)
    monkeypatch.setattr(fill, "WRITTEN_AT_ONCE", 2)


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

    for _ in range(3):
        with pytest.raises(Unreachable):
            edited.rebuild(wrap=watching("fts", Moment("flush", 2, fail)))
        assert {len(builds) for builds in edited.builds().values()} == {3}  # live, previous, and the one that failed
    goes_through_after_all(edited)


def test_an_engine_that_cannot_drop_an_old_build_leaves_the_new_one_live(edited: Home) -> None:
    """It fails after the commit: the run says so, and the next one tries again."""

    def fail() -> None:
        raise Unreachable("fts went away at drop")

    with pytest.raises(Unreachable):
        edited.rebuild(wrap=watching("fts", Moment("drop", 1, fail)))
    assert answers(edited, "tapir") == 4
    assert len(edited.builds()["fts"]) == 3
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


def test_a_partition_that_moves_while_it_is_read_stops_the_run(root: BusRoot, edited: Home) -> None:
    """The catalog's places are of the file before; what stands there now is not taken for it."""

    def rewrite() -> None:
        commit(root, "p1", source("docs/9.md", "something else altogether", "and more of it", version="9"))

    with pytest.raises(PartitionChanged, match="p1"):
        edited.rebuild(wrap=watching("fts", Moment("create", 1, rewrite)))
    assert (answers(edited, "okapi"), answers(edited, "something")) == (1, 0)
    edit(root)
    goes_through_after_all(edited)


def test_a_full_disk_under_the_state_leaves_the_live_generation(edited: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(edited.folder))

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(fill, "_note_receipts", full)
        edited.rebuild()
    assert answers(edited, "okapi") == 1
    goes_through_after_all(edited)


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
