"""What the fields of a row may be called, and where a field is found: at the top, whatever its case, or on a path."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chunkbus.chunk import Record


@dataclass(frozen=True)
class Names:
    """Of each the first that says something counts. `given` tells which the user has named, for the record."""

    text: tuple[str, ...] = (
        "text",
        "content",
        "contents",
        "body",
        "markdown",
        "html",
        "article",
        "passage",
        "abstract",
    )
    id: tuple[str, ...] = ("id", "_id", "doc_id", "docid", "docno", "uuid", "guid")
    title: tuple[str, ...] = ("title", "headline", "subject", "name")
    address: tuple[str, ...] = (
        *("html_url", "web_url", "url", "link", "uri", "permalink", "source_uri", "file_path", "path"),
    )
    given: str = ""


ROLES = ("text", "id", "title", "address")
USUAL = Names()


def names_with(given: Mapping[str, str]) -> Names:
    """The usual ones, but for what is given another: `{"text": "review.body"}`."""
    if not given:
        return USUAL
    told = ",".join(f"{role}={given[role]}" for role in sorted(given))
    return replace(USUAL, given=told, **{role: (name,) for role, name in given.items()})


class Fields:
    """A record that is asked by names."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._spelled = {name.lower(): name for name in reversed(record)}

    def way_to(self, name: str) -> tuple[str, ...]:
        """Its keys: one at the top, in whatever case, else those that its dots part; empty where it is not there."""
        if (spelled := self._spelled.get(name.lower())) is not None:
            return (spelled,)
        way = tuple(name.split("."))
        return way if len(way) > 1 and self.at(way, _NOTHING) is not _NOTHING else ()

    def at(self, way: tuple[str, ...], default: Any = None) -> Any:
        value: Any = self._record
        for key in way:
            if not isinstance(value, dict) or key not in value:
                return default
            value = value[key]
        return value

    def get(self, name: str) -> Any:
        """None where it is not there."""
        way = self.way_to(name)
        return self.at(way) if way else None

    def without(self, *ways: tuple[str, ...]) -> Record:
        """The record without these fields, which is not touched."""
        rest = dict(self._record)
        for way in ways:
            _drop(rest, way)
        return rest


_NOTHING = object()


def _drop(table: Record, way: tuple[str, ...]) -> None:
    first, *below = way
    if not below:
        table.pop(first, None)
    elif isinstance(inner := table.get(first), dict):
        table[first] = dict(inner)
        _drop(table[first], tuple(below))
