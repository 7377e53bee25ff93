"""Folders of builds: names that stay inside, removal that leaves no half."""

from pathlib import Path

import pytest

from sinks import places
from sinks.errors import BuildMissing


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc", "a\0b", ".hidden", "x" * 65, "é", "a\n", "-x", "C:"]
)
def test_a_build_id_is_never_a_path(tmp_path: Path, name: str) -> None:
    for call in (places.folder, places.existing, places.remove):
        with pytest.raises(ValueError, match="cannot name a build"):
            call(tmp_path, name)


def test_listing_and_removal(tmp_path: Path) -> None:
    assert places.listing(tmp_path / "not there") == []
    for name in ("b2", "b1", ".b3.half-made"):
        (tmp_path / name).mkdir()
    (tmp_path / "b1" / "file").write_text("x")
    (tmp_path / "a file").write_text("x")
    assert places.listing(tmp_path) == ["b1", "b2"]
    places.remove(tmp_path, "b1")
    places.remove(tmp_path, "b1")
    assert places.listing(tmp_path) == ["b2"]
    assert not list(tmp_path.glob(".b1*"))
    with pytest.raises(BuildMissing, match="rebuild"):
        places.existing(tmp_path, "b1")


def test_what_a_kill_left_of_a_removal_goes_with_the_next(tmp_path: Path) -> None:
    (tmp_path / ".b1.0123").mkdir()
    places.remove(tmp_path, "b1")
    assert list(tmp_path.iterdir()) == []
