"""The fixed tokenizer that counts the sizes of chunks.

Chunk boundaries depend on it, so it must count the same on every machine and in every release. Its rule lists code
points; it uses neither a model's tokenizer nor Python's Unicode tables, which change between versions. On English and
Chinese technical prose its counts are within 5 % of BERT's WordPiece. Increase `VERSION` with every change.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

CountTokens = Callable[[int, int], int]
"""Counts the tokens of `text[start:end]`."""

VERSION = "words-1"
"""Name and version of the rule, part of the policy's id."""

_LATIN_SPACE = "\\t-\\r\\x1c- \\x85\\xa0"
_OTHER_SPACE = "\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_DIGIT = "0-9"
# Each of these characters is one token: punctuation, symbols, scripts without spaces, emoji.
_SINGLE = (
    "!-/:-@\\[-`{-~\\xa1-\\xbf"
    "\u2010-\u2027\u2030-\u205e\u2060-\u2bff\u2e80-\u2fff\u3001-\u9fff\ua000-\ua4cf\uac00-\ud7ff"
    "\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe6f\uff00-\uffef\U0001f000-\U0001faff\U00020000-\U0003ffff"
)
_LETTER = f"^{_LATIN_SPACE}{_OTHER_SPACE}{_DIGIT}{_SINGLE}"
# Accents, variation selectors and skin tones: never cut off from the character that they modify.
MARK = (
    "\u0300-\u036f\u064b-\u065f\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u200d\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff"
)
# Up to seven letters, up to three digits, or one other character that is not white space.
_TOKEN = re.compile(
    f"[{_LETTER}]{{1,7}}[{MARK}]{{0,8}}|[{_DIGIT}]{{1,3}}|[{_SINGLE}](?:[{MARK}]|(?<=\u200d)[{_SINGLE}]){{0,8}}"
)
_MAX_COUNTED_AT_ONCE = 2**20


def count(text: str) -> int:
    """The number of tokens; 0 only for white space."""
    of_part = _counter_without_marks(text)
    return sum(1 for _ in _TOKEN.finditer(text)) if of_part is None else of_part(0, len(text))


def counter(text: str) -> CountTokens:
    """A counter for many parts of one text. The counts of parts cut between tokens add up to that of the whole."""
    of_part = _counter_without_marks(text) if len(text) <= _MAX_COUNTED_AT_ONCE else None
    return of_part or (lambda start, end: count(text[start:end]))


def spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The tokens of `text[start:end]` in order, as offsets into `text`."""
    for match in _TOKEN.finditer(text, start, end):
        yield match.span()


# Fast counting for texts without marks: one byte for each character is 1 if a token ends there, so that `bytes.count`
# counts the tokens of any part of the text.
_LATIN = [chr(code) for code in range(256)]
_ONLY_LETTERS = bytes(re.match(f"[{_LETTER}]", char) is not None for char in _LATIN)
_NO_LETTERS = bytes(1 if re.match(f"[{_SINGLE}]", char) else 2 if char in "0123456789" else 0 for char in _LATIN)
_ASCII = bytes(range(128))
_MARKS = re.compile(f"[{MARK}]")
_NOT_SINGLE_BEYOND_LATIN = re.compile(f"[^{_SINGLE}\\0-\\xff]")
_SPACES_BEYOND_LATIN = re.compile(f"[{_OTHER_SPACE}]")
_LETTERS_BEYOND_LATIN = re.compile(f"[{_LETTER}\\0-\\xff]+")


def _counter_without_marks(text: str) -> CountTokens | None:
    """A fast counter with the same results as `_TOKEN`; None for a text with marks."""
    if not text.isascii():
        beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")
        if _MARKS.search(beyond):
            return None
        if _NOT_SINGLE_BEYOND_LATIN.search(beyond):
            text = _SPACES_BEYOND_LATIN.sub(" ", text)
            text = _LETTERS_BEYOND_LATIN.sub(lambda letters: "x" * len(letters[0]), text)
    data = text.encode("latin-1", "replace")  # the rest beyond Latin-1 are singles, and become `?`, also a single
    # Cutting a run of letters at every seventh one makes each token a separate run.
    letters = data.translate(_ONLY_LETTERS).replace(b"\1" * 7, b"\1" * 6 + b"\0")
    others = data.translate(_NO_LETTERS).replace(b"\2\2\2", b"\0\0\1").replace(b"\2\2", b"\0\1").replace(b"\2", b"\1")
    runs = int.from_bytes(letters, "little")  # as one number, to compare every byte with the next at once
    ends = runs & ~(runs >> 8) | int.from_bytes(others, "little")
    return partial(ends.to_bytes(len(data), "little").count, 1)
