"""Runs on Ray: two nodes on this machine, and workers, nodes and runs that die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.record_checks import CONTRACT
from chunksink.chunkbus.scan import FileRange, scan_range
from chunksink.chunkbus.storage import open_storage
from chunksink.compute import ray as engine
from chunksink.compute.cluster import Cluster
from chunksink.compute.ray import MIN_VALIDATED_BYTES, RayCompute
from chunksink.compute.worker import BlockReceipt
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.segments import import_segments
from chunksink.rebuild.errors import ComputeError
from chunksink.settings.config import Config
from chunksink.settings.ray import RayOptions
from tests.compute.workers import (
    RayHome,
    announced,
    another_model,
    dying,
    dying_after_segment,
    waiting,
    writing_elsewhere,
)
from tests.conftest import HEAVY
from tests.support.bus import commit, source
from tests.support.home import Home, digests
from tests.support.local_engines import fts, memory

ray = pytest.importorskip("ray")
pytest.importorskip("ray.cluster_utils")
TEXTS = 120
slow = pytest.mark.skipif(not HEAVY, reason="part of `make soak`")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = ray.cluster_utils.Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(**{name: node[name] for name in ("num_cpus", "object_store_memory")})
    connection = Cluster(RayOptions(address=cluster.address))
    connection.connect()
    yield cluster
    connection.close()
    cluster.shutdown()


@pytest.fixture
def home(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RayHome:
    """A home with many small blocks to embed."""
    monkeypatch.setattr(engine, "FIRST_BLOCK_BYTES", 4096)
    monkeypatch.setattr(engine, "MAX_BLOCK_BYTES", 4096)
    root = FolderRoot(tmp_path / "chunks")
    commit(root, "p1", [record for number in range(TEXTS) for record in source(f"docs/{number}.md", f"cat {number}")])
    return RayHome(tmp_path / "home", root, fts, memory())


class Once:
    """A stage that acts when the first block is done."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.acts = [act]
        self.done = 0

    def __call__(self, name: str, _total: int | None, _unit: str) -> AbstractContextManager[Any]:
        return nullcontext(self if name.startswith("embed") else None)

    def advance(self, amount: int) -> object:
        self.done += amount
        return self.acts.pop()() if amount and self.acts else None


def test_index_is_that_of_the_local_engine(home: RayHome) -> None:
    home.rebuild()
    assert home.encoder.asked == [], "workers have embedded all texts"
    assert home.embedded.encoded == TEXTS
    local = Home(home.folder.parent / "local", home.root, fts, memory())
    local.rebuild()
    assert digests(home) == digests(local)
    assert home.verify(deep=True).ok


@slow
def test_vectors_stay_out_of_the_object_store(home: RayHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets less than 50 MB for 50,000 chunks."""
    monkeypatch.undo()  # blocks of the usual size
    monkeypatch.setattr(engine, "MIN_VALIDATED_BYTES", 0)
    chunks = 50_000 if HEAVY else 2000
    texts = (source(f"more/{number}.md", *(f"{number} {part}" for part in range(10))) for number in range(chunks // 10))
    commit(home.root, "p2", (record for records in texts for record in records))
    before = created_bytes()
    home.rebuild()
    assert created_bytes() - before < chunks * 1000
    assert (home.embedded.encoded, home.encoder.asked) == (TEXTS + chunks, [])


def created_bytes() -> int:
    """Bytes of everything that was ever put into the object stores of the cluster."""
    from ray._private.internal_api import get_memory_info_reply, get_state_from_address

    state = get_state_from_address(ray.get_runtime_context().gcs_address)
    return int(get_memory_info_reply(state).store_stats.cumulative_created_bytes)


def test_task_that_fails_or_cannot_read_its_file_has_no_result(home: RayHome) -> None:
    file = home.root.chunks_file("p1")
    status = file.stat()
    part = FileRange(str(file), status.st_dev, status.st_ino, 0, 100)
    with RayCompute(Config(ray=RayOptions(workers=2))).workers(MIN_VALIDATED_BYTES) as tasks:
        assert tasks is not None
        assert tasks.submit(json.loads, "no json").result() is None
        assert tasks.submit(scan_range, replace(part, inode=part.inode + 1), CONTRACT).result() is None
        assert tasks.submit(scan_range, part, CONTRACT).result() == scan_range(part, CONTRACT)


def test_few_missing_texts_are_embedded_here(home: RayHome) -> None:
    home.rebuild()
    commit(home.root, "p2", source("docs/new.md", "new", "cat 1"))
    home.sync()
    assert (home.embedded.encoded, home.encoder.asked) == (1, ["new"])


def test_killed_worker_loses_its_block_only(home: RayHome, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()

    def kill() -> None:
        os.kill(int(next(pids.iterdir()).name), signal.SIGKILL)

    stage = Once(kill)
    home.opening(announced, pids).rebuild(stage=stage)
    assert (stage.done, home.encoder.asked) == (TEXTS, [])
    assert home.verify(deep=True).ok
    assert capsys.readouterr().out == ""


@slow
def test_removed_node_is_done_without(home: RayHome, cluster: Any) -> None:
    third = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    home.options = engine.RayOptions(workers=3)
    home.rebuild(stage=Once(lambda: cluster.remove_node(third, allow_graceful=False)))
    assert home.encoder.asked == []
    assert home.verify(deep=True).ok


@slow
def test_written_segment_of_a_killed_worker_is_used(home: RayHome, tmp_path: Path) -> None:
    home.opening(dying_after_segment, tmp_path).rebuild()
    embedded = (tmp_path / "embedded").read_text().split()
    assert (tmp_path / "died").exists()
    assert len(embedded) == len(set(embedded)) == TEXTS


@pytest.mark.promise(2)
def test_killed_run_is_continued_from_its_segments(home: RayHome, cluster: Any) -> None:
    program = "import sys; from tests.compute.test_ray import rebuild_until_killed as run; run(*sys.argv[1:])"
    arguments = [str(home.folder.parent), cluster.address]
    run = subprocess.Popen([sys.executable, "-c", program, *arguments], stderr=subprocess.PIPE)
    segments = home.folder / "segments"
    while not any(segments.glob("[!.]*.arrow")):
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    run.kill()
    run.communicate()
    with VectorCache.open(home.folder.parent / "scratch.db") as cache:
        known = import_segments(cache, open_storage(str(segments))).rows
    home.rebuild()
    assert 0 < home.embedded.encoded <= TEXTS - known < TEXTS
    assert home.verify(deep=True).ok


def rebuild_until_killed(folder: str, address: str) -> None:
    """Runs in its own process."""
    Cluster(RayOptions(address=address)).connect()
    engine.FIRST_BLOCK_BYTES = engine.MAX_BLOCK_BYTES = 4096
    home = RayHome(Path(folder, "home"), FolderRoot(Path(folder, "chunks")), fts, memory())
    home.opening(waiting).rebuild()


@slow
def test_block_that_kills_its_workers_is_an_error_and_the_rest_is_kept(home: RayHome) -> None:
    commit(home.root, "p2", source("docs/deadly.md", "a deadly text"))
    with pytest.raises(ComputeError, match="p2"):
        home.opening(dying).rebuild()
    assert home.embedded.encoded >= TEXTS
    local = Home(home.folder, home.root, *home.makers)
    local.rebuild()
    assert local.encoder.asked == ["a deadly text"]


def test_worker_with_another_model_is_refused(home: RayHome) -> None:
    with pytest.raises(ComputeError, match="fingerprint"):
        home.opening(another_model).rebuild()
    assert home.embedded.encoded == 0


@slow
def test_segments_that_only_the_worker_has_are_an_error(home: RayHome, tmp_path: Path) -> None:
    with pytest.raises(ComputeError, match="segments"):
        home.opening(writing_elsewhere, tmp_path / "elsewhere").rebuild()


def test_failed_starts_of_workers_count_since_the_last_block() -> None:
    """In a long run machines come and go."""
    unused: Any = None
    run = engine._Run(unused, unused, unused, "", lambda _chunks: None)
    for _ in range(2 * engine.TRIES):
        run._note_failed_start("the machine is gone")
        run._accept(unused, BlockReceipt("node", changed=True))
    with pytest.raises(ComputeError, match="the machine is gone"):
        for _ in range(engine.TRIES):
            run._note_failed_start("the machine is gone")
