"""Folders that many tests start from: built once per process, then copied."""

import shutil
from collections.abc import Callable
from pathlib import Path


class Prepared:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def into(self, folder: Path, name: str, build: Callable[[], object]) -> None:
        """The content that `build` makes of this folder, the first time; later a copy of it."""
        kept = self._folder / name
        if kept.exists():
            shutil.copytree(kept, folder, symlinks=True, dirs_exist_ok=True)
        else:
            build()
            shutil.copytree(folder, kept, symlinks=True)
