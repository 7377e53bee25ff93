"""Builds below a folder, and a symbolic link to the live one."""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from chunksink.chunkbus.storage import make_durable
from chunksink.sinks import build_folders
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildBroken, Refused
from chunksink.sinks.jsonl.build import FAMILIES, JsonlBuild
from chunksink.sinks.jsonl.errors import translate_errors

LINK = "current"


class JsonlSink:
    name = "jsonl"
    wants_vectors = False

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._link = self._root / LINK

    def create(self, marker: Marker, dimensions: int | None = None) -> "JsonlBuild":
        with translate_errors(self._root):
            build_folders.create(self._root, marker.build_id, partial(_create_files, marker))
        return self.open(marker.build_id)

    def open(self, build_id: str) -> "JsonlBuild":
        with translate_errors(self._root):
            build = JsonlBuild(build_folders.existing_folder(self._root, build_id))
            build.require()
        return build

    def builds(self) -> list[str]:
        with translate_errors(self._root):
            return build_folders.build_ids(self._root)

    def flip(self, old: str | None, new: str) -> None:
        self.open(new)
        with translate_errors(self._root):
            if (live := self._live()) not in (None, old, new):
                raise Refused(f"{self._link} points to {live} (expected: {old or 'no link'}): correct the link")
            if live != new:
                temporary = self._root / f".{LINK}"
                temporary.unlink(missing_ok=True)  # left by a kill
                temporary.symlink_to(new)  # relative, so that the folder can be moved
                temporary.replace(self._link)
            make_durable(self._root)

    def shown(self) -> Marker | None:
        """The marker of the build that the link points to; None if that cannot be read."""
        with translate_errors(self._root):
            live = self._live()
            if live is None or live not in build_folders.build_ids(self._root):
                return None
            with suppress(BuildBroken):
                return self.open(live).marker()
            return None

    def drop(self, build_id: str) -> None:
        with translate_errors(self._root):
            if self._root.is_dir():
                if self._live() == build_id:
                    self._link.unlink()
                build_folders.remove(self._root, build_id)
                make_durable(self._root)

    def address(self, build_id: str) -> dict[str, str]:
        """The folder of the build, and the link to the live one."""
        return {"folder": str(build_folders.folder(self._root, build_id)), "link": str(self._link)}

    def close(self) -> None:
        pass

    def _live(self) -> str | None:
        return str(self._link.readlink()) if os.path.lexists(self._link) else None


def _create_files(marker: Marker, folder: Path) -> None:
    (folder / FAMILIES).mkdir()
    JsonlBuild(folder).sign(marker)
