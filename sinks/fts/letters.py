"""Letters that keyword search treats as others: ł as l, ß as ss, ё as е, ό as ο, أ as ا.

FTS5 itself removes most Latin accents. These letters are replaced in queries, and in the texts that enter the word
index; the stored texts are unchanged. A letter only becomes letters. So both texts have the same words in the same
places, and FTS5 marks the right ones in the original. The exception is a nukta without a letter: the marks of words
after it are shifted.
"""

import re
import unicodedata

from chunksink.sinks.payload import batches

_ACCENTED = "ёЁάέήίόύώϊϋΐΰΆΈΉΊΌΎΏΪΫ\u0622\u0623\u0625\u0929\u0931\u0934" + "".join(map(chr, range(0x958, 0x960)))
"""Letters that FTS5 does not separate from their accents: Cyrillic, Greek, Arabic alef, Devanagari with a nukta."""
_LIGATURES = map(chr, range(0xFB00, 0xFB07))
_PLAIN = {
    **dict(zip("łŁøØđĐðÐı", "llooddddi", strict=True)),
    **dict(zip("þÞßẞæÆœŒ", ("th", "th", "ss", "ss", "ae", "ae", "oe", "oe"), strict=True)),
    **{letter: unicodedata.normalize("NFKC", letter) for letter in _LIGATURES},
    **{letter: unicodedata.normalize("NFD", letter)[0] for letter in _ACCENTED},
    "\u0671": "\u0627",  # another Arabic alef
    "\u093c": "",  # the nukta
}
_REPLACED = re.compile(f"[{''.join(_PLAIN)}]")
_NESTED = 10
"""Functions within each other. SQLite's parser allows not many more than twenty, and here no more than 70 letters."""


def fold(text: str) -> str:
    return text if text.isascii() else _REPLACED.sub(lambda letter: _PLAIN[letter[0]], text)


def folded_sql(column: str) -> str:
    """As `fold`, for other programs: with functions of every SQLite only."""
    source = f"SELECT {column} AS folded"
    for some in batches(list(_PLAIN.items()), _NESTED):
        folded = "folded"
        for letter, plain in some:
            folded = f"replace({folded}, '{letter}', '{plain}')"
        source = f"SELECT {folded} AS folded FROM ({source})"
    is_ascii = f"length({column}) = length(CAST({column} AS BLOB))"
    return f"CASE WHEN {is_ascii} THEN {column} ELSE ({source}) END"
