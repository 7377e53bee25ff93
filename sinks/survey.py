"""A survey of chunks for their producer: which fields they fill, which values cannot be read, and which are not used.

The projection leaves out such values without an error, so that they do not keep a chunk out of the index.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from chunksink.chunkbus.chunk import FAMILY_FIELDS, Chunk, Record
from chunksink.settings.fields import FieldType
from chunksink.sinks import values
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.document import NAMES as TAKEN
from chunksink.sinks.fields import GROUPS, PROJECTION, FieldRule, Values, values_by_path

_USED = frozenset(
    (
        *(path for rule in PROJECTION for path in rule.paths),
        *Chunk.__struct_fields__,
        *(f"metadata.{name}" for name in FAMILY_FIELDS),
        *("metadata.kind", "metadata.overlap_chars", "metadata.links", "tokens.tokenizer"),  # of our own ingest
        *(f"{group}occurred_at_end_ms" for group in ("", "metadata.", "span.")),
    )
)
_LEADING_ZERO = re.compile("0[0-9]")  # an identifier, not a number: 007
_READERS: dict[FieldType, Callable[[Any], Any]] = {
    "boolean": lambda value: None if str(value) in ("0", "1") else values.flag(value),
    "number": lambda value: None if isinstance(value, str) and _LEADING_ZERO.match(value) else values.number(value),
    "datetime": lambda value: values.moment(value) if isinstance(value, str) else None,
    "string": values.label,
    "strings": values.members,
}
MAX_CHOICES = 50
"""A facet with more values is not useful."""
_MAX_MISFIT_SHARE = 0.05
"""A type is proposed if at most this share of the values cannot be read."""
_SHOWN_CHARACTERS = 200
_MAX_CANDIDATES = 200
FIELDS = tuple(rule.name for rule in PROJECTION if rule.paths)
"""The fields that chunks can fill."""


@dataclass(frozen=True)
class Unread:
    """A value that the field of this path cannot read, or a list that the field shortened."""

    path: str
    value: Any
    partition: str
    line: int


@dataclass
class Candidate:
    """Metadata that no field reads yet, and that could become a custom field."""

    misfits: Counter[FieldType] = field(default_factory=Counter)
    """For each type, how many values it cannot read."""
    first_misfit: dict[FieldType, Any] = field(default_factory=dict)
    values: set[str] = field(default_factory=set)
    """Its first distinct values, at most one more than `MAX_CHOICES`."""

    def take(self, value: Any) -> None:
        for name, read in _READERS.items():
            if read(value) is None:
                self.misfits[name] += 1
                self.first_misfit.setdefault(name, value)
        if len(self.values) <= MAX_CHOICES:
            self.values.add(str(value)[:_SHOWN_CHARACTERS])

    def table(self, name: str, path: str, chunks: int) -> list[str]:
        """The lines of the table `[fields.NAME]`; none if no type fits. The type is the most specific one that reads
        nearly all values. `chunks` is how many chunks have a value."""
        kind = next((each for each in _READERS if self.misfits[each] <= _MAX_MISFIT_SHARE * chunks), None)
        if kind is None:
            return []
        lines = [f"[fields.{name}]"]
        if self.misfits[kind]:
            example = json.dumps(self.first_misfit[kind], ensure_ascii=False, default=str)[:_SHOWN_CHARACTERS]
            lines.append(f"# {self.misfits[kind]:,} of {chunks:,} values cannot be read as {kind}, such as {example}")
        lines += [f"path = {json.dumps(path, ensure_ascii=False)}"] if path != f"metadata.{name}" else []
        lines += [f'type = "{kind}"'] if kind != "string" else []
        is_choice = kind != "datetime" and 2 * len(self.values) <= min(chunks, 2 * MAX_CHOICES)
        lines += ["facet = true"] if is_choice else []
        return [*lines, *(["sort = true"] if kind in ("number", "datetime") else [])]


@dataclass
class Survey:
    """Counts chunks. For each field: how many fill it (`filled`), and how many have a value that it cannot read
    (`unread`). For each path that no field reads: how many have a value there (`unmapped`)."""

    fields: FieldSet = NO_FIELDS
    chunks: int = 0
    filled: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    first_unread: dict[str, Unread] = field(default_factory=dict)
    unmapped: Counter[str] = field(default_factory=Counter)
    candidates: dict[str, Candidate] = field(default_factory=dict)
    _names: dict[str, set[str]] = field(default_factory=dict)
    """By path of an object in the metadata: the names of all its members so far."""
    _split: Counter[str] = field(default_factory=Counter)
    """By path of an object: in how many chunks its members were counted instead of the object."""
    _whole: set[str] = field(default_factory=set)
    """Paths of objects whose keys seem to be ids: there are more than `MAX_CHOICES` different keys so far, and one
    object has fewer than a quarter of them. Each counts as one path."""

    def proposals(self) -> list[list[str]]:
        """Tables `[fields.NAME]` for the metadata that no field reads; the most frequent first."""
        names = TAKEN | {custom.name for custom in self.fields.fields}
        tables = []
        for path, chunks in self.unmapped.most_common():
            key = path.removeprefix("metadata.")
            if path not in self.candidates or not key or '"' in key:  # no path can name such a key
                continue
            name = _new_name(key, names)
            if table := self.candidates[path].table(name, path, chunks):
                names |= {name}
                tables.append(table)
        return tables

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
        used = {".".join(custom.keys) for custom in self.fields.fields}
        for path, value in self._members(by_path):
            if path in _USED or path in used or path.startswith("provenance.") or not _has_value(path, value):
                continue
            self.unmapped[path] += 1
            if path in self._whole:
                self.unmapped[path] += self._split.pop(path, 0)
            elif path.startswith("metadata.") and (path in self.candidates or len(self.candidates) < _MAX_CANDIDATES):
                self.candidates.setdefault(path, Candidate()).take(value)

    def _members(self, by_path: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """The values by path. An object in the metadata is replaced by its members, unless its keys are ids."""
        for path, value in by_path.items():
            if not (isinstance(value, dict) and value and path.startswith("metadata.")):
                yield path, value
                continue
            members = {name: member for name, member in value.items() if "." not in name}
            if path not in self._whole:
                names = self._names.setdefault(path, set())
                names.update(members)
                if len(names) > MAX_CHOICES and len(names) > 4 * len(members):
                    self._make_whole(path)
            if path in self._whole:
                yield path, value
            else:
                self._split[path] += 1
                yield from self._members({f"{path}.{name}": member for name, member in members.items()})

    def _make_whole(self, path: str) -> None:
        """From now on counts the object as one path, and forgets its members."""
        self._whole.add(path)
        self.candidates.pop(path, None)
        del self._names[path]
        counted: tuple[dict[str, Any], ...] = (self.unmapped, self.candidates, self._names, self._split)
        for by_path in counted:
            for below in [one for one in by_path if one.startswith(f"{path}.")]:
                del by_path[below]


def _new_name(key: str, taken: frozenset[str]) -> str:
    """A free field name for this key of the metadata."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", key).strip("_")[:50]
    name = plain if re.match("[A-Za-z]", plain) and plain not in taken else f"my_{plain}"
    return next(one for one in chain([name], (f"{name}_{number}" for number in count(2))) if one not in taken)


def _unread(rule: FieldRule, by_path: Values) -> str | None:
    """The path of a value that this field could not read, or of a list that it shortened; else None."""
    paths = [path for path in rule.paths if _has_value(path, by_path.get(path))]
    for path in paths:
        value = rule.read(by_path[path])
        if value is not None:
            is_cut = isinstance(by_path[path], list) and len(by_path[path]) > values.MAX_MEMBERS == len(value)
            return path if is_cut else None
    return next(iter(paths), None)


def _has_value(path: str, value: Any) -> bool:
    if isinstance(value, dict) and path in GROUPS:
        return False  # its members have paths of their own
    return value is not None and not (isinstance(value, Sized) and len(value) == 0)
