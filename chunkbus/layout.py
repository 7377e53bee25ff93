"""Names of the files below a bus root. Nothing here opens a file.

<root>/canonical/<key>.jsonl               the chunks of a partition
<root>/canonical/.<key>.<sha256>.jsonl     new chunks that wait for their manifest (see `writer`)
<root>/manifest/<key>.manifest.json        its manifest; the rename onto this name is the commit
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chunksink.chunkbus.errors import InvalidPartitionKey, NotABusRoot

PARTITION_KEY = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_KEY = re.compile(PARTITION_KEY)
_CHUNKS = ".jsonl"
_MANIFEST = ".manifest.json"


def is_partition_key(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def check_partition_key(key: str) -> str:
    if not is_partition_key(key):
        raise InvalidPartitionKey(
            f"{key!r} cannot name a partition: use 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
        )
    return key


@dataclass(frozen=True)
class BusRoot:
    """A folder for canonical partitions."""

    path: Path

    @property
    def canonical(self) -> Path:
        return self.path / "canonical"

    @property
    def manifests(self) -> Path:
        return self.path / "manifest"

    def chunks_file(self, key: str) -> Path:
        return self.canonical / f"{check_partition_key(key)}{_CHUNKS}"

    def waiting_file(self, key: str, checksum_hex: str) -> Path:
        return self.canonical / f".{check_partition_key(key)}.{checksum_hex}{_CHUNKS}"

    def manifest_file(self, key: str) -> Path:
        return self.manifests / f"{check_partition_key(key)}{_MANIFEST}"

    @property
    def is_there(self) -> bool:
        return self.canonical.is_dir() or self.manifests.is_dir()

    def require(self) -> "BusRoot":
        """Returns this root, or raises NotABusRoot if it does not exist."""
        if not self.is_there:
            why = "it contains neither canonical/ nor manifest/" if self.path.is_dir() else "there is no such folder"
            raise NotABusRoot(
                f"no chunks at {self.path}: {why}. Name the folder of your chunks with --chunks DIR, or make "
                "chunks from your documents with `chunksink ingest FOLDER`"
            )
        return self

    def partition_keys(self) -> list[str]:
        """The keys of all chunks files and manifests, sorted."""
        keys = {name.removesuffix(_CHUNKS) for name in _names(self.canonical, _CHUNKS)}
        keys |= {name.removesuffix(_MANIFEST) for name in _names(self.manifests, _MANIFEST)}
        return sorted(key for key in keys if is_partition_key(key))

    def size_of(self, key: str) -> int:
        """Bytes of the chunks file, for progress; 0 if there is none."""
        file = self.chunks_file(key)
        return file.stat().st_size if file.is_file() else 0

    def misnamed_files(self) -> list[str]:
        """Printable names of chunks files and manifests without a valid key, which nothing reads."""
        return sorted(
            _printable(folder, name)
            for folder, suffix in self._folders()
            for name in _names(folder, suffix)
            if not is_partition_key(name.removesuffix(suffix))
        )

    def stray_files(self) -> list[str]:
        """Printable names of other files and folders in `canonical/` and `manifest/`, which nothing reads."""
        return sorted(
            _printable(folder, name)
            for folder, suffix in self._folders()
            for name in _names(folder)
            if not name.endswith(suffix)
        )

    def _folders(self) -> tuple[tuple[Path, str], ...]:
        return ((self.canonical, _CHUNKS), (self.manifests, _MANIFEST))


def _names(folder: Path, suffix: str = "") -> Iterator[str]:
    """Names with the suffix. Names with a leading dot are waiting or unfinished files."""
    if folder.is_dir():
        for entry in folder.iterdir():
            if entry.name.endswith(suffix) and not entry.name.startswith("."):
                yield entry.name


def _printable(folder: Path, name: str) -> str:
    return f"{folder.name}/{name if name.isprintable() else ascii(name)[1:-1]}"
