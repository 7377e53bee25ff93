"""What an ingest reports: each source as it is done, and the whole at the end."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What happened to one source. LEFT_OUT: not a source; counted, and no failure."""

    PROCESSED = "processed"
    UNCHANGED = "unchanged"
    EMPTY = "empty"
    FAILED = "failed"
    LEFT_OUT = "left_out"


@dataclass(frozen=True)
class Progress:
    """One source is done: how many are, of how many, and what happened to it."""

    done: int
    total: int
    source_uri: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Failure:
    """A source, or the record on a line of it, that did not become chunks."""

    source_uri: str
    code: str
    reason: str
    line: int | None = None


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did.

    `partition_key` is the partition or rule that was asked for; `partitions` are those that were written. `documents`
    and `chunks` are what all partitions in reach hold now; `carried_over` of the families belong to no source of this
    run; `pruned` were removed. `links` counts links in the artifacts that were written. `left_out` counts by code what
    did not become chunks or became one otherwise than expected; `left_out_from` names the first sources of each code.
    `kinds` counts files by format; `other_kinds` counts by suffix the files that no format reads. `missing` sources
    are not found any more and keep their chunks; `missing_from` names the first of them. `gone` counts by folder the
    sources of registered folders that do not exist any more. `set_aside` are databases of an earlier form.
    """

    partition_key: str
    run_id: str
    written: bool
    partitions: tuple[str, ...]
    sources: int
    processed: int
    unchanged: int
    empty: int
    carried_over: int
    pruned: int
    documents: int
    chunks: int
    links: int
    left_out: Mapping[str, int]
    left_out_from: Mapping[str, tuple[str, ...]]
    failed: int
    failures: tuple[Failure, ...]
    kinds: Mapping[str, int]
    other_kinds: Mapping[str, int]
    missing: int
    missing_from: tuple[str, ...]
    gone: Mapping[str, int]
    set_aside: tuple[str, ...] = ()

    def __repr__(self) -> str:
        counts = f"{self.processed:,} new or changed, {self.unchanged:,} unchanged, {self.failed:,} failed"
        return f"<IngestReport {self.partition_key}: {counts}>"
