"""What stands above or below its line. Markdown has no mark for it, and without one `10<sup>24</sup>` would be 1024.

The signs are those that people type: `10^24`, `x^(n+1)`, `1010_2`. What is read as one word stays one: H2O, 1st, ACME™.
"""

import re
from itertools import islice

from lxml import etree

from chunksink.producers.html.tags import INLINE, Element, text_of

_SIGNS = {"sup": "^", "sub": "_"}
# Ends of words, those of one letter only after a number: `1e` is the first, and `x^e` a power.
_ENDINGS = frozenset(
    (
        *("st", "nd", "rd", "th", "er", "ers", "re", "es", "ère", "ères", "ème", "èmes", "eme", "me", "mo", "lle"),
        *("os", "as", "tm", "sm"),
    )
)
_ENDINGS_OF_NUMBERS = _ENDINGS | frozenset("eoa")
_ONE = re.compile(r"[+\-−–]?\w+(?:\.\w+)?[+\-−–]?|\([^()]*\)")
_WORD = re.compile(r"\w+(?:\.\w+)?")
# What follows is a word then, and no symbol of an element: `14C`.
_BEGINS_WORD = re.compile(r"[^\W\d_]{3}")

# In a link that is a mark; a long one may hold thousands of them.
_MOST_TEXTS = 20


def mark_raised(root: Element) -> None:
    """Puts a sign before what is raised or lowered, where it would be read as part of what it stands at."""
    if next(root.iter(*_SIGNS), None) is None:
        return
    before = ""  # the character before, on the same line
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if element.tag not in INLINE:
            before = ""
        if event == "start" and element.tag in _SIGNS:
            _mark(element, before.strip())
        text = element.text if event == "start" else element.tail
        before = text[-1] if text else before


def _mark(element: Element, before: str) -> None:
    said = text_of(element).strip()
    after = (element.tail or "")[:1]
    if not any(map(str.isalnum, said)) or said.startswith("["):
        return
    if not before:
        if element.tag == "sup" and _BEGINS_WORD.match(element.tail or ""):
            element.tail = f" {element.tail}"  # the number of a note or a verse
        return
    notes = _notes(element, said) if element.tag == "sup" else []
    for note in notes:
        _put_between(note, "[", "]")
    if notes or said.lower() in (_ENDINGS_OF_NUMBERS if before.isdigit() else _ENDINGS):
        return
    goes_on = (said[-1].isdigit() and after.isdigit()) or (said[-1].isalpha() and after.isalpha())
    is_plain = _WORD.fullmatch(said) and not (before.isdigit() and said[0].isdigit()) and not goes_on
    if element.tag == "sub" and is_plain:
        return
    sign = _SIGNS[element.tag]
    is_one = _ONE.fullmatch(said) and not goes_on
    _put_between(element, sign if is_one else f"{sign}(", "" if is_one else ")")


def _notes(element: Element, said: str) -> list[Element]:
    """Links of a mark that leads to a note, inside of it or around it."""
    around = next(element.iterancestors("a"), None)
    if around is not None and "".join(islice(around.itertext(), _MOST_TEXTS)).strip() == said:
        return [around] if around.get("href") else []
    return [link for link in element.iter("a") if link.get("href") and any(map(str.isalnum, text_of(link)))]


def _put_between(element: Element, opening: str, closing: str) -> None:
    element.text = opening + (element.text or "").lstrip()
    if len(element):
        element[-1].tail = (element[-1].tail or "").rstrip() + closing
    else:
        element.text = element.text.rstrip() + closing
