"""Links in code: the code is written as it is shown, so they are told beside it."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from lxml import etree

from producers.html.tags import Element
from producers.markdown.document import Document, Kind, Link
from producers.markdown.links import classify


def take_links(root: Element) -> tuple[tuple[str, str], ...]:
    """Takes the links out of all code, and tells of each its line and address. Those of lines to themselves just go."""
    found: list[tuple[str, str]] = []
    for code in root.iter("pre"):
        if next(code.iter("a"), None) is not None:
            found += _links_of(code)
            etree.strip_tags(code, "a")
    return tuple(found)


def _links_of(code: Element) -> Iterator[tuple[str, str]]:
    parts: list[str] = []
    links: list[tuple[int, str]] = []
    length = 0
    for event, element in etree.iterwalk(code, events=("start", "end")):
        if event == "start" and element.tag == "a" and not element.get("href", "#").startswith("#"):
            links.append((length, element.get("href")))
        if element is code and event == "end":
            break
        text = (element.text if event == "start" else element.tail) or ""
        parts.append(text)
        length += len(text)
    shown = "".join(parts)
    for place, url in links:
        end = shown.find("\n", place)
        yield _bare(shown[shown.rfind("\n", 0, place) + 1 : end if end >= 0 else None]), url


def place_links(links: Sequence[tuple[str, str]], document: Document) -> Iterator[Link]:
    """The same, each where its line is among the document's code; without such a line, where the one before it is."""
    places = _lines_of(document) if links else {}
    place = 0
    for line, url in links:
        own = places.get(line, [])
        number = bisect_left(own, place)
        if number < len(own):
            place = own[number]
        yield Link(url, classify(url), place)


def _lines_of(document: Document) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for block in document.blocks:
        if block.kind is Kind.CODE:
            place = block.start
            for line in document.text[block.start : block.end].split("\n"):
                places.setdefault(_bare(line), []).append(place)
                place += len(line) + 1
    return places


def _bare(line: str) -> str:
    """Without what a list or a quote puts before it."""
    return line.replace("\xa0", " ").strip(" \t>")
