"""`--engine ray` on the command line, with the real model: what it starts, leaves behind and refuses."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Exit
from tests.conftest import HEAVY, ROOT
from tests.journey.support import chunksink, command_line, environment
from tests.support.bus import commit, source

pytest.importorskip("ray")
pytestmark = pytest.mark.skipif(not HEAVY, reason="part of `make soak`")
TEXTS = 600
ON_RAY = ("--engine", "ray", "--workers", "2", "--json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = (source(f"docs/{number}.md", f"The cat number {number} sleeps.") for number in range(TEXTS))
    commit(FolderRoot(tmp_path / "chunks"), "p1", (record for records in texts for record in records))
    return tmp_path


def test_unreachable_cluster_is_an_error_at_once(folder: Path) -> None:
    ended = chunksink(folder, "rebuild", *ON_RAY, "--address", "127.0.0.1:1")
    assert ended.code == Exit.ENGINE


def test_options_of_ray_need_the_engine(folder: Path) -> None:
    assert chunksink(folder, "sync", "--workers", "2").code == Exit.USAGE


def test_chunks_and_segments_in_a_bucket(folder: Path, bucket: str) -> None:
    options = ("--chunks", f"{bucket}/bus", "--json")
    assert chunksink(folder, "ingest", str(ROOT / "examples" / "handbook"), *options).code == Exit.OK
    settings = f'engine = "ray"\n[ray]\nworkers = 2\nsegments = "{bucket}/segments"\n'
    (folder / "chunksink.toml").write_text(settings)
    report = chunksink(folder, "rebuild", *options).json
    assert report["embeddings"]["computed"] > 0
    assert chunksink(folder, "verify", "--deep", *options).code == Exit.OK
    assert chunksink(folder, "rebuild", *options, "--home", "other").json["embeddings"]["computed"] == 0


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, -signal.SIGTERM)])
def test_interrupted_run_leaves_nothing_behind(sign: signal.Signals, code: int, folder: Path) -> None:
    run = subprocess.Popen(
        command_line("rebuild", *ON_RAY), cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    segments = folder / ".chunksink" / "segments"
    while not (segments.is_dir() and any(segments.glob("*.arrow"))):
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    children = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(sign)
    _, printed = run.communicate(timeout=60)
    assert (run.returncode, b"Traceback" in printed) == (code, False), printed
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
