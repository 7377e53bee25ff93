"""Runs on Ray: two nodes on this machine, and workers, nodes and runs that die."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.compute import ray as engine
from chunksink.rebuild.errors import ComputeError
from tests.compute.workers import RayHome, announced, another_model, dying, dying_after_segment
from tests.support.bus import commit, source
from tests.support.home import Home, digests
from tests.support.local_engines import fts, memory

ray = pytest.importorskip("ray")
TEXTS = 120


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(**{name: node[name] for name in ("num_cpus", "object_store_memory")})
    ray.init(address=cluster.address, log_to_driver=False, logging_level="critical")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def home(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RayHome:
    """A home with many small blocks to embed."""
    monkeypatch.setattr(engine, "FIRST_BLOCK_BYTES", 4096)
    monkeypatch.setattr(engine, "MOST_BLOCK_BYTES", 4096)
    root = BusRoot(tmp_path / "chunks")
    commit(root, "p1", [record for number in range(TEXTS) for record in source(f"docs/{number}.md", f"cat {number}")])
    return RayHome(tmp_path / "home", root, fts, memory())


class Once:
    """A stage that acts when the first block is done."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.acts = [act]
        self.done = 0

    def __call__(self, name: str, _total: int | None, _unit: str) -> AbstractContextManager[Any]:
        return nullcontext(self if name.startswith("embed") else Silent())

    def advance(self, amount: int) -> object:
        self.done += amount
        return self.acts.pop()() if amount and self.acts else None


class Silent:
    def advance(self, amount: int) -> object:
        return None


def test_index_is_that_of_the_local_engine(home: RayHome) -> None:
    home.rebuild()
    assert home.encoder.asked == [], "workers have embedded all texts"
    assert home.embedded.encoded == TEXTS
    local = Home(home.folder.parent / "local", home.root, fts, memory())
    local.rebuild()
    assert digests(home) == digests(local)
    assert home.verify(deep=True).ok


def test_few_missing_texts_are_embedded_here(home: RayHome) -> None:
    home.rebuild()
    commit(home.root, "p2", source("docs/new.md", "new", "cat 1"))
    home.sync()
    assert (home.embedded.encoded, home.encoder.asked) == (1, ["new"])


def test_killed_worker_loses_its_block_only(home: RayHome, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    first: list[int] = []

    def kill() -> None:
        first.extend(int(file.name) for file in pids.iterdir())
        os.kill(first[0], signal.SIGKILL)

    stage = Once(kill)
    home.opening(announced, pids).rebuild(stage=stage)
    assert len(list(pids.iterdir())) > len(first), "another worker took its place"
    assert (stage.done, home.encoder.asked) == (TEXTS, [])
    assert home.verify(deep=True).ok


def test_removed_node_is_done_without(home: RayHome, cluster: Any) -> None:
    third = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    home.options = engine.RayOptions(workers=3)
    home.rebuild(stage=Once(lambda: cluster.remove_node(third, allow_graceful=False)))
    assert home.encoder.asked == []
    assert home.verify(deep=True).ok


def test_written_segment_of_a_killed_worker_is_used(home: RayHome, tmp_path: Path) -> None:
    home.opening(dying_after_segment, tmp_path).rebuild()
    embedded = (tmp_path / "embedded").read_text().split()
    assert (tmp_path / "died").exists()
    assert len(embedded) == len(set(embedded)) == TEXTS


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
