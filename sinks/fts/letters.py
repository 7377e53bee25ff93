"""Letters that keyword search treats as others: ł as l, ß as ss, ё as е, ό as ο, أ as ا.

FTS5 itself removes most Latin accents. These letters are replaced in queries, and in the texts that enter the word
index; the stored texts are unchanged. A letter only becomes letters. So both texts have the same words in the same
places, and FTS5 marks the right ones in the original.
"""

import re
import unicodedata

_WITH_NUKTA = "\u0929\u0931\u0934" + "".join(map(chr, range(0x958, 0x960)))
_ACCENTED = "ёЁάέήίόύώϊϋΐΰΆΈΉΊΌΎΏΪΫ\u0622\u0623\u0625" + _WITH_NUKTA
"""Letters that FTS5 does not separate from their accents: Cyrillic, Greek, Arabic alef, Devanagari with a nukta."""
_LIGATURES = map(chr, range(0xFB00, 0xFB07))
_PLAIN = {
    **dict(zip("łŁøØđĐðÐı", "llooddddi", strict=True)),
    **dict(zip("þÞßẞæÆœŒ", ("th", "th", "ss", "ss", "ae", "ae", "oe", "oe"), strict=True)),
    **{letter: unicodedata.normalize("NFKC", letter) for letter in _LIGATURES},
    **{letter: unicodedata.normalize("NFD", letter)[0] for letter in _ACCENTED},
    "\u0671": "\u0627",  # another Arabic alef
}
_REPLACED = re.compile(f"[{''.join(_PLAIN)}]")
_NUKTA = "\u093c"
_PAIRS = {pair: pair[0] for pair in (unicodedata.normalize("NFD", letter) for letter in _WITH_NUKTA)}
"""The same letters in two characters."""
_PAIR = re.compile("|".join(_PAIRS))
REPLACEMENTS = _PLAIN | _PAIRS


def fold(text: str) -> str:
    if text.isascii():
        return text
    text = _REPLACED.sub(lambda letter: _PLAIN[letter[0]], text)
    return _PAIR.sub(lambda pair: _PAIRS[pair[0]], text) if _NUKTA in text else text


def folded_sql(column: str) -> str:
    """As `fold`, in SQL that every program can run. The table `letters` has the numbered `REPLACEMENTS`."""
    return (
        f"iif(length({column}) <> length(CAST({column} AS BLOB)), ("  # ASCII needs nothing
        f"WITH RECURSIVE folded(done, text) AS (SELECT 0, {column} UNION ALL SELECT number, "
        "replace(text, letter, plain) FROM folded JOIN letters ON number = done + 1) "
        f"SELECT text FROM folded WHERE done = {len(REPLACEMENTS)}), {column})"
    )
