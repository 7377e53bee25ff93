"""Which elements do what, and the few moves by which a tree of HTML is changed without losing text."""

from collections.abc import Collection, Iterable
from typing import Any

Element = Any  # lxml has no types

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
LISTS = ("ul", "ol", "dl", "menu", "dir")
# What Markdown says at the beginning of a line and cannot say inside of one.
STRUCTURE = (*HEADINGS, "pre", *LISTS, "table", "blockquote", "hr")
BLOCKS = (
    *STRUCTURE,
    *("p", "div", "section", "article", "aside", "nav", "header", "footer", "main", "address", "center", "search"),
    *("form", "fieldset", "details", "figure", "hgroup", "li", "dt", "dd"),
)
TABLE_PARTS = ("thead", "tbody", "tfoot", "tr", "td", "th", "colgroup", "col", "caption")
# Whatever else has a block in it is inline, and may be written between marks that have to close in the same paragraph.
HOLDERS = frozenset((*BLOCKS, *TABLE_PARTS, "html", "head", "body", "a", "summary", "figcaption", "legend"))
STRUCK = ("del", "s", "strike")
CODE = ("code", "kbd", "samp", "tt")
CAPTIONS = ("summary", "figcaption", "legend", "caption")
# Elements that begin no line of their own.
INLINE = frozenset(
    (
        *(*STRUCK, *CODE, "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "dfn", "em", "font", "i"),
        *("img", "ins", "label", "mark", "nobr", "q", "rb", "rp", "rt", "ruby", "small", "span", "strong", "sub"),
        *("sup", "time", "u", "var", "wbr"),
        *("math", "mfrac", "mi", "mn", "mo", "mover", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup"),
        *("msup", "mtext", "munder", "munderover", "semantics"),
    )
)
# Written without an end.
VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)


def holders_of(root: Element, tags: Iterable[str], outside: Collection[Element] = ()) -> set[Element]:
    """Every element that has one of these somewhere in it; those that lie in `outside` do not count."""
    holders: set[Element] = set()
    for element in root.iter(*tags):
        holder = element.getparent()
        while holder is not None and holder not in holders and holder not in outside:
            holders.add(holder)
            holder = holder.getparent()
    return holders


def inside_of(root: Element, *tags: str) -> set[Element]:
    """Every element that is one of these, or lies in one."""
    return {element for outer in root.iter(*tags) for element in outer.iter()}


def is_inline(tag: str) -> bool:
    """Begins no line of its own, like the elements that programs and other formats name (`my-icon`, `o:p`)."""
    return tag in INLINE or "-" in tag or ":" in tag


def text_of(element: Element) -> str:
    return "".join(element.itertext())


def drop(element: Element) -> None:
    """Takes the element away with what is in it; the text after it stays."""
    parent, before = element.getparent(), element.getprevious()
    tail, element.tail = element.tail, None
    parent.remove(element)
    if tail and before is not None:
        before.tail = (before.tail or "") + tail
    elif tail:
        parent.text = (parent.text or "") + tail


def put_after(element: Element, place: Element) -> None:
    """Right behind this place, in front of the text that stands there. The element's own tail must have been moved."""
    element.tail, place.tail = place.tail, None
    place.addnext(element)
