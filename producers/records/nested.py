"""Records that stand within one JSON value, as answers of interfaces have them: `{"total": 2, "data": [...]}`."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from json import JSONDecoder
from typing import Any, Protocol

from chunksink.chunkbus.chunk import Record
from chunksink.producers.records.sayings import sayings

Way = tuple[str, ...]
"""The names under which something stands, the outermost first."""

LARGEST = 64 * 2**20
"""Of such a value, which is held in memory whole."""
_DEEPEST = 3
FIRST = 200
"""Records that are looked at."""
_FEWEST_WORDS = 4
"""Of a sentence: what an interface says of its answer (`"message": "All went well"`) is shorter."""
_SPACE = " \t\r\n"
_parse = JSONDecoder().raw_decode


class IsRecord(Protocol):
    """Tells a record from other JSON."""

    def __call__(self, record: Record, *, is_alone: bool) -> bool:
        """What is alone in its file counts also where it may be one, so that nothing in it is passed over."""


@dataclass(frozen=True)
class Held:
    """The one list for which a value is there: its names, and where it begins and ends in the value's bytes."""

    way: Way
    start: int
    end: int


def lists_within(value: Any, is_record: IsRecord) -> list[Way]:
    """Where lists stand that hold records."""
    return [way for way, records in _lists(value, ()) if _some_are(records, is_record)]


def _lists(value: Any, way: Way) -> Iterator[tuple[Way, list[Any]]]:
    for name, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, list):
            yield (*way, name), inner
        elif len(way) + 1 < _DEEPEST:
            yield from _lists(inner, (*way, name))


def _some_are(records: list[Any], is_record: IsRecord) -> bool:
    return any(isinstance(one, dict) and is_record(one, is_alone=False) for one in islice(records, FIRST))


def find_list(data: bytes, value: Any, is_record: IsRecord) -> Held | None:
    """Of several nobody says which is meant; nor where the value is a record itself, says a sentence beside, or has not
    most of what it says in the list. An empty one is meant where no word stands beside it."""
    if not isinstance(value, dict) or is_record(value, is_alone=True):
        return None
    lists = list(_lists(value, ()))
    ways = [way for way, records in lists if _some_are(records, is_record)]
    is_empty = not ways and not any(records for _, records in lists)
    if is_empty:
        ways = [way for way, _ in lists]
    if len(ways) != 1 or next(sayings(_without(value, ways[0]), 1 if is_empty else _FEWEST_WORDS), None) is not None:
        return None
    text = data.decode()
    try:
        start, end = (len(text[:at].encode()) for at in _place_of(text, ways[0]))
    except RecursionError:
        return None
    return Held(ways[0], start, end) if is_empty or 2 * (end - start) > len(data) else None


def value_at(value: Any, way: Way) -> Any:
    for name in way:
        value = value[name]
    return value


def _without(value: Record, way: Way) -> Record:
    name, *below = way
    return {**value, name: _without(value[name], tuple(below)) if below else None}


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
