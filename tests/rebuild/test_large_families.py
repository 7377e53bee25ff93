"""A family too large for memory is projected, embedded and written in parts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild import executor, families
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.home import Home, PoisonedEncoder, sinks_with
from tests.support.local_engines import chroma, fts, jsonl
from tests.support.tampering import altered, lose, put
from tests.support.watched_sinks import Moment, raising, watching

pytestmark = [pytest.mark.promise(3), pytest.mark.promise(4)]

TEXTS = [f"text {number}" for number in range(11)]
EDITED = [*TEXTS[:2], "edited", *TEXTS[4:], "new one", "new two"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((families, "PART"), (executor, "WRITTEN_AT_ONCE"), (executor, "EMBEDDED_AT_ONCE")):
        monkeypatch.setattr(module, name, 3)


@pytest.fixture
def home(tmp_path: Path, root: BusRoot) -> Home:
    made = Home(tmp_path / "home", root, fts, jsonl, chroma)
    commit(root, "p1", [*source("large", *TEXTS), *source("small", "small")])
    made.rebuild()
    return made


def holds(home: Home, *texts: str, version: str = "1") -> None:
    wanted = projected(source("large", *texts, version=version), source("small", "small"))
    assert all(content == wanted for content in home.contents().values())
    assert home.verify().ok


def test_large_family_ends_as_if_written_whole(home: Home) -> None:
    """Even if its lines are not in its order."""
    holds(home, *TEXTS)
    for number, texts in enumerate((EDITED, EDITED[:3], EDITED[:4], [*TEXTS, *EDITED])):
        lines = [*source("large", *texts, version="2"), *source("small", "small")]
        random.Random(number).shuffle(lines)
        commit(home.root, "p1", lines, at=FEBRUARY)
        home.sync()
        holds(home, *texts, version="2")


@pytest.mark.promise(2)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("call", ["replace", "flush"])
def test_large_family_killed_between_parts_converges(home: Home, call: str, number: int, after: bool) -> None:
    """The old version is complete until the last part; the next run completes the new one."""
    before = {document.id for document in projected(source("large", *TEXTS))}
    commit(home.root, "p1", [*source("large", *EDITED, version="2"), *source("small", "small")], at=FEBRUARY)
    with pytest.raises(KeyboardInterrupt):
        home.sync(wrap=watching("chroma", Moment(call, number, raising(KeyboardInterrupt()), after=after)))
    is_done = (call, number, after) == ("flush", 4, True)
    for content in home.contents().values():
        ids = {document.id for document in content}
        assert before <= ids or is_done or ids >= {d.id for d in projected(source("large", *EDITED, version="2"))}
    home.sync()
    holds(home, *EDITED, version="2")


def test_refusal_in_an_early_part_is_recorded(home: Home) -> None:
    home.encoder = PoisonedEncoder(dimension=8)
    texts = ["pure poison", *TEXTS[1:]]
    commit(home.root, "p1", [*source("large", *texts, version="2"), *source("small", "small")], at=FEBRUARY)
    home.sync()
    assert [len(ids) for ids in home.refused().values()] == [0, 0, 1]
    assert home.verify().ok
    assert sinks_with(home.sync(), "scanned") == []


def test_repair_finds_differences_in_any_part(home: Home) -> None:
    documents = projected(source("large", *TEXTS))
    lose(home, "chroma", documents[:1])
    put(home, "chroma", [altered(documents[5], title="tampered"), altered(documents[6], id="too-many")])
    found = home.verify().sinks["chroma"]
    assert (found.missing, found.changed, found.extra) == ((documents[0].id,), (documents[5].id,), ("too-many",))
    home.sync(scan=True)
    holds(home, *TEXTS)
