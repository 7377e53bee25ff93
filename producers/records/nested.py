"""Records that stand within one JSON value, as answers of interfaces have them: `{"total": 2, "data": [...]}`."""

from collections.abc import Iterator
from itertools import islice
from json import JSONDecoder
from typing import Any, Protocol

import orjson

from chunkbus.chunk import Record
from producers.records.sentences import sentences

Way = tuple[str, ...]
"""The names under which something stands, the outermost first."""

LARGEST = 64 * 2**20
"""Of such a value, which is held in memory whole."""
_DEEPEST = 3
_FIRST = 200
_FEWEST_WORDS = 4
"""Of a sentence: what an interface says of its answer (`"message": "All went well"`) is shorter."""
_SPACE = " \t\r\n"
_parse = JSONDecoder().raw_decode


class IsRecord(Protocol):
    """Tells a record from other JSON."""

    def __call__(self, record: Record, *, is_alone: bool) -> bool:
        """What is alone in its file counts also where it may be one, so that nothing in it is passed over."""


def lists_within(value: Any, is_record: IsRecord) -> list[Way]:
    """Where lists stand that hold records."""
    return list(_lists(value, is_record, ())) if isinstance(value, dict) else []


def _lists(value: Record, is_record: IsRecord, way: Way) -> Iterator[Way]:
    for name, inner in value.items():
        if isinstance(inner, list):
            if any(isinstance(one, dict) and is_record(one, is_alone=False) for one in islice(inner, _FIRST)):
                yield (*way, name)
        elif isinstance(inner, dict) and len(way) + 1 < _DEEPEST:
            yield from _lists(inner, is_record, (*way, name))


def list_meant(value: Any, is_record: IsRecord) -> Way | None:
    """Where the one list of records stands for which the value is there: it is no record itself, says no sentence
    beside, and the list is most of it."""
    ways = lists_within(value, is_record)
    if len(ways) != 1 or is_record(value, is_alone=True):
        return None
    records, beside = _parted(value, ways[0])
    is_most = len(orjson.dumps(records)) > len(orjson.dumps(beside))
    return ways[0] if is_most and next(sentences(beside, _FEWEST_WORDS), None) is None else None


def value_at(value: Any, way: Way) -> Any:
    for name in way:
        value = value[name]
    return value


def _parted(value: Record, way: Way) -> tuple[list[Any], Record]:
    """What stands there, and the value without."""
    name, *below = way
    inner, rest = (value[name], {}) if not below else _parted(value[name], tuple(below))
    return inner, {**value, name: rest}


def find_list(data: bytes, is_record: IsRecord) -> tuple[int, int] | None:
    """Where that list begins and ends in the bytes of a value."""
    try:
        way = list_meant(orjson.loads(data), is_record)
    except orjson.JSONDecodeError:
        return None
    if way is None:
        return None
    text = data.decode()
    start, end = _place_of(text, way)
    return len(text[:start].encode()), len(text[:end].encode())


def _place_of(text: str, way: Way) -> tuple[int, int]:
    at = _after_space(text, 0)
    for name in way:
        at = _value_of(text, at, name)
    return at, _parse(text, at)[1]


def _value_of(text: str, at: int, name: str) -> int:
    """Where the value begins that an object has under a name: of several the last counts, as for who parses it."""
    found = at
    while text[at] != "}":
        key, at = _parse(text, _after_space(text, at + 1))
        value = _after_space(text, _after_space(text, at) + 1)
        if key == name:
            found = value
        at = _after_space(text, _parse(text, value)[1])
    return found


def _after_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
