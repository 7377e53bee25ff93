"""Letters that keyword search treats as others (ł as l, ß as ss, ё as е, ό as ο, أ as ا, ٣ as 3), and signs that it
ignores within words: Arabic vowel signs and elongation, and Hebrew points and cantillation marks.

FTS5 itself removes most Latin accents. These letters are replaced in queries, and in the texts that enter the word
index; the stored texts are unchanged. A letter only becomes letters, and so does a sign that stands alone. So both
texts have the same words in the same places, and FTS5 marks the right ones in the original.
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
_ZEROS = (0x660, 0x6F0, *range(0x966, 0xD67, 0x80))
"""Of Arabic, Persian and the scripts of India."""
_DIGITS = {chr(zero + digit): str(digit) for zero in _ZEROS for digit in range(10)}
SIGNS = "".join(map(chr, (*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7, *range(0x64B, 0x660), 0x670)))
"""Hebrew points and cantillation marks, and Arabic vowel signs."""
_ELONGATION = "\u0640"
IGNORED = "\u0311"
"""A Latin accent. FTS5 removes it from words; alone it is no word."""
_ALONE = {before + IGNORED: before + _ELONGATION for before in " \t\n\u00a0\"'([{*_-\u00ab\u201c\u201d\u25cc"}
"""A sign after these characters, which is a word in the original. Elongation is a word, too."""
_IS_ALONE = re.compile("|".join(map(re.escape, _ALONE)))
_OTHER_SCRIPTS = _DIGITS | dict.fromkeys(SIGNS + _ELONGATION, IGNORED)
_IN_OTHER_SCRIPTS = f"{IGNORED}{min(_OTHER_SCRIPTS)}-{max(_OTHER_SCRIPTS)}"
_REPLACED = re.compile(f"[{''.join(_PLAIN | _OTHER_SCRIPTS)}]")
_NUKTA = "\u093c"
_PAIRS = {pair: pair[0] for pair in (unicodedata.normalize("NFD", letter) for letter in _WITH_NUKTA)}
"""The same letters in two characters."""
_PAIR = re.compile("|".join(_PAIRS))
_FOR_ALL_TEXTS = _PLAIN | _PAIRS
REPLACEMENTS = _FOR_ALL_TEXTS | _OTHER_SCRIPTS | _ALONE


def fold(text: str) -> str:
    if text.isascii():
        return text
    text = _REPLACED.sub(lambda letter: REPLACEMENTS[letter[0]], text)
    if _NUKTA in text:
        text = _PAIR.sub(lambda pair: _PAIRS[pair[0]], text)
    return _IS_ALONE.sub(lambda sign: _ALONE[sign[0]], text) if IGNORED in text else text


def fold_whole(text: str) -> str:
    """As `fold`, for a whole text: a sign at its beginning stands alone, too."""
    return fold(f" {text}")[1:]


def folded_sql(column: str) -> str:
    """As `fold_whole`, in SQL that every program can run. The table `letters` has the numbered `REPLACEMENTS`."""
    return (
        f"iif(length({column}) <> length(CAST({column} AS BLOB)), ("  # ASCII needs nothing
        f"WITH RECURSIVE folded(done, text, last) AS (SELECT 0, ' ' || {column}, "
        f"iif({column} GLOB '*[{_IN_OTHER_SCRIPTS}]*', {len(REPLACEMENTS)}, {len(_FOR_ALL_TEXTS)}) UNION ALL "
        "SELECT number, replace(text, letter, plain), last FROM folded JOIN letters ON number = done + 1 "
        f"WHERE done < last) SELECT substr(text, 2) FROM folded WHERE done = last), {column})"
    )
