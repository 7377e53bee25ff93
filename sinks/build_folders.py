"""The folders of embedded sinks: one per build, `<root>/<build_id>/`, removed as a whole.

A symbolic link is never a build: it is not listed, opened or removed.
"""

import re
import shutil
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from chunksink.chunkbus.storage import make_durable
from chunksink.sinks.errors import BuildMissing, on_failure

_BUILD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_HIDDEN = "."  # prefix of folders that are half created or half removed


def check_build_id(build_id: str) -> str:
    """Raise `ValueError` if the id could be a path: ids become names of folders and collections."""
    if not _BUILD_ID.fullmatch(build_id):
        raise ValueError(
            f"invalid build id {build_id!r}: use 1 to 64 of A-Z a-z 0-9 _ -, and start with a letter or digit"
        )
    return build_id


def folder(root: Path, build_id: str) -> Path:
    return root / check_build_id(build_id)


def create(root: Path, build_id: str, fill: Callable[[Path], object]) -> None:
    """Create a build unless it exists. It is filled under a hidden name, then renamed: no partial build is visible."""
    path = folder(root, build_id)
    if not path.is_dir():
        hidden = _hidden(root, build_id)
        hidden.mkdir(mode=0o700, parents=True)  # private, because it will contain texts
        with on_failure(partial(shutil.rmtree, hidden, ignore_errors=True)):  # `remove` deletes what a kill leaves
            fill(hidden)
            hidden.rename(path)
    make_durable(root)  # for an existing build too: an earlier call may have failed here


def existing_folder(root: Path, build_id: str) -> Path:
    path = folder(root, build_id)
    if path.is_symlink():
        raise BuildMissing(f"{path} is a symbolic link, not a build", "use the id of the build it points to")
    if not path.is_dir():
        raise BuildMissing(f"no build at {path}")
    return path


def build_ids(root: Path) -> list[str]:
    if not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if _is_folder(path) and not path.name.startswith(_HIDDEN))


def remove(root: Path, build_id: str) -> None:
    """Remove a build. It is renamed to a hidden name first, so that a kill leaves no partial build visible."""
    path = folder(root, build_id)
    if _is_folder(path):
        path.rename(_hidden(root, build_id))
    for rest in root.glob(f"{_HIDDEN}{build_id}.*"):
        shutil.rmtree(rest, ignore_errors=True)  # never follows symbolic links


def _hidden(root: Path, build_id: str) -> Path:
    return root / f"{_HIDDEN}{build_id}.{uuid.uuid4().hex}"


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
