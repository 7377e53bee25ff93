"""What is said in JSON that nobody reads: a name, a kind, a place or a number says little, words are missed."""

import re
from collections import deque
from collections.abc import Iterator
from typing import Any

# Scripts that write no spaces: Thai to Myanmar, Khmer, kana, Han.
_UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{2}")
_OF_SENTENCE = 4


def sayings(value: Any, fewest_words: int = 1, quiet: frozenset[str] = frozenset()) -> Iterator[str]:
    """The strings of so many words in a value of any depth; under `quiet` names sentences alone. Those of one depth
    come in their order."""
    waiting = deque([(value, fewest_words)])
    while waiting:
        one, fewest = waiting.popleft()
        if isinstance(one, str):
            if words_of(one, fewest) >= fewest:
                yield one
        elif isinstance(one, dict):
            waiting += ((inner, _OF_SENTENCE if name.lower() in quiet else fewest) for name, inner in one.items())
        elif isinstance(one, list):
            waiting += ((inner, fewest) for inner in one)


def words_of(text: str, most: int) -> int:
    """How many, and not more; of a script without spaces two letters are one."""
    words = 0
    for word in text.split():
        words += max(any(map(str.isalpha, word)), sum(1 for _ in _UNSPACED.finditer(word)))
        if words >= most:
            break
    return min(words, most)
