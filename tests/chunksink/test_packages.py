"""Our packages have plain names; where a program hides one of them it is told which, by what, and what to do."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from chunksink.packages import NAMES
from tests.conftest import ROOT

OPEN = "import chunksink; chunksink.open(home='h'); print('opened')"


def ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("hiding", ["settings.py", "search/__init__.py", "sinks/other.py"])
@pytest.mark.parametrize("way", [("-c", OPEN), ("-m", "chunksink", "status")], ids=["open", "module"])
def test_what_hides_a_package_is_named(hiding: str, way: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / hiding).parent.mkdir(exist_ok=True)
    (tmp_path / hiding).touch()
    ended = ran(tmp_path, *way)
    name = Path(hiding).parts[0].removesuffix(".py")
    if hiding == "sinks/other.py":  # a folder that is no package gives way to one that is
        assert "ImportError" not in ended.stderr
        return
    assert ended.returncode == 1
    told = ended.stderr.splitlines()[-1]
    assert told.startswith(f"ImportError: chunksink needs its package `{name}`, and Python finds ")
    assert str(tmp_path / hiding) in told


def test_nothing_hides_one(tmp_path: Path) -> None:
    assert ran(tmp_path, "-c", OPEN).stdout == "opened\n"


def test_all_packages_are_known_and_say_their_types() -> None:
    found = {folder.name for folder in ROOT.iterdir() if (folder / "py.typed").exists()}
    assert found == {*NAMES, "chunksink"}
    assert all(find_spec(name) is not None for name in NAMES)
