"""Chooses the partition of a family: a named one, or one that a rule derives from the source, never from the clock."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.diagnosis import parse_time
from chunksink.chunkbus.errors import InvalidManifest, InvalidPartitionKey
from chunksink.chunkbus.layout import BusRoot, check_partition_key
from chunksink.chunkbus.reader import read_manifest

PRODUCER_NAME = "chunksink-ingest"
UNDATED = "undated"
_NOT_IN_KEYS = re.compile(r"[^A-Za-z0-9._-]+")
_RULE_PREFIX = "by-"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Rule(StrEnum):
    BY_DATE = "by-date"
    BY_TYPE = "by-type"
    BY_PREFIX = "by-prefix"


@dataclass(frozen=True)
class Placement:
    """Chooses partitions. `name` is a partition key or a rule."""

    name: str

    def __post_init__(self) -> None:
        if self.rule is None:
            check_partition_key(self.name)
            if self.name.startswith(_RULE_PREFIX):
                raise InvalidPartitionKey(f"{self.name!r} is not a rule; the rules are {', '.join(Rule)}")

    @property
    def rule(self) -> Rule | None:
        return Rule(self.name) if self.name in list(Rule) else None

    @property
    def only(self) -> str | None:
        """The only partition that a run may write; None means all partitions written by an ingest."""
        return self.name if self.rule is None else None

    def key_of(self, family: str, source_type: str, moment_ns: int | None) -> str:
        """The partition of a family from its key, its source's type and its time in nanoseconds since 1970."""
        if self.rule is Rule.BY_DATE:
            return UNDATED if moment_ns is None else _date_of(moment_ns)
        if self.rule is Rule.BY_TYPE:
            return _NOT_IN_KEYS.sub("-", source_type).strip("-._")[:128].lower() or "other"
        return family[:2] if self.rule is Rule.BY_PREFIX else self.name


def is_ours(bus: BusRoot, key: str) -> bool:
    """Whether `chunksink ingest` wrote the partition, according to its manifest."""
    try:
        return read_manifest(bus, key).producer.name == PRODUCER_NAME
    except (OSError, InvalidManifest):
        return False


def _date_of(moment_ns: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=moment_ns // 1000)).date().isoformat()
    except OverflowError:  # a number in the wrong unit, or a file with a broken time
        return UNDATED


def source_type_of(records: Sequence[Record], default: str) -> str:
    stated = (records[0].get("source") or {}).get("source_type")
    return stated if isinstance(stated, str) and stated else default


def newest_moment(records: Sequence[Record], made_at: str, file_ns: int) -> int:
    """The newest time that a family's records state, else the modification time of their file.

    A `created_at` that equals `made_at` does not count: the run has set it.
    """
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
