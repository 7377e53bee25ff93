"""The embedded keyword sink: SQLite FTS5, one file per build, no server. Readers continue during writes (WAL)."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

from chunksink.sinks import build_folders
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing
from chunksink.sinks.fts import schema
from chunksink.sinks.fts.build import FtsBuild
from chunksink.sinks.fts.errors import translate_errors
from chunksink.sinks.fts.reader import FtsReader

FILE = "fts.db"


class FtsSink:
    """Keyword builds in a folder."""

    name = "fts"
    wants_vectors = False

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self, marker: Marker, dimensions: int | None = None) -> "FtsBuild":
        try:
            self.open(marker.build_id).close()
        except BuildMissing:
            build_folders.remove(self._root, marker.build_id)  # its file is missing, or has another layout
        build_folders.create(self._root, marker.build_id, partial(_create_file, marker))
        return self.open(marker.build_id)

    def open(self, build_id: str) -> "FtsBuild":
        return FtsBuild(build_folders.existing_folder(self._root, build_id) / FILE)

    def reader(self, build_id: str) -> FtsReader:
        return FtsReader(build_folders.existing_folder(self._root, build_id) / FILE)

    def builds(self) -> list[str]:
        return build_folders.build_ids(self._root)

    def flip(self, old: str | None, new: str) -> None:
        if new not in self.builds():
            raise BuildMissing(f"no keyword build {new} in {self._root}")

    def drop(self, build_id: str) -> None:
        build_folders.remove(self._root, build_id)

    def address(self, build_id: str) -> dict[str, str]:
        """An SQLite file with the table `documents`."""
        return {"path": str(build_folders.folder(self._root, build_id).absolute() / FILE)}

    def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def close(self) -> None:
        pass


def _create_file(marker: Marker, folder: Path) -> None:
    with translate_errors(folder):
        schema.create_tables(folder / FILE)
    with closing(FtsBuild(folder / FILE)) as build:
        build.sign(marker)
