"""A kill at any point leaves the old partition or the new one, and the next writer cleans up."""

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import open_partition, read_partition
from chunksink.chunkbus.writer import COMMIT_STEPS, PartitionWriter
from tests.chunkbus import crash_writer
from tests.chunkbus.crash_writer import version, write
from tests.chunkbus.samples import chunk, commit, validate
from tests.conftest import ROOT, examples, sampled
from tests.support.forking import FORKING

KEY = "2026-01-31"
# What readers see after a kill there: the old or the new partition.
SEEN_AFTER = {
    "chunks_opened": "old",
    "chunks_written": "old",
    "chunks_waiting": "old",
    "manifest_committed": "new",
    "chunks_renamed": "new",
}
STEPS = [(step, when) for step in COMMIT_STEPS for when in ("before", "after")]


def test_commit_calls_all_steps_in_order(tmp_path: Path) -> None:
    steps: list[str] = []
    write(BusRoot(tmp_path), KEY, 1, steps.append)
    assert tuple(steps) == COMMIT_STEPS == tuple(SEEN_AFTER)


def seen_after(step: str, when: str) -> str:
    if when == "after":
        return SEEN_AFTER[step]
    place = COMMIT_STEPS.index(step)
    return SEEN_AFTER[COMMIT_STEPS[place - 1]] if place else "old"


def run_writer(root: BusRoot, *arguments: str) -> int:
    process = FORKING.Process(target=crash_writer.main, args=(root, KEY, list(arguments)))
    process.start()
    process.join(60)
    assert process.exitcode is not None
    return process.exitcode


def read(root: BusRoot) -> list[Record]:
    return [record for _, record in read_partition(root, KEY)]


def names(root: BusRoot) -> list[str]:
    return sorted(path.name for folder in (root.canonical, root.manifests) for path in folder.iterdir())


TIDY = [f".{KEY}.lock", f"{KEY}.jsonl", f"{KEY}.manifest.json"]


@pytest.mark.parametrize("existing", [True, False], ids=["replacing", "first"])
@pytest.mark.parametrize(("step", "when"), sampled(STEPS))
def test_writer_when_killed_leaves_one_complete_version(step: str, when: str, existing: bool, tmp_path: Path) -> None:
    root = BusRoot(tmp_path)
    if existing:
        write(root, KEY, 1)
    else:
        root.canonical.mkdir()
    assert run_writer(root, "2", when, step) == -signal.SIGKILL
    is_new = seen_after(step, when) == "new"
    is_there = is_new or existing
    expected = version(2 if is_new else 1)
    assert root.partition_keys() == ([KEY] if is_there else [])
    assert not is_there or read(root) == expected
    assert validate(root) == []
    # A writer that ends without a commit finishes the rename and leaves no files.
    with PartitionWriter(root, KEY):
        pass
    assert names(root) == (TIDY if is_there else TIDY[:1])
    assert not is_there or read(root) == expected
    assert validate(root) == []
    write(root, KEY, 3)
    assert names(root) == TIDY
    assert read(root) == version(3)


@pytest.mark.parametrize("second", ["chunks_opened", "chunks_waiting", "manifest_committed"])
def test_writer_when_killed_twice_leaves_one_complete_version(second: str, tmp_path: Path) -> None:
    root = BusRoot(tmp_path)
    write(root, KEY, 1)
    run_writer(root, "2", "after", "manifest_committed")
    run_writer(root, "3", "after", second)
    assert read(root) == version(3 if second == "manifest_committed" else 2)
    assert validate(root) == []
    write(root, KEY, 4)
    assert names(root) == TIDY
    assert read(root) == version(4)


def test_writer_when_killed_at_any_instant_leaves_one_complete_version(tmp_path: Path) -> None:
    root = BusRoot(tmp_path)
    chance = random.Random(1)
    write(root, KEY, 0)
    for _ in range(examples(9)):
        command = [sys.executable, "-m", "tests.chunkbus.crash_writer", str(root.path), KEY, "forever"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()  # it is at work
            time.sleep(chance.random() / 20)
            process.kill()
            last = max(int(line) for line in ["1", *process.stdout.read().split()])
        # The last reported version is durable; the next one may be committed too.
        assert read(root) in (version(last), version(last + 1))
        assert validate(root) == []
    write(root, KEY, 3)
    assert names(root) == TIDY


def test_reader_during_commits_never_sees_a_mixture(tmp_path: Path) -> None:
    root = BusRoot(tmp_path)
    write(root, KEY, 0)
    command = [sys.executable, "-m", "tests.chunkbus.crash_writer", str(root.path), KEY, "1", "200"]
    rounds, seen = 0, set[str]()
    with subprocess.Popen(command, cwd=ROOT) as process:
        while process.poll() is None:
            file, manifest = open_partition(root, KEY)
            with file:
                data = file.read()
            assert manifest is not None
            checksum = "sha256:" + hashlib.sha256(data).hexdigest()
            assert json.loads(manifest)["checksums"]["chunks_file"] == checksum
            if rounds % 10 == 0:
                assert validate(root) == []
            seen.add(checksum)
            rounds += 1
    assert process.returncode == 0
    assert read(root) == version(200)
    assert rounds > 50
    assert len(seen) > 10


@pytest.mark.parametrize("content", [b"", b"{\n", b"not what its name says\n"])
def test_waiting_file_with_a_wrong_checksum_is_ignored(content: bytes, tmp_path: Path) -> None:
    root = BusRoot(tmp_path)
    commit(root, "p", [chunk(0), chunk(1)])
    before = root.chunks_file("p").read_bytes()
    root.waiting_file("p", hashlib.sha256(before).hexdigest()).write_bytes(content)
    assert validate(root) == []
    assert [record["chunk_id"] for _, record in read_partition(root, "p")] == ["chunk-0", "chunk-1"]
    with PartitionWriter(root, "p"):
        pass
    assert root.chunks_file("p").read_bytes() == before
    assert validate(root) == []
