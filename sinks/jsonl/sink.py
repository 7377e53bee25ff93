"""The builds below a folder, and the link to the live one."""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from chunksink.sinks import build_folders
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildBroken, Refused
from chunksink.sinks.jsonl.build import FAMILIES, JsonlBuild
from chunksink.sinks.jsonl.errors import translated

LINK = "current"


class JsonlSink:
    name = "jsonl"
    wants_vectors = False

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._link = self._root / LINK

    def create(self, marker: Marker, dimensions: int | None = None) -> "JsonlBuild":
        with translated(self._root):
            build_folders.make(self._root, marker.build_id, partial(_lay_out, marker))
        return self.open(marker.build_id)

    def open(self, build_id: str) -> "JsonlBuild":
        with translated(self._root):
            build = JsonlBuild(build_folders.existing(self._root, build_id))
            build.require()
        return build

    def builds(self) -> list[str]:
        with translated(self._root):
            return build_folders.listing(self._root)

    def flip(self, old: str | None, new: str) -> None:
        self.open(new)
        with translated(self._root):
            if (live := self._live()) not in (None, old, new):  # where there is no link, none is taken from anybody
                raise Refused(f"{self._link} leads to {live}, not to {old}: look at the pointer, or correct the link")
            if live != new:
                aside = self._root / f".{LINK}"
                aside.unlink(missing_ok=True)  # of a kill in between
                aside.symlink_to(new)  # relative: the folder may be moved
                aside.replace(self._link)
            build_folders.sync(self._root)

    def shown(self) -> Marker | None:
        """Whose build the link leads to; nobody's where that cannot be read any more."""
        with translated(self._root):
            live = self._live()
            if live is None or live not in build_folders.listing(self._root):
                return None
            with suppress(BuildBroken):
                return self.open(live).marker()
            return None

    def drop(self, build_id: str) -> None:
        with translated(self._root):
            if self._root.is_dir():
                if self._live() == build_id:
                    self._link.unlink()
                build_folders.remove(self._root, build_id)
                build_folders.sync(self._root)

    def address(self, build_id: str) -> dict[str, str]:
        """Where other programs find a build, and the link that leads to the live one."""
        return {"folder": str(build_folders.folder(self._root, build_id)), "link": str(self._link)}

    def close(self) -> None:
        pass

    def _live(self) -> str | None:
        return str(self._link.readlink()) if os.path.lexists(self._link) else None


def _lay_out(marker: Marker, folder: Path) -> None:
    (folder / FAMILIES).mkdir()
    JsonlBuild(folder).sign(marker)
