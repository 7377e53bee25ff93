"""What an ingest tells: of each source as it goes, and of the whole at the end. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from chunksink.producers.sources import Failure


class Outcome(StrEnum):
    """How it went with one source. What was left out is none: it lies among them and is told."""

    PROCESSED = "processed"
    UNCHANGED = "unchanged"
    EMPTY = "empty"
    FAILED = "failed"
    LEFT_OUT = "left_out"


@dataclass(frozen=True)
class Progress:
    """One source is done: its number, of how many, and how it went."""

    done: int
    total: int
    source_uri: str
    outcome: Outcome


@dataclass(frozen=True)
class LeftOutFrom:
    """A source, all of which or a part of which was left out for this reason."""

    code: str
    source_uri: str


@dataclass(frozen=True)
class IngestReport:
    """What an ingest did. `written` is False where the partitions already were what they should be.

    `partition_key` is the partition or rule that was asked for, `partitions` those that were written. `carried_over`
    families belong to no source of this run, `pruned` ones were withdrawn, asked for or since their source says them no
    more; `documents` and `chunks` are those of all partitions that were looked at; `links` counts those written to link
    artifacts, 0 where they stayed as they were. `left_out` counts by code all that did not become chunks, and sources
    that are odd; `left_out_from` names the first sources of each code; `failures` names what is to be mended, of
    one file at most a thousand. `kinds` counts files by what they were read as; `other_kinds` counts by suffix, the
    most frequent first, files of the folders that were passed over, since nothing here reads them. `missing`
    sources are not found any more in what was named and keep their chunks: `prune` withdraws them; `missing_from`
    names the first of them, by their files where these have vanished. `of_gone` counts those of other folders that
    are not there any more, which keep theirs too; `of_others` counts by tenant (`default` for none) sources that
    were read from there for others and stay as they are.
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
    left_out_from: tuple[LeftOutFrom, ...]
    failed: int
    failures: tuple[Failure, ...]
    kinds: Mapping[str, int]
    other_kinds: Mapping[str, int]
    missing: int
    missing_from: tuple[str, ...]
    of_gone: Mapping[str, int]
    of_others: Mapping[str, int]

    def __repr__(self) -> str:
        counts = f"{self.processed:,} new or changed, {self.unchanged:,} unchanged, {self.failed:,} failed"
        return f"<IngestReport {self.partition_key}: {counts}>"
