"""A workbench for ingestion: sources, a bus, a ledger."""

from pathlib import Path
from typing import Any

from chunkbus.chunk import Record
from chunkbus.findings import Finding
from chunkbus.layout import BusRoot
from chunkbus.ledger import Ledger
from chunkbus.manifest import Manifest
from chunkbus.reader import read_manifest, read_partition
from chunkbus.validate import Validation
from producers.ingest import ingest_markdown
from producers.report import IngestReport

NOW = "2026-03-01T12:00:00.000000Z"
LATER = "2026-03-02T12:00:00.000000Z"


class Bench:
    """A folder of sources, a bus and a ledger, and short ways to look at them."""

    def __init__(self, home: Path) -> None:
        self.docs = home / "docs"
        self.docs.mkdir()
        self.root = BusRoot(home / "bus")
        self.ledger = Ledger(home / "ledger.db")

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def ingest(self, **options: Any) -> IngestReport:
        options = {"now": NOW, "run_id": "run", "base": self.docs, **options}
        return ingest_markdown(options.pop("paths", [self.docs]), self.root, self.ledger, **options)

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
