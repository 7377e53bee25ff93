"""A workbench for ingestion: sources, a bus, a ledger."""

import gc
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.findings import Finding
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.ledger import Ledger
from chunksink.chunkbus.manifest import Manifest
from chunksink.chunkbus.reader import read_manifest, read_partition
from chunksink.chunkbus.validate import Validation
from chunksink.producers.ingest import Options, ingest
from chunksink.producers.kinds import KINDS, Chunker, Kind
from chunksink.producers.memory import Memory
from chunksink.producers.report import IngestReport

NOW = "2026-03-01T12:00:00.000000Z"
LATER = "2026-03-02T12:00:00.000000Z"


def growth(peaks: Callable[[Path, int], dict[str, int]], folder: Path, few: int, many: int) -> dict[str, float]:
    """By which each of these peaks grows for one more of what is counted: `peaks` measures them for a number of it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "chunksink.producers.standing.Draft.LISTED", 10
        )  # sources that a manifest names: else a thousand
        patched.setattr("chunksink.producers.reading._MOST_NAMED", 10)  # what is told of one file: else a thousand
        peaks(folder / "warm", 5)  # what is loaded once
        low, high = peaks(folder / "few", few), peaks(folder / "many", many)
    return {name: (high[name] - low[name]) / (many - few) for name in low}


class Bench:
    """A folder of sources, a bus and a ledger, and short ways to look at them."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.docs = home / "docs"
        self.docs.mkdir()
        self.root = BusRoot(home / "bus")
        self.ledger = Ledger(home / "ledger.db")
        self.memory = Memory(home / "ingest.db", self.root)
        self.ahead_ns = 0
        """So much later than it is do runs believe that they look at files: times of just now prove nothing."""

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def ingest(self, paths: list[Path] | None = None, *, chunker: Chunker | None = None, **said: Any) -> IngestReport:
        """Markdown into the partition `markdown`, if nothing else is said."""
        options = {field.name: said.pop(field.name) for field in fields(Options) if field.name in said}
        options = {"kind": "markdown", "to": "markdown", "base": self.docs, **options}
        if chunker is not None:
            said["kinds"] = KINDS | {"markdown": Kind("markdown", (".md", ".markdown"), chunker=lambda: chunker)}
        said = {"now": NOW, "run_id": "run", "clock": lambda: time.time_ns() + self.ahead_ns, **said}
        paths = [self.docs] if paths is None else paths
        return ingest(paths, self.root, self.ledger, self.memory, Options(**options), **said)

    def peak_of(self, documents: int, **said: Any) -> int:
        """The most bytes that Python held at once in an ingest, after which there are so many documents."""
        gc.collect()
        gc.freeze()  # the more there is, the later Python looks for garbage
        tracemalloc.start(1)
        try:
            assert self.ingest(**said).documents == documents
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            gc.unfreeze()

    def forget(self) -> None:
        """As somebody does who removes the file."""
        (self._home / "ingest.db").unlink()
        self.memory = Memory(self._home / "ingest.db", self.root)

    def grow_old(self) -> None:
        """From now on, what was written until now was not written just now."""
        self.ahead_ns += 10_000_000_000

    def records(self, key: str = "markdown") -> list[Record]:
        return [record for _, record in read_partition(self.root, key)]

    def texts(self, uri: str, key: str = "markdown") -> list[str]:
        return [record["text"] for record in self.records(key) if record["provenance"].get("source_uri") == uri]

    def manifest(self, key: str = "markdown") -> Manifest:
        return read_manifest(self.root, key)

    def attempts(self, **wanted: Any) -> list[dict[str, Any]]:
        return list(self.ledger.attempts(**wanted))

    def bytes_on_bus(self) -> dict[str, bytes]:
        files = [path for path in self.root.path.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return {str(path.relative_to(self.root.path)): path.read_bytes() for path in files}

    def assert_valid(self) -> None:
        found: list[Finding] = []
        Validation(self.root, require_source_checksum=True, on_finding=found.append).run()
        assert found == []
