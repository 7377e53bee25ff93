"""Folders with which many tests start. They are built once per process and then copied."""

import shutil
from collections.abc import Callable
from pathlib import Path


class Prepared:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def into(self, folder: Path, name: str, build: Callable[[], object]) -> None:
        """Fill this folder with `build` the first time, and with a copy of the result later."""
        kept = self._folder / name
        if kept.exists():
            shutil.copytree(kept, folder, symlinks=True, dirs_exist_ok=True)
        else:
            build()
            shutil.copytree(folder, kept, symlinks=True)
