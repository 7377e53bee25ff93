"""A survey of chunks for who made them: which fields of the index they fill, what stands where a field looks and cannot
be read, and what no field looks at.

The projection leaves such values out without a word, so that one odd value keeps no chunk from the index.
"""

from collections import Counter
from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Any

from chunksink.chunkbus.chunk import NAMES, Chunk, Record
from chunksink.sinks.fields import GROUPS, PROJECTION, FieldRule, Values, placed
from chunksink.sinks.values import MOST_MEMBERS

_ASKED = frozenset(path for rule in PROJECTION for path in rule.paths)
_LOOKED_AT_ELSEWHERE = frozenset(
    (
        *Chunk.__struct_fields__,
        *(f"metadata.{name}" for name in NAMES),
        "occurred_at_end_ms",
        "metadata.occurred_at_end_ms",
        "span.occurred_at_end_ms",
    )
)
FIELDS = tuple(rule.name for rule in PROJECTION if rule.paths)
"""Those that chunks can fill."""


@dataclass(frozen=True)
class Unread:
    """A value that a field found and could make nothing of."""

    path: str
    value: Any
    partition: str
    line: int


@dataclass
class Survey:
    """Counts of chunks: by field those that fill it, and those that only try to; by path what no field looks at."""

    chunks: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    first_unread: dict[str, Unread] = field(default_factory=dict)
    unasked: Counter[str] = field(default_factory=Counter)

    def take(self, record: Record, partition: str, line: int) -> None:
        self.chunks += 1
        found = placed(record)
        above: Values = {}
        for rule in PROJECTION:
            above[rule.name] = value = rule.value(record, found, above)
            self.filled[rule.name] += value is not None
            if rule.paths and (path := _unread(rule, found)):
                self.unread[rule.name] += 1
                self.first_unread.setdefault(rule.name, Unread(path, found[path], partition, line))
        self.unasked.update(path for path, value in found.items() if _is_unasked(path, value))


def _unread(rule: FieldRule, found: Values) -> str | None:
    """Where something stands for this field of which nothing could be read, or a list that was cut; else None."""
    said = [path for path in rule.paths if _says_something(path, found.get(path))]
    for path in said:
        value = rule.read(found[path])
        if value is not None:
            is_cut = isinstance(found[path], list) and len(found[path]) > MOST_MEMBERS == len(value)
            return path if is_cut else None
    return next(iter(said), None)


def _says_something(path: str, value: Any) -> bool:
    if isinstance(value, dict) and path in GROUPS:
        return False  # its members are asked by paths of their own
    return value is not None and not (isinstance(value, Sized) and len(value) == 0)


def _is_unasked(path: str, value: Any) -> bool:
    if path in _ASKED or path in _LOOKED_AT_ELSEWHERE or path.startswith("provenance."):
        return False
    return _says_something(path, value)
