"""Foreign changes to a build of plain files."""

import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.sinks.conformance.samples import hashes_in, hashes_of
from chunksink.sinks.contract import NO_PARENT, Marker
from chunksink.sinks.errors import BuildBroken, Refused
from chunksink.sinks.jsonl import JsonlBuild, JsonlSink
from chunksink.sinks.jsonl.build import FAMILIES, MARKER, PENDING
from tests.support.jsonl import ADDED, NEW, OLD, as_files, file_of, fill, visible


def test_foreign_files_are_found_and_removable(build: JsonlBuild, folder: Path, tmp_path: Path) -> None:
    fill(build, [OLD, ADDED])
    mine, families = file_of(folder, OLD), folder / FAMILIES
    (families / "notes.txt").write_text("not\neven\nJSON")
    (families / "deep" / "er").mkdir(parents=True)
    shutil.copy(mine, families / "deep" / "er" / mine.name)
    shutil.copy(mine, mine.with_name("copy.jsonl"))
    shutil.copy(mine, families / mine.name)
    other = "f" * 64 if OLD.parent_id[0] != "f" else "e" * 64
    shutil.copy(mine, mine.with_name(f"{other}.jsonl"))
    (mine.parent / f"{mine.name[:2]}{'0' * 62}.jsonl").symlink_to(mine)
    (families / "linked").symlink_to(tmp_path)
    os.mkfifo(families / "pipe.jsonl")
    (Path(os.fsdecode(os.fsencode(families) + b"/caf\xe9.jsonl"))).write_text("x")
    (mine.parent / ".hidden.jsonl.swp").write_text("x")
    for content in (False, True):
        found = list(build.scan(content=content))
        strangers = [stored for stored in found if stored.parent_id == NO_PARENT]
        assert sorted(stored.hashes() for stored in found if stored not in strangers) == hashes_of([OLD, ADDED])
        assert len(strangers) == len({stored.id for stored in strangers}) == 9
        assert all(stored.hashes()[2:] == ("", "") and stored.document is None for stored in strangers)
        assert {"families/notes.txt", "families/caf\\xe9.jsonl"} <= {stored.id for stored in strangers}
        assert build.count() == len(found)
    "".join(stored.id for stored in strangers).encode()
    build.delete([NO_PARENT])
    assert build.count() == len(found), "not before flush"
    build.flush()
    assert hashes_in(build) == hashes_of([OLD, ADDED])
    assert visible(folder) == as_files([OLD, ADDED])
    assert tmp_path.is_dir()


def line_of(**changes: Any) -> bytes:
    return orjson.dumps(NEW.documents[1].as_dict() | changes)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": "cut o',
        b"\0" * 500,
        b"[]",
        b"{}",
        b"[" * 100_000,
        line_of(text=None),
        line_of(char_start=2**60),
        line_of(id=7),
    ],
)
def test_broken_line_is_assigned_to_its_family_and_repairable(build: JsonlBuild, folder: Path, line: bytes) -> None:
    fill(build, [NEW, ADDED])
    lines = file_of(folder, NEW).read_bytes().splitlines()
    lines[1] = line
    file_of(folder, NEW).write_bytes(b"\n\n".join(lines))  # blank lines are no documents
    hashes_in(build)
    found = [stored for stored in build.scan(content=True) if stored.parent_id == NEW.parent_id]
    assert [stored.document is None for stored in found] == [False, True, False]
    assert found[1].hashes()[2:] == ("", "")
    assert found[1].id in (NEW.documents[1].id, f"families/{NEW.parent_id[:2]}/{NEW.parent_id}.jsonl:3")
    assert build.count() == 4
    fill(build, [NEW])
    assert hashes_in(build, content=True) == hashes_of([NEW, ADDED])


def test_changed_text_is_detected(build: JsonlBuild, folder: Path) -> None:
    fill(build, [NEW])
    path = file_of(folder, NEW)
    path.write_bytes(path.read_bytes().replace(b'"text":"new"', b'"text":"old"', 1))
    assert hashes_in(build, content=True) != hashes_of([NEW])
    assert hashes_in(build) == hashes_of([NEW]), "a plain scan reads what is noted"


def test_folder_in_the_way_is_refused(build: JsonlBuild, folder: Path) -> None:
    file_of(folder, NEW).mkdir(parents=True)
    build.replace([ADDED, NEW])
    with pytest.raises(Refused, match="move the conflicting"):
        build.flush()
    with pytest.raises(Refused, match="move the conflicting"):
        build.flush()
    file_of(folder, NEW).rmdir()
    build.flush()
    assert hashes_in(build) == hashes_of([NEW, ADDED])


def test_family_removed_by_another_process_is_not_confirmed(build: JsonlBuild, folder: Path) -> None:
    build.replace([NEW])
    shutil.rmtree(folder / PENDING)
    for _ in range(2):
        with pytest.raises(BuildBroken):
            build.flush()
    fill(build, [NEW])
    assert hashes_in(build) == hashes_of([NEW])
    shutil.rmtree(folder / FAMILIES)
    with pytest.raises(BuildBroken):
        hashes_in(build)


def test_unreadable_build_is_broken_and_unowned(sink: JsonlSink, build: JsonlBuild, folder: Path) -> None:
    sink.flip(None, "b1")
    (folder / MARKER).write_bytes(b"{")
    shutil.rmtree(folder / FAMILIES)
    for what in ("families is missing", "is damaged"):
        with pytest.raises(BuildBroken, match=what):
            sink.open("b1")
        assert sink.shown() is None
        (folder / FAMILIES).mkdir(exist_ok=True)
    sink.drop("b1")
    assert sink.create(Marker("mine", "b1", 1)).count() == 0


def test_damaged_marker_has_no_owner(sink: JsonlSink, build: JsonlBuild, folder: Path) -> None:
    for damage in (b"", b"{", b'{"home_id": 5}', b"[]", b'{"home_id":"a","build_id":"b"}'):
        (folder / MARKER).write_bytes(damage)
        with pytest.raises(BuildBroken, match="verify --repair"):
            build.marker()
        with pytest.raises(BuildBroken, match="verify --repair"):
            sink.create(Marker("other", "b1", 1))
    build.sign(Marker("mine", "b1", 2))
    assert build.marker() == Marker("mine", "b1", 2)
    (folder / MARKER).unlink()
    assert build.marker() is None
