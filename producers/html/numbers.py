"""Numbered lists say the numbers that the page shows. The converter counts up by one, so that others begin a list anew.

It writes `1.` and `1)` in turns where one list follows another; here all parts of a list are written in one way, for
then they are still one list.
"""

import re

from chunksink.producers.html.marks import IN_TURN
from chunksink.producers.html.tags import Element, put_after

_DIGITS = 9  # of a list's number in CommonMark
_WRITTEN_IN_TURN = re.compile(rf"(\d[.)])([^\w\n]*){IN_TURN}")
_OTHER = {".": ")", ")": "."}


def number_items(root: Element) -> None:
    """For items with a number of their own, and lists that count down."""
    for items in list(root.iter("ol")):
        if "reversed" in items.attrib or any(child.get("value") for child in items.iterchildren("li")):
            _part(items)


def _part(items: Element) -> None:
    step = -1 if "reversed" in items.attrib else 1
    count = sum(1 for _ in items.iterchildren("li"))
    number = _number(items.get("start"), count if step < 0 else 1)
    parts: list[tuple[int, list[Element]]] = []
    expected: int | None = None
    for child in items:
        if child.tag == "li":
            number = _number(child.get("value"), number)
            if number != expected:
                parts.append((number, []))
            expected = number + 1
            number = max(0, number + step)  # Markdown has no lower ones
        if parts:
            parts[-1][1].append(child)
    if not parts:
        return
    items.set("start", str(parts[0][0]))
    place = items
    for turn, (begin, children) in enumerate(parts[1:], start=1):
        part = items.makeelement("ol", {"start": str(begin)})
        part.extend(children)
        put_after(part, place)
        place = part
        if turn % 2:
            for item in part.iterchildren("li"):
                _mark(item)


def _mark(item: Element) -> None:
    """At its first words."""
    while len(item) and not (item.text or "").strip():
        item = item[0]
    if item.text:
        item.text = IN_TURN + item.text


def write_alike(content: str) -> str:
    if IN_TURN not in content:
        return content
    turned = _WRITTEN_IN_TURN.sub(lambda mark: f"{mark[1][0]}{_OTHER[mark[1][1]]}{mark[2]}", content)
    return turned.replace(IN_TURN, "")


def _number(value: str | None, otherwise: int) -> int:
    said = (value or "").strip()
    return int(said) if said.isascii() and said.isdigit() and len(said) <= _DIGITS else otherwise
