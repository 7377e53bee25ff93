"""What an ingest tells: of each source as it goes, and of the whole at the end. Data only."""

from dataclasses import dataclass
from enum import StrEnum

from producers.sources import Failure


class Outcome(StrEnum):
    """How it went with one source."""

    PROCESSED = "processed"
    UNCHANGED = "unchanged"
    EMPTY = "empty"
    FAILED = "failed"


@dataclass(frozen=True)
class Progress:
    """One source is done: its number, of how many, and how it went."""

    done: int
    total: int
    source_uri: str
    outcome: Outcome


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did. `written` is False where the partition already was what it should be.

    `carried_over` families belong to no source of this run; `documents` and `chunks` are the partition's;
    `links` counts those written to the link artifact, 0 where it stayed as it was.
    """

    partition_key: str
    run_id: str
    written: bool
    sources: int
    processed: int
    unchanged: int
    empty: int
    carried_over: int
    documents: int
    chunks: int
    links: int
    failures: tuple[Failure, ...]
