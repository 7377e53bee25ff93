"""Ways of writing the same: what is typed in one of them stands in texts in another."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import combinations

_WIDE = {code: code + 0xFEE0 for code in (*range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B))}
_NARROW = {code + 0xFEE0: code for code in range(0x21, 0x7F)}
_UNREAD = re.compile("[\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]")
"""Soft hyphens, Hebrew points, Arabic vowel signs and the stretching of a word."""
_HALF_WIDE = re.compile("[\uff66-\uffdc]")
_LIGATURES = (("fi", "\ufb01"), ("fl", "\ufb02"), ("ff", "\ufb00"), ("ffi", "\ufb03"), ("ffl", "\ufb04"))
_COMMON = 2  # of them that texts have also where they do not have the others
_VERSION = re.compile(r"\W*(v?)(\d+(?:\.\d+)+)\W*", re.IGNORECASE)
_NAME = re.compile("([^\\W\\d_]{2,})([-\u2010-\u2015]?)(\\d+)")
_LETTERS = (("ss", "ß"), ("oe", "œ"), ("ae", "æ"))  # of texts that may have ligatures besides
_MOST_DOTTED = 60  # characters: each е in what is longer would be one more to ask for
_ALL_DOTTED = 4  # so many can have all their spellings
_JOINED = (*((joined, letters) for letters, joined in (*_LIGATURES, *_LETTERS)), ("\ufb05", "st"), ("\ufb06", "st"))


def spellings(term: str) -> list[str]:
    """How it may be written in a text, itself first: FTS5 holds ß, œ, ё and ligatures for signs of their own, and soft
    hyphens and vowel signs for the end of a word. A version may stand with a v or without, a name with digits as one
    word or two."""
    plain = _UNREAD.sub("", term.translate(_NARROW).lower())
    for joined, letters in _JOINED:
        plain = plain.replace(joined, letters)
    found = [plain, *(plain.replace(letters, joined) for letters, joined in _LETTERS), *_with_or_without_dots(plain)]
    for ligatures in (_LIGATURES, _LIGATURES[:_COMMON]):
        told = plain
        for letters, joined in ligatures[::-1]:
            told = told.replace(letters, joined)
        found.append(told)
    if version := _VERSION.fullmatch(term):
        found.append(version[2] if version[1] else f"v{version[2]}")
    if name := _NAME.fullmatch(plain):
        letters, hyphen, digits = name.groups()
        found.append(f"{letters}{digits}" if hyphen else f"{letters} {digits}")
    return [term, *(one for one in dict.fromkeys(found) if one != term.lower())]


def _with_or_without_dots(words: str) -> Iterator[str]:
    """Russian texts have ё or е for it: each may be written so; where there are many, one of them."""
    plain = words.replace("ё", "е")
    places = [place for place, sign in enumerate(plain[:_MOST_DOTTED]) if sign == "е"]
    most = len(places) if len(places) <= _ALL_DOTTED else 1
    for number in range(most + 1):
        for dotted in combinations(places, number):
            yield "".join("ё" if place in dotted else sign for place, sign in enumerate(plain))


def widths(word: str) -> list[str]:
    """Itself, and in letters as wide as Chinese characters, or narrow ones: texts with such characters have both."""
    narrow = word.translate(_NARROW)
    return list(dict.fromkeys([word, narrow, narrow.translate(_WIDE)]))


def composed(run: str) -> list[str]:
    """Itself, and with a sign for each character, as most texts have it; of half-wide kana the usual ones."""
    usual = unicodedata.normalize("NFKC", run) if _HALF_WIDE.search(run) else unicodedata.normalize("NFC", run)
    return list(dict.fromkeys([run, usual]))
