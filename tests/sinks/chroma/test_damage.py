"""Damage and foreign changes in Chroma's files are reported as needing a rebuild before Chroma crashes."""

import shutil
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings

from chunksink.sinks.chroma import ChromaSink, Server
from chunksink.sinks.chroma.probe import flaw
from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of, marker
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildBroken, BuildMissing
from tests.conftest import HEAVY, sampled
from tests.engines.servers import run_chroma
from tests.support.many_families import many_families, whole


@pytest.mark.parametrize("how", sampled(["empty", "cut", "noise", "gone after a kill", "gone"]))
def test_broken_vector_file_requires_a_rebuild(sink: ChromaSink, signed_large: Marker, saved: Path, how: str) -> None:
    sink.reader(signed_large.build_id).close()
    if how == "gone after a kill":
        (saved.parent.parent / "chunksink-seal.json").write_text('{"writer": 4194303}')  # no such process
    for file in saved.parent.iterdir():
        if how.startswith("gone"):
            file.unlink()
        else:
            content = file.read_bytes()
            file.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "noise": b"\xff" * len(content)}[how])
    with pytest.raises(BuildBroken, match="verify --repair"):
        (sink.reader if how == "empty" else sink.open)(signed_large.build_id)
    sink.drop(signed_large.build_id)
    assert sink.builds() == []


@pytest.mark.parametrize(("begin", "end"), [(4096, 8192), (8192, 12288), (20000, 60000)])
def test_damaged_database_page_is_reported_without_a_crash(
    begin: int, end: int, sink: ChromaSink, signed_large: Marker, saved: Path
) -> None:
    """The engine panics on such a page, and the Python class of that error is no Exception."""
    sink.reader(signed_large.build_id).close()
    database = saved.parent.parent / "chroma.sqlite3"
    content = bytearray(database.read_bytes())
    content[begin:end] = bytes(byte ^ 0x5A for byte in content[begin:end])
    database.write_bytes(content)
    with pytest.raises(BuildBroken, match="verify --repair"):
        sink.open(signed_large.build_id)
    with pytest.raises(BuildBroken, match="verify --repair"):
        sink.reader(signed_large.build_id)
    sink.drop(signed_large.build_id)
    assert sink.builds() == []


@pytest.mark.skipif(not HEAVY, reason="a server is started twice over 1,400 vectors; CHUNKSINK_SOAK_HEAVY")
def test_server_that_lost_its_vectors_is_reported(tmp_path: Path) -> None:
    """It still has the documents and counts them, but a search finds hardly any."""
    signed, families = marker(), [family(str(number), ["one", "two"]) for number in range(700)]
    with (
        run_chroma(data=tmp_path / "data") as server,
        closing(ChromaSink(Server(server.url))) as sink,
        closing(sink.create(signed, DIMENSIONS)) as build,
    ):
        build.replace(families)
        assert build.flush() == []
        assert len(list(build.scan(content=True))) == len(hashes_of(families))
    [vectors] = [path.parent for path in (tmp_path / "data").glob("*/header.bin")]
    shutil.rmtree(vectors)
    with (
        run_chroma(data=tmp_path / "data") as server,
        closing(ChromaSink(Server(server.url))) as sink,
        closing(sink.open(signed.build_id)) as build,
    ):
        assert build.count() == len(hashes_of(families))
        for options in ({"content": True}, {"vectors": True}):
            with pytest.raises(BuildBroken, match=r"verify --repair"):
                list(build.scan(**options))


def spoil(how: str, data: Path) -> None:
    """Faults that change no file size, or that Chroma does not notice."""
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
def test_graph_that_would_crash_later_is_found_in_its_files(saved: Path, how: str) -> None:
    assert flaw(saved.with_name("header.bin")) is None
    spoil(how, saved)
    assert flaw(saved.with_name("header.bin"))


def test_graph_of_an_unknown_version_is_left_to_chroma(saved: Path) -> None:
    header = saved.with_name("header.bin")
    header.write_bytes(struct.pack("<i", 2) + header.read_bytes()[4:])
    saved.write_bytes(b"")
    assert flaw(header) is None


@pytest.mark.parametrize("while_open", [False, True])
def test_collection_dropped_by_others_is_reported(
    sink: ChromaSink, signed_large: Marker, saved: Path, while_open: bool
) -> None:
    build = sink.open(signed_large.build_id) if while_open else None
    theirs = stranger(saved.parents[1])
    theirs.delete_collection("chunks")
    theirs.close()
    if build is None:
        with pytest.raises(BuildMissing, match="chunksink sync`"):
            sink.open(signed_large.build_id)
    else:
        for call in (build.marker, build.count, lambda: hashes_in(build), lambda: build.replace(many_families())):
            with pytest.raises(BuildMissing, match="chunksink sync`"):
                call()
        build.close()
    sink.drop(signed_large.build_id)
    whole(sink)


def stranger(path: Path) -> Any:
    return chromadb.PersistentClient(f"{path}/./././.", settings=Settings(anonymized_telemetry=False))
