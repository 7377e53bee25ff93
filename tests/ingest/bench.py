"""Documents, a bus and a home for the tests of an ingest, and the content of the bus in a comparable form."""

import json
import shutil
from pathlib import Path
from typing import Any

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.findings import Finding
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import Manifest
from chunksink.chunkbus.reader import read_manifest, read_partition
from chunksink.chunkbus.validation import Validation
from chunksink.ingest.options import Options
from chunksink.ingest.report import IngestReport
from chunksink.ingest.run import Workers, ingest
from chunksink.ingest.store import IngestStore


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.docs = folder / "docs"
        self.bus = FolderRoot(folder / "bus")
        self.home = folder / "home"

    def write(self, name: str, text: str | bytes | Any) -> Path:
        """A file below `docs`: text, bytes, or a value as JSON (of a list, its items on lines for `.jsonl`)."""
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, str):
            text = text.encode()
        elif not isinstance(text, bytes):
            lines = text if name.endswith(".jsonl") else [text]
            text = b"\n".join(map(orjson.dumps, lines)) + b"\n"
        path.write_bytes(text)
        return path

    def remove(self, name: str) -> None:
        path = self.docs / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    def ingest(self, *paths: Path | str, workers: Workers | None = None, **options: Any) -> IngestReport:
        """Ingests `docs`, or these paths below it, and checks that the bus is valid."""
        chosen = [self.docs / path for path in paths] or [self.docs]
        more = {} if workers is None else {"workers": workers}
        report = ingest(chosen, self.bus, self.home, Options(**options), **more)
        self.check()
        return report

    def check(self) -> None:
        if not self.bus.exists:  # a rule has no partition without a source
            return
        findings: list[Finding] = []
        assert Validation(self.bus, on_finding=findings.append).run().ok, findings

    def fresh(self, name: str = "fresh") -> "Bench":
        """Another bus and home for the same documents."""
        other = Bench(self.folder / name)
        other.docs = self.docs
        return other

    def records(self, key: str | None = None) -> list[Record]:
        keys = [key] if key else self.bus.partition_keys()
        return [record for one in keys for _, record in read_partition(self.bus, one)]

    def texts(self) -> dict[str, list[str]]:
        """The texts of each source, by its name, in order."""
        found: dict[str, list[str]] = {}
        for record in self.records():
            name = record["provenance"].get("source_uri") or record["provenance"]["source_ref"]
            found.setdefault(name, []).append(record["text"])
        return found

    def names(self) -> set[str]:
        return set(self.texts())

    def content(self) -> dict[str, list[Record]]:
        """The content of the partitions without times and run ids."""
        return {key: [_timeless(record) for record in self.records(key)] for key in self.bus.partition_keys()}

    def manifest(self, key: str = "documents") -> Manifest:
        return read_manifest(self.bus, key)

    def links(self, key: str = "documents") -> list[dict[str, Any]]:
        file = self.bus.path / "links" / f"{key}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]

    def ledger(self) -> list[dict[str, Any]]:
        """Oldest first."""
        with IngestStore(self.home) as store:
            return list(store.attempts())[::-1]

    def files(self) -> dict[str, bytes]:
        """Every file of the bus: equal before and after a run that writes nothing."""
        return {str(path): path.read_bytes() for path in sorted(self.bus.path.rglob("*")) if path.is_file()}


def _timeless(record: Record) -> Record:
    rest = {name: value for name, value in record.items() if name not in ("created_at", "producer")}
    hashes = {name: value for name, value in rest.get("hashes", {}).items() if name != "chunk_object_hash"}
    return {**rest, "hashes": hashes}
