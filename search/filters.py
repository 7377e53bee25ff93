"""Parses filters such as `source_type=md` and `year>=2020`. Several values of one field are alternatives."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chunksink.search.errors import InvalidQuestion
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.fields import FILTERS, VALUE_TYPES
from chunksink.sinks.reader import Filter, Value
from chunksink.sinks.values import FACET_BYTES, facet

_WRITTEN = re.compile(r"\s*([A-Za-z_]\w*)\s*(>=|<=|=|>|<)(.*)", re.DOTALL)
_HOW = "write them as field=value, or as field>=number and field<=number"
_BOOLEANS = {"true": True, "false": False}

Given = Sequence[str | Filter] | Mapping[str, Value | Sequence[Value]] | None


def parse_filters(written: Iterable[str]) -> tuple[Filter, ...]:
    """All conditions must match. Values of one field are alternatives; of several bounds the narrowest applies."""
    values: dict[str, list[Value]] = {}
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for text in written:
        field, sign, value = _parts(text)
        if sign == "=":
            values.setdefault(field, []).append(_value(field, value))
            continue
        number = _number(field, value)
        if sign.startswith(">"):
            number += sign == ">"  # all fields with bounds are whole numbers
            least[field] = max(number, least.get(field, number))
        else:
            number -= sign == "<"
            most[field] = min(number, most.get(field, number))
    bounded = dict.fromkeys((*least, *most))
    return (
        *(Filter(field, any_of=tuple(given)) for field, given in values.items()),
        *(Filter(field, at_least=least.get(field), at_most=most.get(field)) for field in bounded),
    )


def as_filters(given: Given) -> tuple[Filter, ...]:
    """Filters from Python arguments: a list of conditions, or a mapping of fields to one or several values."""
    if given is None:
        return ()
    if isinstance(given, Mapping):
        return tuple(_of_field(field, value) for field, value in given.items())
    if isinstance(given, str | bytes):
        raise InvalidQuestion(f"filters must be a list, not the string {given!r:.100}")
    if not isinstance(given, Iterable):
        raise InvalidQuestion(f"filters must be a list, not {given!r:.100}")
    filters: list[Filter] = []
    written: list[str] = []
    for one in given:
        if isinstance(one, Filter):
            filters.append(one)
        elif isinstance(one, str):
            written.append(one)
        else:
            raise InvalidQuestion(f"{one!r:.200} is not a filter: {_HOW}")
    return (*filters, *parse_filters(written))


def _of_field(field: str, given: object) -> Filter:
    _check_field(field)
    several: Iterable[Any] = given if isinstance(given, list | tuple | set | frozenset) else (given,)
    return Filter(field, any_of=tuple(_value(field, value) if isinstance(value, str) else value for value in several))


def _check_field(field: str) -> None:
    if field not in FILTERS:
        raise InvalidFilter(f"{field!r:.100} cannot be filtered. Fields to filter by: {', '.join(sorted(FILTERS))}")


def _parts(text: str) -> tuple[str, str, str]:
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise InvalidQuestion(f"{text!r:.200} is not a filter: {_HOW}")
    field, sign, value = found[1], found[2], found[3].strip()
    _check_field(field)
    if not value:
        raise InvalidQuestion(f"the filter {text!r:.200} has no value: {_HOW}")
    return field, sign, value


def _value(field: str, value: str) -> Value:
    if FILTERS[field] == "range":
        return _number(field, value)
    if VALUE_TYPES[field] is bool:
        if value.lower() not in _BOOLEANS:
            raise InvalidQuestion(f"{field} is true or false, not {value!r:.100}")
        return _BOOLEANS[value.lower()]
    return (facet(value) or value) if len(value) * 3 > FACET_BYTES else value  # longer values are stored shortened


def _number(field: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InvalidQuestion(f"{field} is compared with whole numbers, not with {value!r:.100}") from None
