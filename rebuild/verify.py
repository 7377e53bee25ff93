"""Verify: every live build is read through its own interface and compared with what the bus says now.

Repair is the sync that follows: the scan's receipts on one side, the catalog on the other.
"""

from dataclasses import dataclass
from typing import Any

from rebuild.builds import opened
from rebuild.deep import Lookup
from rebuild.receipts import Receipts
from rebuild.scan import CHANGED, EXTRA, MISSING, Scan
from rebuild.state import Generation
from rebuild.work import Work
from sinks.errors import SinkError


@dataclass(frozen=True)
class SinkVerified:
    """What one sink holds, and the ids of documents that are not as they should be."""

    families: int
    chunks: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    changed: tuple[str, ...]
    refused: tuple[str, ...]
    digest: str

    @property
    def ok(self) -> bool:
        return not (self.missing or self.extra or self.changed)


@dataclass(frozen=True)
class Verified:
    """All sinks of the live generation; `failed` says why some could not be read."""

    sinks: dict[str, SinkVerified]
    failed: dict[str, SinkError]

    @property
    def ok(self) -> bool:
        return not self.failed and all(sink.ok for sink in self.sinks.values())

    def numbers(self) -> dict[str, dict[str, Any]]:
        """For the record of the run: how much was wrong, not what."""
        return {
            name: {
                "families": sink.families,
                "chunks": sink.chunks,
                "missing": len(sink.missing),
                "extra": len(sink.extra),
                "changed": len(sink.changed),
                "digest": sink.digest,
            }
            for name, sink in self.sinks.items()
        }


def verify_live(work: Work, live: Generation, cached: Lookup | None = None) -> Verified:
    """The caller holds the writer's lock and has refreshed the catalog. With `cached` vectors are compared too."""
    failed: dict[str, SinkError] = {}
    found: dict[str, SinkVerified] = {}
    with opened(work, live, failed, make=False) as targets:
        for target in targets:
            scan = Scan(work.state.db, target.build, target.build_id, work.records)
            try:
                total = Receipts(work.state.db, target.build_id).documents()
                with work.stage(f"verify {target.sink}", total, "chunks") as bar:
                    scan.run(
                        bar.advance,
                        removals=work.catalog.is_whole(),
                        cached=cached if target.holds_vectors else None,
                    )
            except SinkError as error:
                failed[target.sink] = error
                continue
            held = scan.held(live.model_fingerprint if target.holds_vectors else None)
            letters = Receipts(work.state.db, target.build_id).dead_letters()
            found[target.sink] = SinkVerified(
                held.families,
                held.chunks,
                tuple(scan.drift(MISSING)),
                tuple(scan.drift(EXTRA)),
                tuple(scan.drift(CHANGED)),
                tuple(letter.id for letter in letters),
                held.digest,
            )
    return Verified(found, failed)
