"""The link to the live build: changed in one step, and no build itself."""

import os
from pathlib import Path

import pytest

from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing, Refused
from chunksink.sinks.jsonl import JsonlBuild, JsonlSink
from chunksink.sinks.jsonl.build import FAMILIES, MARKER
from chunksink.sinks.jsonl.sink import LINK
from tests.support.jsonl import OLD, as_files, fill, visible


def test_the_link_leads_to_the_live_build(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
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


def test_the_link_is_no_build(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be called 'current'"):
        sink.create(Marker("home", LINK, 1))
    sink.flip(None, "b1")
    with pytest.raises(BuildMissing, match="a link"):
        sink.open(LINK)
    with pytest.raises(BuildMissing, match="a link"):
        sink.flip("b1", LINK)
    sink.drop(LINK)
    assert (tmp_path / "jsonl" / LINK / MARKER).exists()


def test_dropping_the_live_build_takes_the_link_along(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    sink.create(Marker("home", "b2", 1)).close()
    sink.flip(None, "b2")
    sink.drop("b1")
    assert str((tmp_path / "jsonl" / LINK).readlink()) == "b2"
    sink.drop("b2")
    assert list((tmp_path / "jsonl").iterdir()) == []
    JsonlSink(tmp_path / "nowhere").drop("b1")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("what", ["file", "folder", "elsewhere", "dangling"])
def test_what_bears_the_links_name_is_not_overwritten(
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
    with pytest.raises(Refused, match=r"correct the link|move away"):
        sink.flip(None, "b1")
    assert os.lstat(link).st_ino == before.st_ino


def test_a_link_that_was_taken_away_is_made_again(sink: JsonlSink, build: JsonlBuild, tmp_path: Path) -> None:
    sink.create(Marker("home", "b2", 1)).close()
    for old, new in (("b1", "b1"), ("b1", "b2"), (None, "b1")):
        sink.flip(old, new)
        assert sink.shown() == Marker("home", new, 1)
        (tmp_path / "jsonl" / LINK).unlink()
        assert sink.shown() is None
