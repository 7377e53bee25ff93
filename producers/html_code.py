"""Links in code: the code is written as it is shown, so they are told beside it."""

from collections.abc import Iterable, Iterator

from lxml import etree  # type: ignore[import-untyped]

from producers.html_tags import Element
from producers.markdown.document import Link
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
        yield shown[shown.rfind("\n", 0, place) + 1 : end if end >= 0 else None].strip(), url


def place_links(links: Iterable[tuple[str, str]], text: str) -> Iterator[Link]:
    """The same where the text has those lines; a line that it writes otherwise counts to the one before it."""
    place = 0
    for line, url in links:
        place = max(place, text.find(line, place))
        yield Link(url, classify(url), place)
