"""What the JSONL sink promises beyond the suite: files, omissions, options, link."""

import os
from pathlib import Path

import msgspec
import orjson
import pytest

from chunksink.sinks.conformance.samples import family, hashes_in, hashes_of, with_vectors
from chunksink.sinks.contract import Marker, Sink
from chunksink.sinks.document import Family
from chunksink.sinks.errors import BuildMissing, Refused
from chunksink.sinks.jsonl import JsonlBuild, JsonlSink, open_sink
from chunksink.sinks.jsonl.build import FAMILIES, MARKER, PENDING
from chunksink.sinks.jsonl.sink import LINK
from tests.support.jsonl import ADDED, GOING, NEW, OLD, as_files, content_of, file_of, fill, pending, visible


def test_family_is_a_file_of_canonical_lines_in_order(build: JsonlBuild, folder: Path) -> None:
    one = family("a", ["first", "second \u2028 line\nbreak", "third"], metadata={"tags": ["x"], "title": "Ünï"})
    fill(build, [one])
    assert file_of(folder, one).read_bytes() == content_of(one)
    lines = [orjson.loads(line) for line in file_of(folder, one).read_bytes().splitlines()]
    assert [line["id"] for line in lines] == [document.id for document in one.documents]
    assert orjson.loads((folder / MARKER).read_bytes()) == {
        "home_id": "home",
        "build_id": "b1",
        "projection_version": 1,
        "stamp": "",
    }
    mask = os.umask(0)
    os.umask(mask)
    assert file_of(folder, one).stat().st_mode & 0o777 == 0o666 & ~mask, "other systems must be able to read it"


def test_replaced_family_leaves_no_file(build: JsonlBuild, folder: Path) -> None:
    build.replace([OLD])
    build.replace([NEW, OLD, NEW])
    assert len(pending(folder)) == 1
    build.delete([NEW.parent_id])
    assert pending(folder) == []
    build.replace([OLD])
    build.close()
    build.close()
    assert (pending(folder), visible(folder)) == ([], {})


def test_moved_id_is_in_both_files_until_its_old_family_changes(build: JsonlBuild) -> None:
    moved = with_vectors([msgspec.structs.replace(NEW.documents[0], id=GOING.documents[0].id)])
    fill(build, [GOING])
    fill(build, [moved])
    assert hashes_in(build) == hashes_of([GOING, moved])
    build.delete([GOING.parent_id])
    build.flush()
    assert hashes_in(build) == hashes_of([moved])


def test_only_a_writer_removes_remains_of_a_kill(sink: JsonlSink, build: JsonlBuild, folder: Path) -> None:
    build.replace([NEW])
    other = sink.open("b1")  # another process verifies meanwhile
    assert (hashes_in(other), other.count()) == ([], 0)
    other.close()
    build.flush()
    (folder / PENDING / "left by a kill").write_bytes(b"half a li")
    again = sink.open("b1")
    fill(again, [ADDED])
    assert pending(folder) == []
    assert hashes_in(again) == hashes_of([NEW, ADDED])


PATHS = [
    "",
    ".",
    "..",
    "../x",
    "../../outside",
    "ab/../../../../outside",
    "/etc/x",
    "a/b",
    "x\0y",
    "\ud800",
    "A" * 64,
    "a" * 64 + "\n",
]


@pytest.mark.parametrize("parent_id", [*PATHS, "a" * 63, "a" * 65, "é" * 64, "١" * 64])
def test_parent_id_is_never_a_path(build: JsonlBuild, folder: Path, tmp_path: Path, parent_id: str) -> None:
    (tmp_path / "outside.jsonl").write_text("x")
    (tmp_path / "x.jsonl").write_text("x")
    everything = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    odd = Family([msgspec.structs.replace(document, parent_id=parent_id) for document in NEW.documents])
    with pytest.raises(ValueError, match="invalid family"):
        build.replace([odd])
    build.delete([parent_id])
    assert build.flush() == []
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == everything


def test_options_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_sink(tmp_path, {}).create(Marker("home", "b1", 1))
    assert (tmp_path / "jsonl" / "b1" / MARKER).exists()
    monkeypatch.chdir(tmp_path)
    sink: Sink = open_sink(tmp_path, {"folder": "elsewhere"})
    monkeypatch.chdir("/")
    sink.create(Marker("home", "b1", 1))
    assert (tmp_path / "elsewhere" / "b1" / MARKER).exists()
    assert (sink.name, sink.wants_vectors) == ("jsonl", False)


# --- the link to the live build --------------------------------------------------------------------------------


def test_link_leads_to_the_live_build(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    root = tmp_path / "jsonl"
    sink.create(Marker("home", "b2", 1)).close()
    sink.flip(None, "b1")
    assert sink.builds() == ["b1", "b2"]
    fill(build, [OLD])
    assert visible(root / LINK / FAMILIES) == as_files([OLD])
    for old, new in ((None, "b2"), ("b2", "b2x"), ("b0", "b2")):
        with pytest.raises(Refused):
            sink.flip(old, new)
        assert str((root / LINK).readlink()) == "b1"
    (root / ".current").symlink_to("left by a kill")
    sink.flip("b1", "b2")
    sink.flip("b1", "b2")
    sink.flip("b2", "b2")
    assert str((root / LINK).readlink()) == "b2"
    sink.flip("b2", "b1")
    root.rename(tmp_path / "moved")
    assert visible(tmp_path / "moved" / LINK / FAMILIES) == as_files([OLD])
    assert sorted(path.name for path in (tmp_path / "moved").iterdir()) == ["b1", "b2", LINK]


def test_link_is_no_build(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    sink.flip(None, "b1")
    with pytest.raises(BuildMissing, match="symbolic link"):
        sink.open(LINK)
    with pytest.raises(BuildMissing, match="symbolic link"):
        sink.flip("b1", LINK)
    sink.drop(LINK)
    assert (tmp_path / "jsonl" / LINK / MARKER).exists()


def test_dropping_the_live_build_removes_the_link(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    sink.create(Marker("home", "b2", 1)).close()
    sink.flip(None, "b2")
    sink.drop("b1")
    assert str((tmp_path / "jsonl" / LINK).readlink()) == "b2"
    sink.drop("b2")
    assert list((tmp_path / "jsonl").iterdir()) == []
    JsonlSink(tmp_path / "nowhere").drop("b1")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("what", ["file", "folder", "elsewhere", "dangling"])
def test_other_file_with_the_links_name_is_not_overwritten(
    sink: JsonlSink, build: JsonlBuild, tmp_path: Path, what: str
) -> None:
    link = tmp_path / "jsonl" / LINK
    if what == "file":
        link.write_text("precious")
    elif what == "folder":
        link.mkdir()
    else:
        link.symlink_to(tmp_path if what == "elsewhere" else "b0")
    before = os.lstat(link)
    with pytest.raises(Refused, match=r"correct the link|move the conflicting"):
        sink.flip(None, "b1")
    assert os.lstat(link).st_ino == before.st_ino


def test_removed_link_is_created_again(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    sink.create(Marker("home", "b2", 1)).close()
    for old, new in (("b1", "b1"), ("b1", "b2"), (None, "b1")):
        sink.flip(old, new)
        assert sink.shown() == Marker("home", new, 1)
        (tmp_path / "jsonl" / LINK).unlink()
        assert sink.shown() is None
