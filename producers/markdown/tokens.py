"""The fixed tokenizer that the size policy counts with.

The policy needs one count for one text on every machine, for ever: chunk boundaries follow from it. A model's
tokenizer would tie them to a download and to whichever model is configured, so this one is a written rule over
code points that are listed here, not taken from Python's Unicode tables, which grow with each Python. Pieces of
at most seven letters come within 5 % of the counts of BERT's WordPiece on English and Chinese technical prose.
A change of the rule is a new version.
"""

import re
from collections.abc import Iterator
from typing import Protocol


class Tokenizer(Protocol):
    """Counts tokens. Counts add up over pieces of a text that were cut at white space or between two tokens."""

    @property
    def version(self) -> str:
        """Name and version in one word; enters the chunking policy's id."""

    def count(self, text: str) -> int:
        """How many tokens the text has; 0 only for white space."""

    def spans(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Where the tokens of `text[start:end]` lie, in order, as offsets into `text`."""


_ASCII_SPACE = "\\t-\\r\\x1c- "
_OTHER_SPACE = "\\x85\\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_DIGIT = "0-9"
# Each of these is a token: punctuation, symbols, the scripts that write no spaces, emoji.
_ASCII_SINGLE = "!-/:-@\\[-`{-~"
_OTHER_SINGLE = (
    "\\xa1-\\xbf"
    "\u2010-\u2027\u2030-\u205e\u2060-\u2bff\u2e80-\u2fff\u3001-\u9fff\ua000-\ua4cf\uac00-\ud7ff"
    "\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe6f\uff00-\uffef\U0001f000-\U0001faff\U00020000-\U0003ffff"
)
_SINGLE = _ASCII_SINGLE + _OTHER_SINGLE
_LETTER = f"^{_ASCII_SPACE}{_OTHER_SPACE}{_DIGIT}{_SINGLE}"
# Accents, variation selectors and skin tones stay with what they modify, so that no cut falls between them.
MARK = (
    "\u0300-\u036f\u064b-\u065f\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u200d\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff"
)
_FLAT_LIMIT = 2**20


class WordTokenizer:
    """`words-1`: up to seven letters, up to three digits, or one other character that is not white space."""

    version = "words-1"

    _pattern = re.compile(
        f"[{_LETTER}]{{1,7}}[{MARK}]{{0,8}}|[{_DIGIT}]{{1,3}}|[{_SINGLE}](?:[{MARK}]|(?<=\u200d)[{_SINGLE}]){{0,8}}"
    )

    def count(self, text: str) -> int:
        count = _count_without_marks(text)
        if count is not None:
            return count
        if len(text) > _FLAT_LIMIT:  # a list of all tokens would take fifty times the text's size
            return sum(1 for _ in self._pattern.finditer(text))
        return len(self._pattern.findall(text))

    def spans(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        for match in self._pattern.finditer(text, start, end):
            yield match.span()


# Most texts have no mark, and then a token need not be found to be counted: their number follows from how long the
# runs of letters and of digits are, and how many single characters there are. `bytes` counts these several times
# faster than the pattern finds tokens.


def _class_of(characters: str, yes: str, no: str) -> bytes:
    """For `bytes.translate`: ASCII characters of the class become `yes`, all other bytes `no`."""
    inside = re.compile(f"[{characters}]")
    return "".join(yes if code < 128 and inside.match(chr(code)) else no for code in range(256)).encode()


def _all_but(characters: str) -> bytes:
    """For `bytes.translate` to delete: every byte but the ASCII characters of the class."""
    return bytes(code for code, kept in enumerate(_class_of(characters, "x", " ")) if kept == ord(" "))


_ASCII = bytes(range(128))
_ASCII_DIGITS = b"0123456789"
_ALL_BUT_SINGLES_AND_DIGITS = _all_but(_ASCII_SINGLE + _DIGIT)
_DIGITS = _class_of(_DIGIT, "x", " ")
_LETTERS = _class_of(_LETTER, "x", " ")
# Of a character beyond ASCII, UTF-8's first byte stands for the letter, and the others are deleted.
_LETTERS_AND_FIRST_BYTES = _LETTERS[:128] + b"x" * 128
_FOLLOWING_BYTES = bytes(range(0x80, 0xC0))
_MARKS = re.compile(f"[{MARK}]")
_SINGLES_BEYOND_ASCII = re.compile(f"[{_OTHER_SINGLE}]+")
_GAPS_BEYOND_ASCII = re.compile(f"[{_OTHER_SPACE}{_OTHER_SINGLE}]+")


def _count_without_marks(text: str) -> int | None:
    """What the pattern counts in a text that has no mark; None where it has one."""
    data = text.encode("utf-8", "surrogatepass")
    singles_and_digits = data.translate(None, _ALL_BUT_SINGLES_AND_DIGITS)
    singles = singles_and_digits.translate(None, _ASCII_DIGITS)
    count = len(singles)
    letters = data.translate(_LETTERS)
    if len(data) > len(text):
        beyond = data.translate(None, _ASCII).decode("utf-8", "surrogatepass")
        if _MARKS.search(beyond):
            return None
        count += len(beyond) - len(_SINGLES_BEYOND_ASCII.sub("", beyond))
        if _GAPS_BEYOND_ASCII.sub("", beyond):  # there are letters among them
            data = _GAPS_BEYOND_ASCII.sub(" ", text).encode("utf-8", "surrogatepass")
            letters = data.translate(_LETTERS_AND_FIRST_BYTES, _FOLLOWING_BYTES)
    count += _parts(letters, 7)
    if len(singles) < len(singles_and_digits):
        count += _parts(data.translate(_DIGITS), 3)
    return count


def _parts(runs: bytes, longest: int) -> int:
    """How many parts of at most `longest` the runs of `x` have."""
    parted = runs.replace(b"x" * longest, b"x ")  # the rest of the run is a run of its own
    return parted.count(b"x ") + parted.endswith(b"x")
