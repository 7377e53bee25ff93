"""The numbers that Word shows in lists. mammoth tells only that there is one: each list begins with 1 again there.

So every numbered paragraph begins with its number between two marks, and in the HTML that becomes the item's own.
"""

import re
from dataclasses import dataclass, field

from lxml import etree

from chunksink.producers.docx.xml import read_xml
from chunksink.producers.html.marks import NUMBER, NUMBER_END
from chunksink.producers.html.tags import Element

_OF_ITEM = re.compile(rf"<li>((?:<[^<>]*>)*){NUMBER}(\d+){NUMBER_END}")
_MARK = re.compile(rf"{NUMBER}\d+{NUMBER_END}")


def put_back(html: str) -> str:
    return _MARK.sub("", _OF_ITEM.sub(r'<li value="\2">\1', html))


@dataclass
class _Level:
    start: int
    is_numbered: bool


@dataclass
class _List:
    """All paragraphs of one definition are counted together, by level."""

    levels: dict[int, _Level] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)


class Numbers:
    """Counts the paragraphs of a document in their order, by the definitions in its part `numbering`."""

    def __init__(self, part: bytes | None) -> None:
        self._lists: dict[str, _List] = {}
        self._by_number: dict[str, str] = {}
        self._starts: dict[tuple[str, int], int] = {}  # where a number of its own begins the list anew
        self._by_style: dict[str, tuple[str, int]] = {}
        if part is not None:
            self._read(part)

    def _read(self, part: bytes) -> None:
        root = read_xml(part)
        word = root.tag.removesuffix("numbering")
        for definition in root.iter(f"{word}abstractNum"):
            name = definition.get(f"{word}abstractNumId", "")
            known = self._lists.setdefault(name, _List())
            for level in definition.iter(f"{word}lvl"):
                depth = _whole(level.get(f"{word}ilvl"), 0)
                form = _value(level, f"{word}numFmt", word)
                known.levels[depth] = _Level(_whole(_value(level, f"{word}start", word), 1), form != "bullet")
                style = _value(level, f"{word}pStyle", word)
                if style is not None:
                    self._by_style[style] = (name, depth)
        for number in root.iter(f"{word}num"):
            name = number.get(f"{word}numId", "")
            self._by_number[name] = _value(number, f"{word}abstractNumId", word) or ""
            for change in number.iter(f"{word}lvlOverride"):
                start = _value(change, f"{word}startOverride", word)
                if start is not None:
                    self._starts[name, _whole(change.get(f"{word}ilvl"), 0)] = _whole(start, 1)

    def mark(self, root: Element, word: str) -> None:
        for paragraph in root.iter(f"{word}p"):
            number = self._next(paragraph, word)
            if number is not None and next(paragraph.iter(f"{word}t"), None) is not None:
                run = paragraph.makeelement(f"{word}r")
                etree.SubElement(run, f"{word}t").text = f"{NUMBER}{number}{NUMBER_END}"
                properties = paragraph.find(f"{word}pPr")
                properties.addnext(run)

    def _next(self, paragraph: Element, word: str) -> int | None:
        """Which list it belongs to is asked as mammoth asks it."""
        said = f"{word}pPr/{word}numPr/{word}"
        number, depth = _value(paragraph, f"{said}numId", word), _value(paragraph, f"{said}ilvl", word)
        style = _value(paragraph, f"{word}pPr/{word}pStyle", word)
        place = (self._by_number.get(number or "", ""), _whole(depth, 0))
        if depth is None or number is None:
            place = self._by_style.get(style or "", place)
        known = self._lists.get(place[0])
        level = known.levels.get(place[1]) if known else None
        if known is None or level is None or not level.is_numbered:
            return None
        begin = self._starts.pop((number or "", place[1]), None)
        if begin is None:
            begin = known.last[place[1]] + 1 if place[1] in known.last else level.start
        known.last = {depth: last for depth, last in known.last.items() if depth < place[1]} | {place[1]: begin}
        return begin


def _value(element: Element, path: str, word: str) -> str | None:
    found = element.find(path)
    return None if found is None else found.get(f"{word}val")


def _whole(value: str | None, otherwise: int) -> int:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 10 else otherwise
