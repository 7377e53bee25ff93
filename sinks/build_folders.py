"""Where embedded sinks keep their builds: one folder a build, `<root>/<build_id>/`, made and removed as a whole.

A link is no build, wherever it leads: neither listed, nor opened, nor removed.
"""

import os
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from chunksink.sinks.errors import MAKE_ANEW, BuildMissing

_BUILD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_HIDDEN = "."  # half made, half removed: no build


def check_build_id(build_id: str) -> str:
    """Build ids become folders and collections: they may not be paths."""
    if not _BUILD_ID.fullmatch(build_id):
        raise ValueError(
            f"{build_id!r} cannot name a build: 1 to 64 of A-Z a-z 0-9 _ -, beginning with one of A-Z a-z 0-9"
        )
    return build_id


def folder(root: Path, build_id: str) -> Path:
    return root / check_build_id(build_id)


def make(root: Path, build_id: str, fill: Callable[[Path], object]) -> None:
    """Make a build that is not there: filled aside and renamed when it is whole, so that no half build has a name."""
    path = folder(root, build_id)
    if not path.is_dir():
        aside = _hidden(root, build_id)
        aside.mkdir(mode=0o700, parents=True)  # it holds texts, also where the home may be read by others
        try:
            fill(aside)
            aside.rename(path)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)  # what a kill leaves goes with `remove`
            raise
    sync(root)  # also of one that is there: the call that made it may have failed just here


def existing(root: Path, build_id: str) -> Path:
    path = folder(root, build_id)
    if path.is_symlink():
        raise BuildMissing(f"{path} is a link, not a build: name the build that it leads to")
    if not path.is_dir():
        raise BuildMissing(f"there is no build at {path}: {MAKE_ANEW}")
    return path


def listing(root: Path) -> list[str]:
    if not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if _is_folder(path) and not path.name.startswith(_HIDDEN))


def remove(root: Path, build_id: str) -> None:
    """Hide it under another name first, so that a kill in between leaves no half build under its own."""
    path = folder(root, build_id)
    if _is_folder(path):
        path.rename(_hidden(root, build_id))
    for rest in root.glob(f"{_HIDDEN}{build_id}.*"):
        shutil.rmtree(rest, ignore_errors=True)  # refuses links, and follows none


def sync(folder: Path) -> None:
    """Make what was renamed and removed there survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _hidden(root: Path, build_id: str) -> Path:
    return root / f"{_HIDDEN}{build_id}.{uuid.uuid4().hex}"


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
