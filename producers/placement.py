"""Which partition a family goes to: one that is named, or one that follows from the source itself.

It never follows from the clock of a run, so that two machines lay out the same sources alike.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.diagnose import parse_time
from chunksink.chunkbus.errors import InvalidManifest, InvalidPartitionKey
from chunksink.chunkbus.layout import BusRoot, check_partition_key
from chunksink.chunkbus.reader import read_manifest

PRODUCER_NAME = "chunksink-ingest"
_NOT_IN_KEYS = re.compile(r"[^A-Za-z0-9._-]+")
_OF_RULES = "by-"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Rule(StrEnum):
    BY_DATE = "by-date"
    BY_TYPE = "by-type"
    BY_PREFIX = "by-prefix"


@dataclass(frozen=True, slots=True)
class About:
    """What a rule may look at: the family's key, its source's type, and its time, in nanoseconds of the epoch."""

    family: str
    source_type: str
    moment_ns: int | None


@dataclass(frozen=True)
class Placement:
    """Where families go. `name` is a partition key or a rule."""

    name: str

    def __post_init__(self) -> None:
        if self.rule is None:
            check_partition_key(self.name)

    def refuse_misspelt(self, root: BusRoot) -> None:
        """A name like that of a rule, which no partition has yet."""
        is_like_rule = self.rule is None and self.name.startswith(_OF_RULES)
        if is_like_rule and self.name not in root.partition_keys():
            raise InvalidPartitionKey(f"{self.name!r} is no rule: there are {', '.join(Rule)}; call no partition so")

    @cached_property
    def rule(self) -> Rule | None:
        return Rule(self.name) if self.name in list(Rule) else None

    def shares(self, other: str) -> bool:
        """Whether it may write to partitions of this other name or rule."""
        return self.rule is not None or other == self.name or other in list(Rule)

    def key_of(self, about: About) -> str:
        if self.rule is Rule.BY_DATE:
            return "undated" if about.moment_ns is None else _date_of(about.moment_ns)
        if self.rule is Rule.BY_TYPE:
            return _NOT_IN_KEYS.sub("-", about.source_type).strip("-._")[:128].lower() or "other"
        return about.family[:2] if self.rule is Rule.BY_PREFIX else self.name

    def partitions(self, root: BusRoot) -> list[str]:
        """Those that a run reads and may write: the one named; with a rule all that were written like this before.

        Others' partitions are left alone: a family may stand there as well, and its rank tells which one counts.
        """
        if self.rule is None:
            return [self.name]
        return [key for key in root.partition_keys() if is_ours(root, key)]

    def others(self, root: BusRoot) -> list[str]:
        """Those that were written like this and that such a run leaves alone."""
        if self.rule is not None:
            return []
        return [key for key in root.partition_keys() if key != self.name and is_ours(root, key)]


def is_ours(root: BusRoot, key: str) -> bool:
    """Whether its manifest says that an ingest wrote it."""
    try:
        return read_manifest(root, key).producer.name == PRODUCER_NAME
    except (OSError, InvalidManifest):
        return False


def _date_of(moment_ns: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=moment_ns // 1000)).date().isoformat()
    except OverflowError:  # no calendar has it: a number in the wrong unit, a file with a broken time
        return "undated"


def source_type_of(records: Sequence[Record], default: str) -> str:
    said = (records[0].get("source") or {}).get("source_type")
    return said if isinstance(said, str) and said else default


def moment_of(records: Sequence[Record], made_at: str, file_ns: int) -> int:
    """The newest time that a family's records say of themselves, else the modification of their file."""
    moments = [moment for record in records if (moment := _own_moment(record, made_at)) is not None]
    return max(moments, default=file_ns)


def _own_moment(record: Record, made_at: str) -> int | None:
    metadata, source = record.get("metadata") or {}, record.get("source") or {}
    if isinstance(at := metadata.get("occurred_at_end_ms"), int):
        return at * 1_000_000
    own = record.get("created_at")
    for stamp in (source.get("modified_at"), metadata.get("modified_at"), own if own != made_at else None):
        try:
            if isinstance(stamp, str):
                return (parse_time(stamp) - _EPOCH) // timedelta(microseconds=1) * 1000
        except (ValueError, OverflowError):
            continue
    return None
