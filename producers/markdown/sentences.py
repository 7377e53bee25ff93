"""Where a stretch of text may be cut: between sentences of prose, between lines of code, tables and front matter.

A written rule for Latin and CJK scripts. It need not be right about every abbreviation: cuts only happen in units
over the hard maximum and at the edge of an overlap. It must be total, fixed, and lose nothing.
"""

import re
from collections.abc import Iterator

from chunksink.producers.markdown.document import Kind
from chunksink.producers.markdown.tokens import MARK

# Repetitions are bounded: a million full stops must not take the square of it. The first character is taken before
# its alternatives are tried, since a search for one of a few characters is fast.
_END = re.compile(
    r"[。！？｡.!?…\n](?:"
    rf"(?<=[。！？｡])[。！？｡」』”’）】》\"')\]]*(?![{MARK}])[ \t\n]*"
    r"|(?<=[.!?…])(?<![.!?…][.!?…])[.!?…]{0,7}[\"'”’»)\]*_`]{0,8}[ \t\n]+(?=[^\sa-z])"
    r"|(?<=\n)[ \t>]*\n[ \t\n>]*"
    r"|(?<=\n)(?=[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t])"
    r")"
)
_LINE = re.compile(r"\n+")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘„«]*$")
# Shorter than a word and followed by a capital: an initial (J. Smith), a German ordinal (3. Mai).
_SHORT = re.compile(r"[^\W\d_]|\d{1,2}")
_ENGLISH = "e.g i.e cf vs al approx ca dr mr mrs ms prof st jr sr no nr nos fig figs eq vol ed eds pp inc ltd co dept"
_GERMAN = "z.b d.h u.a u.u i.d.r s.o s.u bzw vgl evtl ggf inkl exkl abb bd hrsg str tel zzgl usf resp sog"
_ABBREVIATIONS = frozenset(f"{_ENGLISH} {_GERMAN}".split())
_FAR_ENOUGH = max(map(len, _ABBREVIATIONS)) + 2  # a word that is found to be longer is none of them


def sentence_spans(text: str, start: int, end: int, kind: Kind) -> Iterator[tuple[int, int]]:
    """Parts of `text[start:end]` that belong together, in order, without gaps; each takes the white space after it."""
    ends = _LINE if kind.is_literal else _END
    begin = at = start
    while match := ends.search(text, at, end):
        at = cut = match.end()
        if cut >= end:
            break
        if text[match.start()] == "." and _is_abbreviation(text, begin, match.start()):
            at = match.start() + 1  # what follows may end a paragraph or an item, and so the sentence
            continue
        if cut > begin:
            yield begin, cut
            begin = cut
    if begin < end:
        yield begin, end


def _is_abbreviation(text: str, begin: int, dot: int) -> bool:
    word = _LAST_WORD.search(text, max(begin, dot - _FAR_ENOUGH), dot)
    if word is None:
        return False
    return word[0].lower() in _ABBREVIATIONS or (len(word[0]) < 3 and _SHORT.fullmatch(word[0]) is not None)
