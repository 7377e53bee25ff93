"""Database work is linear in the number of chunks, and memory is constant."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.executor import EMBEDDED_AT_ONCE, WRITTEN_AT_ONCE
from chunksink.rebuild.families import KEPT_DOCUMENTS, LONG_TEXT
from chunksink.rebuild.scan import Scan
from tests.support.bus import commit, projected, source
from tests.support.home import CatalogProbe, Home, counted_steps
from tests.support.local_engines import memory
from tests.support.tampering import altered, live_build, put
from tests.support.watched_sinks import Calls

FEW, MANY = 100, 800


def steps_to_repair(tmp_path: Path, chunks: int) -> int:
    """Receipts are recreated by a scan of one long source whose chunks have all changed."""
    home = Home(tmp_path / f"home of {chunks}", FolderRoot(tmp_path / f"chunks of {chunks}"), memory())
    long = source("log.txt", *(f"line {number}" for number in range(chunks)))
    commit(home.root, "p1", long)
    home.rebuild()
    put(home, "memory", [altered(document, id=f"{document.id}-copy") for document in projected(long)])
    with home.session() as session, live_build(home, "memory") as build:
        build_id = home.live().builds["memory"]
        scan = Scan(session.state.db, build, build_id, session.reader)
        scan.run(lambda _documents: None)
        assert len(scan.drift("extra")) == chunks
        with counted_steps(session.state.db) as steps:
            scan.make_receipts()
    return steps[0]


def test_repair_of_one_long_source_takes_linear_work(tmp_path: Path) -> None:
    assert steps_to_repair(tmp_path, MANY) < 2 * (MANY // FEW) * (steps_to_repair(tmp_path, FEW) + 1)


def steps_to_take_in(tmp_path: Path, partitions: int, *, copies: bool) -> int:
    """Adds one more partition of an existing source, whole or in parts."""
    root = FolderRoot(tmp_path / f"chunks of {partitions}")
    probe = CatalogProbe(tmp_path / f"home of {partitions}", root)
    for number in range(partitions + 1):
        with counted_steps(probe.state.db) as steps:
            name = "" if copies else f"{number} "
            commit(root, f"p{number}", [r for n in range(20) for r in source(f"{n}.md", "a", "b", ids=name)])
            probe.refresh()
    assert len(probe.catalog.held()) == (0 if copies else 20)
    return steps[0]


@pytest.mark.parametrize("copies", [True, False])
def test_source_in_many_partitions_takes_linear_work(copies: bool, tmp_path: Path) -> None:
    few, many = (steps_to_take_in(tmp_path, partitions, copies=copies) for partitions in (3, 24))
    assert many < 2 * 8 * few


class _Amounts(list[int]):
    def advance(self, amount: int) -> None:
        self.append(amount)


def test_batch_is_limited_by_its_texts(tmp_path: Path) -> None:
    """Not only by its number of documents: two batches are in memory at once."""
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), memory())
    long = 20 * LONG_TEXT
    commit(home.root, "p1", [r for number in range(400) for r in source(f"{number}.md", f"{number}" + "x" * long)])
    home.rebuild()  # if all vectors are cached, progress is reported per batch of look-ups
    calls, read = Calls(), _Amounts()
    home.rebuild(wrap=calls, stage=lambda name, _total, _unit: nullcontext(read if name == "index" else None))
    assert max(read) * 20 <= EMBEDDED_AT_ONCE + 20
    batches = [len(families) for _, call, families in calls if call == "replace"]
    assert sum(batches) == 400
    assert batches[0] * 20 <= EMBEDDED_AT_ONCE + 20
    assert max(batches) * 20 <= WRITTEN_AT_ONCE + EMBEDDED_AT_ONCE
    with home.session() as session:
        assert len(list(session.reader.families())) == 400
        kept = sum(len(each.documents[0].text) for each in session.reader._kept.values())
    assert long < kept <= (KEPT_DOCUMENTS + 20) * LONG_TEXT
