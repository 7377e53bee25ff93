"""The report of an ingest."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What happened to one file. LEFT_OUT: not a source. It is a file that no format recognises (a failure if it was
    named), a link that was not followed, or a folder that was skipped."""

    PROCESSED = "processed"
    UNCHANGED = "unchanged"
    EMPTY = "empty"
    FAILED = "failed"
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class Failure:
    """A source, or the record on a line of it, that did not become chunks."""

    source_uri: str
    code: str
    reason: str
    line: int | None = None


def folder_of(uri: str) -> str:
    """The folder of a source, with a slash at its end."""
    return f"{uri.rstrip('/').rpartition('/')[0] or '.'}/"


@dataclass(frozen=True)
class IngestReport:
    """The result of an ingest.

    `partition_key` is the requested partition or rule; `partitions` were written. `documents` and `chunks` are totals
    of the partitions that this run may write. `carried_over` counts documents that are not from the files of this run,
    `pruned` documents that `--prune` removed. `links` counts links in the written artifacts. `left_out` counts notices
    by code; `left_out_from` names the first sources of each code, `left_out_folders` the folders with the most notices.
    `kinds` counts files by format; `other_kinds` counts skipped files by suffix. `missing` counts documents that their
    files no longer contain, or whose files have vanished or are excluded: they keep their chunks. `missing_from` names
    the first of these files or documents. `gone` lists registered folders that no longer exist, with the number of
    their sources. `unmatched` are the patterns that matched nothing, with their options: `--exclude drafts/`.
    `elsewhere` names partitions that have chunks of the same files and were not updated, because another partition was
    requested.
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
    left_out_folders: Mapping[str, Mapping[str, int]]
    failed: int
    failures: tuple[Failure, ...]
    kinds: Mapping[str, int]
    other_kinds: Mapping[str, int]
    missing: int
    missing_from: tuple[str, ...]
    gone: Mapping[str, int]
    unmatched: tuple[str, ...]
    elsewhere: tuple[str, ...]

    def __repr__(self) -> str:
        counts = f"{self.processed:,} new or changed, {self.unchanged:,} unchanged, {self.failed:,} failed"
        return f"<IngestReport {self.partition_key}: {counts}>"
