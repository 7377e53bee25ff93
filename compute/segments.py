"""TEMPORARY until chunkbus.storage exists."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class _Entry:
    name: str
    size: int


@dataclass(frozen=True)
class FolderStorage:
    path: Path

    def entries(self, folder: str) -> Iterable[_Entry]:
        base = self.path / folder
        if base.is_dir():
            for file in sorted(base.iterdir()):
                if not file.name.startswith("."):
                    yield _Entry(file.name, file.stat().st_size)

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        part = self.path / f".{name}.{os.getpid()}"
        part.write_bytes(data)
        part.rename(self.path / name)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)


def open_storage(place: str) -> FolderStorage:
    return FolderStorage(Path(place))
