"""A survey of chunks for their producer: which fields they fill, and which values are unreadable or unused.

The projection silently leaves out unreadable values, so that one of them does not keep a chunk out of the index.
"""

from collections import Counter
from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Any

from chunksink.chunkbus.chunk import NAMES, Chunk, Record
from chunksink.sinks.fields import GROUPS, PROJECTION, FieldRule, Values, values_by_path
from chunksink.sinks.values import MAX_MEMBERS

_USED = frozenset(
    (
        *(path for rule in PROJECTION for path in rule.paths),
        *Chunk.__struct_fields__,
        *(f"metadata.{name}" for name in NAMES),
        *(f"{group}occurred_at_end_ms" for group in ("", "metadata.", "span.")),
    )
)
FIELDS = tuple(rule.name for rule in PROJECTION if rule.paths)
"""The fields that chunks can fill."""


@dataclass(frozen=True)
class Unread:
    """A value that the field of its path cannot read."""

    path: str
    value: Any
    partition: str
    line: int


@dataclass
class Survey:
    """Counts of chunks: by field those that fill it and those with an unreadable value; by path the unused values."""

    chunks: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    first_unread: dict[str, Unread] = field(default_factory=dict)
    unasked: Counter[str] = field(default_factory=Counter)

    def take(self, record: Record, partition: str, line: int) -> None:
        self.chunks += 1
        by_path = values_by_path(record)
        above: Values = {}
        for rule in PROJECTION:
            above[rule.name] = value = rule.value(record, by_path, above)
            self.filled[rule.name] += value is not None
            if rule.paths and (path := _unread(rule, by_path)):
                self.unread[rule.name] += 1
                self.first_unread.setdefault(rule.name, Unread(path, by_path[path], partition, line))
        unused = (path for path in by_path if path not in _USED and not path.startswith("provenance."))
        self.unasked.update(path for path in unused if _has_value(path, by_path[path]))


def _unread(rule: FieldRule, by_path: Values) -> str | None:
    """The path of a value that this field could not read, or of a list that it cut; else None."""
    paths = [path for path in rule.paths if _has_value(path, by_path.get(path))]
    for path in paths:
        value = rule.read(by_path[path])
        if value is not None:
            is_cut = isinstance(by_path[path], list) and len(by_path[path]) > MAX_MEMBERS == len(value)
            return path if is_cut else None
    return next(iter(paths), None)


def _has_value(path: str, value: Any) -> bool:
    if isinstance(value, dict) and path in GROUPS:
        return False  # its members have paths of their own
    return value is not None and not (isinstance(value, Sized) and len(value) == 0)
