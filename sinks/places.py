"""Where embedded sinks keep their builds: one folder a build, `<root>/<build_id>/`, removed as a whole."""

import re
import shutil
import uuid
from pathlib import Path

from sinks.errors import BuildMissing

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


def existing(root: Path, build_id: str) -> Path:
    path = folder(root, build_id)
    if not path.is_dir():
        raise BuildMissing(f"there is no build at {path}: run a rebuild")
    return path


def listing(root: Path) -> list[str]:
    if not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(_HIDDEN))


def remove(root: Path, build_id: str) -> None:
    """Hide it under another name first, so that a kill in between leaves no half build under its own."""
    path = folder(root, build_id)
    if path.is_dir():
        path.rename(root / f"{_HIDDEN}{build_id}.{uuid.uuid4().hex}")
    for rest in root.glob(f"{_HIDDEN}{build_id}.*"):
        shutil.rmtree(rest, ignore_errors=True)
