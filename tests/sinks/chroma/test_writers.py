"""How writers of an embedded build are detected, and what a killed writer leaves behind."""

import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chunksink.sinks.chroma import ChromaSink, seal
from chunksink.sinks.conformance.samples import DIMENSIONS, family, marker
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildBroken
from tests.conftest import HEAVY, ROOT
from tests.support.chroma import folder
from tests.support.forking import execute, outcome_of
from tests.support.many_families import whole

OPEN = """
import os, sys
from pathlib import Path
import numpy as np
from chunksink.sinks.chroma import ChromaSink, EmbeddedChromaSink
from chunksink.sinks.conformance.samples import vector
from chunksink.sinks.errors import BuildBroken

root, build_id = Path(sys.argv[1]), sys.argv[2]
if len(sys.argv) > 3:
    (root / build_id / "chunksink-seal.json").write_text('{"writer": %d}' % os.getpid())
sink = EmbeddedChromaSink(root)
try:
    build = sink.open(build_id)
except BuildBroken:
    sys.exit(print("broken"))
found = list(build.scan(content=True, vectors=True))
reader = sink.reader(build_id)
right = [one for one in found if one.vector @ vector(one.document.text) > 0.9999]
asked = found[:: len(found) // 100 + 1]
missed = [one for one in asked if one.id not in {hit.id for hit in reader.query(vector(one.document.text), 3)}]
print(build.count(), len(found), len(right), len(missed), build.marker() is not None)
reader.close()
build.close()
"""


def look(tmp_path: Path, signed: Marker, *more: str) -> str:
    """Open the build in another process. Returns what it found, or the signal that killed it."""
    code, out, err = outcome_of(execute, OPEN, tmp_path / "chroma", signed.build_id, *more)
    return out.strip() if code == 0 else f"{code}: {err[-500:]}"


@pytest.mark.parametrize("name", ["header.bin", "data_level0.bin", ""])
def test_dead_writer_with_a_reused_process_id_is_dead(
    signed_large: Marker, saved: Path, tmp_path: Path, name: str
) -> None:
    """For example after the restart of a container."""
    if name:
        file = saved.with_name(name)
        held_ = file.read_bytes()
        no_entry = held_[:56] + struct.pack("<I", 2**31) + held_[60:]
        file.write_bytes(no_entry if name == "header.bin" else held_[: len(held_) // 2])
    assert look(tmp_path, signed_large, "my own number") == ("broken" if name else "1200 1200 1200 0 True")


def test_open_writer_is_trusted_and_a_killed_one_is_not(
    sink: ChromaSink, signed_large: Marker, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = saved.parents[2]
    with writer(root, signed_large.build_id, 1) as process:
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "run", None)  # a check of files that are being changed could report anything
            sink.reader(signed_large.build_id).close()
            sink.open(signed_large.build_id).close()
        kill(process)
    saved.write_bytes(b"")
    with pytest.raises(BuildBroken):
        sink.open(signed_large.build_id)


def test_files_that_another_program_is_saving_are_checked_again(
    sink: ChromaSink, signed_large: Marker, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma truncates a file before it writes it."""
    header = saved.with_name("header.bin")
    complete, run = header.read_bytes(), subprocess.run
    header.write_bytes(b"")

    def probe_and_save(*arguments: Any, **named: Any) -> Any:
        done = run(*arguments, **named)
        header.write_bytes(complete)
        return done

    monkeypatch.setattr(subprocess, "run", probe_and_save)
    sink.open(signed_large.build_id).close()


def test_two_handles_of_one_process_leave_no_writer(
    sink: ChromaSink, signed_large: Marker, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", None)
        one, two = sink.open(signed_large.build_id), sink.open(signed_large.build_id)
        for build in (one, two):
            build.replace([family("more", ["x"])])
            build.flush()
        one.close()
        two.close()
        two.close()
        sink.open(signed_large.build_id).close()
    assert not seal._has_writer(saved.parents[1])


WRITE = """
import sys
from pathlib import Path
from chunksink.sinks.chroma import ChromaSink, EmbeddedChromaSink
from chunksink.sinks.conformance.samples import family

build = EmbeddedChromaSink(Path(sys.argv[1])).open(sys.argv[2])
print("open", flush=True)
for number in range(int(sys.argv[3])):
    build.replace([family(f"w{number}/{n}", [f"{number} {n} {place}" for place in range(10)]) for n in range(150)])
    build.flush()
    print(number, flush=True)
sys.stdin.read()
"""


@contextmanager
def writer(root: Path, build_id: str, batches: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WRITE, str(root), build_id, str(batches)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


MOMENTS = ["data_level0.bin", "header.bin", "index_metadata.pickle", "0.1"]


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.skipif(not HEAVY, reason="batches of 1,500 documents are written; CHUNKSINK_SOAK_HEAVY")
@pytest.mark.parametrize("moment", MOMENTS)
def test_writer_killed_in_a_large_batch_is_detected(sink: ChromaSink, tmp_path: Path, moment: str) -> None:
    """Also while Chroma saves vectors. The build is either read correctly or reported as broken, and a new one is
    complete."""
    signed = marker()
    sink.create(signed, DIMENSIONS).close()
    with writer(tmp_path / "chroma", signed.build_id, 50) as process:
        assert process.stdout and process.stdout.readline() == "0\n"
        wait_for(folder(tmp_path, signed), moment)
        kill(process)
        confirmed = 1 + sum(1 for _ in process.stdout)
    found = look(tmp_path, signed)
    if found != "broken":
        count, *same, missed, signed_ = found.split()
        assert int(count) >= confirmed * 1500
        assert ([int(one) for one in same], missed, signed_) == ([int(count)] * 2, "0", "True")
    whole(sink)


def wait_for(path: Path, moment: str) -> None:
    """Wait some seconds, or until this file is being saved."""
    if moment[0].isdigit():
        time.sleep(float(moment))
        return
    [file] = path.glob(f"*/{moment}")
    before, end = file.stat().st_mtime_ns, time.monotonic() + 20
    while file.stat().st_mtime_ns == before and time.monotonic() < end:
        pass
