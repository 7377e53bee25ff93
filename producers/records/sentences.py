"""What is said in JSON that nobody reads: names, kinds, places and numbers say little, a sentence is missed."""

from collections.abc import Iterator
from typing import Any

_FEWEST_WORDS = 4


def sentences(value: Any) -> Iterator[str]:
    """The strings of four words or more in a value of any depth."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if len(one.split(maxsplit=_FEWEST_WORDS)) >= _FEWEST_WORDS:
                yield one
        elif isinstance(one, dict | list):
            waiting += one.values() if isinstance(one, dict) else one
