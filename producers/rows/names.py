"""What the fields of a row may be called, and where a field is found: at the top, whatever its case, or on a path."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from chunksink.chunkbus.chunk import Record

Way = tuple[str, ...]
"""The keys to a field, from the top."""


@dataclass(frozen=True)
class Names:
    """Of each the first that says something counts. `given` tells which the user has named, for the record."""

    text: tuple[str, ...] = (
        *("text", "content", "contents", "body", "markdown", "html", "article", "passage", "abstract"),
    )
    id: tuple[str, ...] = ("id", "_id", "doc_id", "docid", "docno", "uuid", "guid")
    title: tuple[str, ...] = ("title", "headline", "subject", "name")
    address: tuple[str, ...] = (
        *("html_url", "web_url", "url", "link", "uri", "permalink", "source_uri", "file_path", "path"),
    )
    given: str = ""

    def of_columns(self) -> "Names":
        """As a header has them."""
        text, id, title, address = (
            tuple(map(column, names)) for names in (self.text, self.id, self.title, self.address)
        )
        return replace(self, text=text, id=id, title=title, address=address)


ROLES = ("text", "id", "title", "address")
USUAL = Names()


def names_with(given: Mapping[str, str]) -> Names:
    """The usual ones, but for what is given another: `{"text": "review.body"}`."""
    if not given:
        return USUAL
    told = ",".join(f"{role}={given[role]}" for role in sorted(given))
    return replace(USUAL, given=told, **{role: (name,) for role, name in given.items()})


def column(name: str) -> str:
    """What a column of this name is called: in lower case, and `_` for all but letters and digits."""
    name = name.strip().lower()
    return re.sub(r"\W+", "_", name).rstrip("_") or name


def may_be_rows(columns: Collection[str]) -> bool:
    """Whether a header names a text and what says which it is."""
    who = (*USUAL.id, *USUAL.title, *USUAL.address)
    return not set(USUAL.text).isdisjoint(columns) and not set(who).isdisjoint(columns)


def says(value: Any) -> bool:
    """Nothing, white space, and what holds nothing say nothing."""
    return bool(value.strip()) if isinstance(value, str) else value is not None and value not in ([], {})


def laid_over(below: Record, above: Record) -> Record:
    """Both, and where both have a name what is above; but what says nothing covers nothing."""
    return below | {name: value for name, value in above.items() if name not in below or says(value)}


class Fields:
    """A record that is asked by names."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._spelled: dict[str, list[str]] = {}
        for name in record:
            self._spelled.setdefault(name.lower(), []).append(name)

    def ways(self, name: str) -> list[Way]:
        """To whatever is called so at the top, in whatever case; else to what its dots lead to."""
        if spelled := self._spelled.get(name.lower()):
            return [(one,) for one in spelled]
        way = tuple(name.split("."))
        return [way] if len(way) > 1 and self._at(way, _NOTHING) is not _NOTHING else []

    def under(self, names: Collection[str]) -> Iterator[tuple[Way, Any]]:
        """All that is called by one of these, in their order."""
        for name in names:
            for way in self.ways(name):
                yield way, self._at(way)

    def without(self, *ways: Way) -> Record:
        """The record without these fields, which is not touched."""
        rest = dict(self._record)
        for way in ways:
            _drop(rest, way)
        return rest

    def _at(self, way: Way, default: Any = None) -> Any:
        value: Any = self._record
        for key in way:
            if not isinstance(value, dict) or key not in value:
                return default
            value = value[key]
        return value


_NOTHING = object()


def _drop(table: Record, way: Way) -> None:
    first, *below = way
    if not below:
        table.pop(first, None)
    elif isinstance(inner := table.get(first), dict):
        table[first] = dict(inner)
        _drop(table[first], tuple(below))
