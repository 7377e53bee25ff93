"""Where a link to a heading leads: its own id, or that of what stands in it, right before it, or begins with it."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from producers.html.headings import sign_of
from producers.html.tags import HEADINGS, Element, text_of
from producers.markdown.document import Document

_MOST_CHARACTERS = 200
# Headings in them begin no section.
_QUOTED = ("li", "ul", "ol", "menu", "dir", "blockquote", "table")


def anchors_of(root: Element) -> dict[Element, str]:
    """Headings and their ids, as the page has them before anything in it is moved."""
    found = ((heading, next(_ids_of(heading), "")) for heading in root.iter(*HEADINGS) if _letters(text_of(heading)))
    return {heading: anchor for heading, anchor in found if anchor}


def listed(root: Element, anchors: Mapping[Element, str]) -> tuple[tuple[str, str], ...]:
    """The page's own headings in their order: their letters, and the id or nothing."""
    headings = (heading for heading in root.iter(*HEADINGS) if next(heading.iterancestors(*_QUOTED), None) is None)
    return tuple((_letters(text_of(heading)), anchors.get(heading, "")) for heading in headings)


def place_anchors(headings: Sequence[tuple[str, str]], document: Document) -> dict[int, str]:
    """The ids by the sections of the document, whose headings are told by their letters, one after the other."""
    places: dict[str, list[int]] = {}
    for number, (letters, _) in enumerate(headings):
        places.setdefault(letters, []).append(number)
    anchors: dict[int, str] = {}
    begin = 0
    for section, path in enumerate(document.sections):
        own = places.get(_letters(path[-1]), []) if path else []
        place = bisect_left(own, begin)
        if place < len(own):
            begin = own[place] + 1
            if headings[own[place]][1]:
                anchors[section] = headings[own[place]][1]
    return anchors


def _ids_of(heading: Element) -> Iterator[str]:
    for element in heading.iter():
        yield from _id_of(element)
    before = heading.getprevious()
    if before is not None and _is_empty(before):
        for element in before.iter():
            yield from _id_of(element)
    element = heading
    while _is_first(element):
        element = element.getparent()
        if element is None or element.tag in ("body", "html"):
            break
        yield from _id_of(element)
    for link in heading.iter("a"):
        if sign_of(link) is not None and link.get("href").startswith("#"):
            yield unquote(link.get("href")[1:])


def _id_of(element: Element) -> Iterator[str]:
    for name in ("id", "name") if element.tag == "a" else ("id",):
        value = element.get(name, "")
        if value and len(value) <= _MOST_CHARACTERS and not any(map(str.isspace, value)):
            yield value


def _is_first(element: Element) -> bool:
    parent = element.getparent()
    if parent is None or _has_text(parent.text):
        return False
    return all(map(_is_empty, element.itersiblings(preceding=True)))


def _is_empty(element: Element) -> bool:
    """Shows nothing, nor does what comes right after it."""
    return not any(map(_has_text, (element.tail, *element.itertext())))


def _has_text(text: str | None) -> bool:
    return bool(text) and not str(text).isspace()


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
