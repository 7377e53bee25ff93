"""Where a link to a heading leads: its own id, or that of what stands in it, right before it, or begins with it."""

from collections.abc import Iterator
from urllib.parse import unquote

from chunksink.producers.html.headings import sign_of
from chunksink.producers.html.tags import HEADINGS, Element, text_of

_MOST_CHARACTERS = 200


def anchors_of(root: Element) -> dict[Element, str]:
    """Headings and their ids, as the page has them before anything in it is moved."""
    found = ((heading, next(_ids_of(heading), "")) for heading in root.iter(*HEADINGS) if _letters(text_of(heading)))
    return {heading: anchor for heading, anchor in found if anchor}


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
