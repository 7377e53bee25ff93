"""What is said in JSON that nobody reads: a name, a kind, a place or a number says little, words are missed."""

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

# Scripts that write no spaces: Thai to Myanmar, Khmer, kana, Han.
_UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_LETTERS_OF_A_WORD = 2


def sayings(value: Any, fewest_words: int, passed_over: frozenset[str] = frozenset()) -> Iterator[str]:
    """The strings of so many words in a value of any depth, but for what stands under some names. Those of one depth
    come in their order."""
    waiting = deque([value])
    while waiting:
        one = waiting.popleft()
        if isinstance(one, str):
            if _has_words(one, fewest_words):
                yield one
        elif isinstance(one, dict):
            waiting += (inner for name, inner in one.items() if name.lower() not in passed_over)
        elif isinstance(one, list):
            waiting += one


def _has_words(text: str, fewest: int) -> bool:
    words = sum(any(map(str.isalpha, word)) for word in text.split(maxsplit=fewest)[:fewest])
    if words >= fewest:
        return True
    letters = fewest * _LETTERS_OF_A_WORD
    return sum(1 for _ in islice(_UNSPACED.finditer(text), letters)) == letters
