"""What becomes of a Chroma folder that was damaged, rolled back, or whose writer was killed; and of a keyword file."""

import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings

from sinks.chroma import ChromaSink, seal
from sinks.chroma.probe import flaw
from sinks.conformance.samples import DIMENSIONS, family, held, marker, vector, wanted
from sinks.document import Family
from sinks.errors import BuildBroken, BuildMissing, WrongShape
from sinks.fts import FtsSink
from sinks.sink import Marker, Sink

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = [family(f"f{number}", [f"{number} {place}" for place in range(12)]) for number in range(100)]


@pytest.fixture
def sink(tmp_path: Path) -> ChromaSink:
    return ChromaSink.embedded(tmp_path / "chroma")


def folder(tmp_path: Path, signed: Marker) -> Path:
    return tmp_path / "chroma" / signed.build_id


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Marker]:
    """A build large enough that Chroma has saved its vectors to a file; closed in order."""
    root, signed = tmp_path_factory.mktemp("large"), marker()
    build = ChromaSink.embedded(root).create(signed, DIMENSIONS)
    build.replace(FAMILIES)
    build.close()
    return root, signed


@pytest.fixture
def signed_large(large: tuple[Path, Marker]) -> Marker:
    return large[1]


@pytest.fixture
def saved(large: tuple[Path, Marker], tmp_path: Path) -> Path:
    """The vector file of a copy of it, below the sink's root."""
    shutil.copytree(large[0], tmp_path / "chroma")
    [data] = folder(tmp_path, large[1]).glob("*/data_level0.bin")
    return data


@pytest.mark.parametrize("how", ["cut", "empty", "noise", "gone", "gone after a kill"])
def test_a_broken_vector_file_says_rebuild(sink: ChromaSink, signed_large: Marker, saved: Path, how: str) -> None:
    sink.reader(signed_large.build_id).close()
    if how == "gone after a kill":
        (saved.parent.parent / "chunksink-seal.json").write_text('{"writer": 4194303}')  # no such process
    for file in saved.parent.iterdir():
        if how.startswith("gone"):
            file.unlink()
        else:
            held = file.read_bytes()
            file.write_bytes({"cut": held[: len(held) // 2], "empty": b"", "noise": b"\xff" * len(held)}[how])
    with pytest.raises(BuildBroken, match="rebuild it"):
        (sink.reader if how == "empty" else sink.open)(signed_large.build_id)
    sink.drop(signed_large.build_id)
    assert sink.builds() == []


def test_a_copy_that_differs_in_time_only_is_opened(
    sink: ChromaSink, signed_large: Marker, saved: Path, tmp_path: Path
) -> None:
    whole = saved.parent.parent
    shutil.copytree(whole, tmp_path / "copy", copy_function=shutil.copy)
    sink.drop(signed_large.build_id)
    (tmp_path / "copy").rename(whole)
    build = sink.open(signed_large.build_id)
    assert (build.count(), build.marker()) == (1200, signed_large)
    build.close()


# --- what must not take the process down ----------------------------------------------------------------------

OPEN = """
import os, sys
from pathlib import Path
import numpy as np
from sinks.chroma import ChromaSink
from sinks.conformance.samples import vector
from sinks.errors import BuildBroken

root, build_id = Path(sys.argv[1]), sys.argv[2]
if len(sys.argv) > 3:
    (root / build_id / "chunksink-seal.json").write_text('{"writer": %d}' % os.getpid())
sink = ChromaSink.embedded(root)
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
    """Open the build in another process; what it found, or how it died."""
    command = [sys.executable, "-c", OPEN, str(tmp_path / "chroma"), signed.build_id, *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else f"{done.returncode}: {done.stderr[-500:]}"


@pytest.mark.parametrize("name", ["header.bin", "data_level0.bin", ""])
def test_a_dead_writer_of_the_same_process_number_is_dead(
    signed_large: Marker, saved: Path, tmp_path: Path, name: str
) -> None:
    """As in a container that was started again."""
    if name:
        file = saved.with_name(name)
        held_ = file.read_bytes()
        no_entry = held_[:56] + struct.pack("<I", 2**31) + held_[60:]
        file.write_bytes(no_entry if name == "header.bin" else held_[: len(held_) // 2])
    assert look(tmp_path, signed_large, "my own number") == ("broken" if name else "1200 1200 1200 0 True")


def test_an_open_writer_is_trusted_and_a_killed_one_is_not(
    sink: ChromaSink, signed_large: Marker, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = saved.parents[2]
    with writer(root, signed_large.build_id, 1) as process:
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "run", None)  # a probe of files that move would say anything
            sink.reader(signed_large.build_id).close()
            sink.open(signed_large.build_id).close()
        kill(process)
    saved.write_bytes(b"")
    with pytest.raises(BuildBroken):
        sink.open(signed_large.build_id)


def test_two_handles_of_one_process_and_none_after_them(
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
    assert not seal._is_written(saved.parents[1])


def spoil(how: str, data: Path) -> None:
    """Faults that leave every file as long as it should be, or that Chroma does not notice."""
    if how == "cut by little":
        data.write_bytes(data.read_bytes()[:-172])
        return
    name, place, value = {
        "a link to nowhere": (data.name, 172 * 7 + 4, 5000),
        "an upper link to nowhere": ("link_lists.bin", 0, 0),
        "a vector twice": (data.name, 172 * 7 + 164, 0),
        "no entry": ("header.bin", 56, 5000),
    }[how]
    raw = bytearray(data.with_name(name).read_bytes())
    if name == "link_lists.bin":
        place = next(at for at in range(0, len(raw), 4) if struct.unpack_from("<I", raw, at)[0] == 68) + 8
        value = 5000
    struct.pack_into("<I", raw, place, value)
    if how == "a vector twice":
        raw[172 * 8 + 164 : 172 * 8 + 168] = bytes(4)
    data.with_name(name).write_bytes(raw)


FAULTS = ["cut by little", "a link to nowhere", "an upper link to nowhere", "a vector twice", "no entry"]


@pytest.mark.parametrize("how", FAULTS)
def test_a_graph_that_would_crash_later_is_found_in_its_files(saved: Path, how: str) -> None:
    assert flaw(saved.with_name("header.bin")) is None
    spoil(how, saved)
    assert flaw(saved.with_name("header.bin"))


def test_a_graph_of_an_unknown_version_is_left_to_chroma(saved: Path) -> None:
    header = saved.with_name("header.bin")
    header.write_bytes(struct.pack("<i", 2) + header.read_bytes()[4:])
    saved.write_bytes(b"")
    assert flaw(header) is None


WRITE = """
import sys
from pathlib import Path
from sinks.chroma import ChromaSink
from sinks.conformance.samples import family

build = ChromaSink.embedded(Path(sys.argv[1])).open(sys.argv[2])
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


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("moment", ["header.bin", "data_level0.bin", "index_metadata.pickle", "0.1"])
def test_a_writer_killed_in_a_large_batch(sink: ChromaSink, tmp_path: Path, moment: str) -> None:
    """Also while Chroma saves its vectors: what is there is told, or that it is broken; and a new build is whole."""
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
    """A time, or the moment when this file is being saved."""
    if moment[0].isdigit():
        time.sleep(float(moment))
        return
    [file] = path.glob(f"*/{moment}")
    before, end = file.stat().st_mtime_ns, time.monotonic() + 20
    while file.stat().st_mtime_ns == before and time.monotonic() < end:
        pass


def whole(sink: Sink, families: list[Family] = FAMILIES) -> None:
    """All families into a new build: it holds them and nothing else."""
    signed = marker()
    build = sink.create(signed, DIMENSIONS)
    build.replace(families)
    assert build.flush() == []
    assert (held(build, content=True), build.count(), build.marker()) == (wanted(families), 1200, signed)
    build.close()


# --- what somebody else did -----------------------------------------------------------------------------------


@pytest.mark.parametrize("while_open", [False, True])
def test_most_of_it_deleted_behind_our_back(
    sink: ChromaSink, signed_large: Marker, saved: Path, while_open: bool
) -> None:
    build = sink.open(signed_large.build_id) if while_open else None
    theirs = stranger(saved.parents[1])
    ids = theirs.get_collection("chunks", embedding_function=None).get(include=[])["ids"]
    gone = set(ids[: len(ids) * 97 // 100])
    theirs.get_collection("chunks", embedding_function=None).delete(ids=sorted(gone))
    theirs.close()
    build = build or sink.open(signed_large.build_id)
    left = [row for row in wanted(FAMILIES) if row[0] not in gone]
    assert (held(build, content=True), build.count(), build.marker()) == (left, len(left), signed_large)
    build.replace(FAMILIES)
    build.flush()
    assert held(build) == wanted(FAMILIES)
    build.close()
    reader = sink.reader(signed_large.build_id)
    asked = [document for one in FAMILIES[::10] for document in one.documents]
    assert [reader.query(vector(d.text), 1)[0].id for d in asked] == [d.id for d in asked]
    reader.close()
    whole(sink)


@pytest.mark.parametrize("while_open", [False, True])
def test_the_collection_dropped_behind_our_back(
    sink: ChromaSink, signed_large: Marker, saved: Path, while_open: bool
) -> None:
    build = sink.open(signed_large.build_id) if while_open else None
    theirs = stranger(saved.parents[1])
    theirs.delete_collection("chunks")
    theirs.close()
    if build is None:
        with pytest.raises(BuildMissing, match="rebuild"):
            sink.open(signed_large.build_id)
    else:
        for call in (build.marker, build.count, lambda: held(build), lambda: build.replace(FAMILIES)):
            with pytest.raises(BuildMissing, match="rebuild"):
                call()
        build.close()
    sink.drop(signed_large.build_id)
    whole(sink)


def stranger(path: Path) -> Any:
    return chromadb.PersistentClient(f"{path}/./././.", settings=Settings(anonymized_telemetry=False))


@pytest.mark.parametrize("keep_times", [True, False])
def test_an_old_copy_put_back(
    sink: ChromaSink, signed_large: Marker, saved: Path, tmp_path: Path, keep_times: bool
) -> None:
    path = saved.parents[1]
    shutil.copytree(path, tmp_path / "old", copy_function=shutil.copy2 if keep_times else shutil.copy)
    build = sink.open(signed_large.build_id)
    build.sign(Marker("later", signed_large.build_id, 9))
    build.replace([family(f"f{n}", ["new"] * 20, version="2") for n in range(100)])
    build.close()
    shutil.rmtree(path)
    (tmp_path / "old").rename(path)
    build = sink.open(signed_large.build_id)
    assert (held(build), build.count(), build.marker()) == (wanted(FAMILIES), 1200, signed_large)
    assert all(np.isclose(one.vector @ one.vector, 1) for one in build.scan(vectors=True) if one.vector is not None)
    build.close()
    whole(sink)


# --- the keyword file -----------------------------------------------------------------------------------------


@pytest.fixture
def keyword(tmp_path: Path) -> tuple[FtsSink, Marker, Path]:
    sink, signed = FtsSink(tmp_path / "fts"), marker()
    build = sink.create(signed)
    build.replace(FAMILIES)
    build.close()
    return sink, signed, tmp_path / "fts" / signed.build_id / "fts.db"


def test_most_rows_deleted_behind_our_back(keyword: tuple[FtsSink, Marker, Path]) -> None:
    sink, signed, path = keyword
    build = sink.open(signed.build_id)
    run(path, "DELETE FROM documents WHERE row % 100 < 97")
    assert set(held(build, content=True)) < set(wanted(FAMILIES))
    assert (build.count(), len(held(build)), build.marker()) == (36, 36, signed)
    build.close()
    whole(sink)


@pytest.mark.parametrize("table", ["documents", "marker"])
def test_a_table_dropped_behind_our_back(keyword: tuple[FtsSink, Marker, Path], table: str) -> None:
    sink, signed, path = keyword
    build = sink.open(signed.build_id)
    run(path, f"DROP TABLE {table}")
    with pytest.raises(BuildBroken, match="rebuild it"):
        build.count() if table == "documents" else build.marker()
    build.close()
    with pytest.raises(BuildBroken, match="rebuild it"):
        sink.open(signed.build_id)
    whole(sink)


def test_a_row_that_nobody_can_read_differs_and_hinders_nothing(keyword: tuple[FtsSink, Marker, Path]) -> None:
    sink, signed, path = keyword
    run(path, "UPDATE documents SET tags = 'no list', year = 'x' WHERE row = 1")
    build = sink.open(signed.build_id)
    found = set(held(build, content=True)) ^ set(wanted(FAMILIES))
    assert {row[3:] for row in found} - {row[3:] for row in wanted(FAMILIES)} == {("", "")}
    assert len(found) == 2
    build.close()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_a_file_cut_off_is_broken_or_tells_what_is_there(keyword: tuple[FtsSink, Marker, Path], share: float) -> None:
    sink, signed, path = keyword
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises((BuildBroken, WrongShape), match="rebuild it"):
        build = sink.open(signed.build_id)
        build.marker()
        list(build.scan(content=True))
    whole(sink)


def run(path: Path, statement: str) -> None:
    other = sqlite3.connect(path)
    other.execute(statement)
    other.commit()
    other.close()
