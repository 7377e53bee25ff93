"""The tree of an HTML page, tidied so that as Markdown it keeps its headings, code and links.

HTML may nest anything in anything, and lays it out by styles; Markdown says what a thing is at the beginning of a
line. Three things make the two agree: tables that only place things are taken apart (`tables`), a block never
stands inside of what is written between marks (`nesting`), and headings say their words only (`headings`).
No text goes, except of what `_UNREAD` names, of what a page says is of its site (`landmarks`), and numbers of lines
(`gutters`).
"""

import re
from dataclasses import dataclass

from lxml import etree

from chunksink.producers.html.addresses import describe_pictures, link_what_is_shown, resolver
from chunksink.producers.html.anchors import anchors_of
from chunksink.producers.html.confluence import read_storage
from chunksink.producers.html.gutters import drop_line_numbers
from chunksink.producers.html.headings import drop_edit_links, drop_permalinks, mark_signs
from chunksink.producers.html.landmarks import empty_landmarks
from chunksink.producers.html.marks import BACKSLASH
from chunksink.producers.html.nesting import part_blocks
from chunksink.producers.html.notes import Note, leave_notes
from chunksink.producers.html.numbers import number_items
from chunksink.producers.html.raised import mark_raised
from chunksink.producers.html.tables import take_apart
from chunksink.producers.html.tags import CODE, HEADINGS, VOID, Element, drop, inside_of, is_inline, put_after

# The wheels of lxml bring their own libxml2; a system's own may be another.
PARSER_VERSIONS = f"lxml-{etree.__version__}+libxml2-{'.'.join(map(str, etree.LIBXML_VERSION))}"
# Programs, styles, and what a program would make of its page.
_UNREAD = ("script", "style", "template")
_DRAWING = "svg"
_SHOWN = etree.XPath(
    ".//text()[(ancestor::text or ancestor::foreignobject)"
    " and not(ancestor::title or ancestor::desc or ancestor::defs or ancestor::symbol)]"
)
# The parser gives what is in them as a text with tags in it.
_RAW = ("iframe", "noembed", "noframes")
_MEDIA = ("video", "audio")
_SOURCES = ("source", "track")
_HEAD = ("title", "meta", "link", "base", "basefont", "bgsound")
_VERBATIM = ("listing", "xmp", "plaintext")
# The parser stops there, and browsers do not.
_END_OF_PAGE = re.compile(r"</(?:body|html)\s*>|<(?:body|html)\b[^<>]*/>", re.IGNORECASE)
# The parser ends a heading where a paragraph begins in it.
_HEADING = re.compile(r"<h([1-6])\b[^<>]*>[^<]*(?:<(?!/?h[1-6]\b)[^<]*){1,99}</h\1\s*>", re.IGNORECASE)
# The parser does not know that these have no end.
_VOID = re.compile(r"<(wbr|source|track|embed|keygen|bgsound)\b([^<>]*?)/?>", re.IGNORECASE)
_PARAGRAPH = re.compile(r"</?p\b[^<>]*>", re.IGNORECASE)
# What they hold comes after a mark of their own.
_BEGUN = frozenset((*HEADINGS, "td", "th"))
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_:.-]*")
# What the converter asks for, of an element that has other attributes than HTML knows.
_READ = frozenset(("href", "src", "alt", "title", "class", "start", "value", "type", "colspan", "rowspan", "content"))
_SPACE = re.compile(r"[ \t\n\f\r]+")
# At the beginning of a line Markdown takes it for code, a heading, a list, a quote, a rule or HTML. The converter sees
# to that only where it sees that a line begins.
_MARK = re.compile(
    r"\s*(?=```|~~~|#{1,6}(?:\s|$)|[-+*>](?:\s|$)|[-*_=](?:\s*[-*_=])+\s*$|<[A-Za-z/!?])"
    r"(?!<[A-Za-z][A-Za-z0-9+.-]{1,31}:)"
)


class _CutShort(Exception):
    """The parser has ended in the middle of the page: 2,048 elements lie in one another there."""


@dataclass(frozen=True)
class Tidied:
    """A page as XHTML, with `BACKSLASH` before signs that are text, and what its notes say; None where it has none.
    `lacks_site`, `lacks_drawings`: what it said of its site, and within drawings, is left out."""

    html: str
    notes: tuple[Note, ...] | None = None
    lacks_site: bool = False
    lacks_drawings: bool = False


def tidy(page: str) -> Tidied | None:
    """The same page, but None where it is nested too deeply. It is one that `page.cleaned` has made."""
    try:
        root = _parse(page)
    except _CutShort:
        return None
    if root is None:
        return Tidied("")
    etree.strip_elements(root, *_UNREAD, with_tail=False)
    _empty_drawings(root)
    _read_formulas(root)
    _empty_heads(root)
    _read_raw(root)
    lacks_site = empty_landmarks(root)
    lacks_drawings = next(root.iter(_DRAWING), None) is not None
    etree.strip_elements(root, _DRAWING, with_tail=False)
    _read_ruby(root)
    read_storage(root)
    link_what_is_shown(root)
    anchors = anchors_of(root)
    drop_edit_links(root)
    drop_permalinks(root)
    drop_line_numbers(root)
    take_apart(root)
    part_blocks(root)
    mark_raised(root)
    describe_pictures(root)
    mark_signs(root)
    _join_lines(root)
    number_items(root)
    notes = leave_notes(root, anchors, resolver(root))
    _make_writable(root)
    return Tidied(str(etree.tostring(root, method="xml", encoding="unicode")), notes, lacks_site, lacks_drawings)


def _parse(page: str) -> Element | None:
    """The page's tree, None where it is empty."""
    text = _END_OF_PAGE.sub("", page)
    text = _HEADING.sub(lambda heading: _PARAGRAPH.sub(" ", heading[0]), text)
    text = _VOID.sub(r"<\1\2 />", text)
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, collect_ids=False
    )
    root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    if parser.error_log.filter_from_fatals():
        raise _CutShort
    return root


def _empty_drawings(root: Element) -> None:
    """Those that show words stay empty, until it is known whether they are of the page or of its site."""
    for drawing in list(root.iter(_DRAWING)):
        if drawing.getparent() is None or next(drawing.iterancestors(_DRAWING), None) is not None:
            continue
        if _shows_words(drawing):
            tail = drawing.tail
            drawing.clear()
            drawing.tail = tail
        else:
            drop(drawing)


def _shows_words(drawing: Element) -> bool:
    """Titles of icons are not shown, nor what is only defined."""
    return any(any(map(str.isalpha, text)) for text in _SHOWN(drawing))


def _read_formulas(root: Element) -> None:
    """They say for programs once more what they say."""
    for note in list(root.iter("annotation", "annotation-xml")):
        if note.getparent().tag == "semantics" and note.getprevious() is not None:
            drop(note)
    for formula in root.iter("math"):  # of which the converter would take the white space, and join words
        formula.tag = "span"


def _empty_heads(root: Element) -> None:
    """A page may leave out where its head ends, and say there what browsers without programs show."""
    for head in list(root.iter("head")):
        shown = [child for child in head if child.tag not in _HEAD]
        if shown:
            rest = head.makeelement("div")
            rest.extend(shown)
            put_after(rest, head)


def _read_raw(root: Element) -> None:
    """What the parser takes for text without tags, and what stands in place of what a page brings in."""
    for element in list(root.iter(*_RAW, *_MEDIA)):
        shown = element.makeelement("div")
        shown.text, element.text = element.text, None
        if element.tag in _MEDIA:
            shown.extend([child for child in element if child.tag not in _SOURCES])
        else:
            shown.extend(_read_fallback(shown))
        put_after(shown, element)
        _link_to(element)
    for element in list(root.iter(*_VERBATIM, "textarea")):
        is_line = element.tag == "textarea" and "\n" not in (element.text or "")
        element.tag = "div" if is_line else "pre"


def _link_to(element: Element) -> None:
    """What the page brings in, by its title."""
    address = element.get("src") or next((source.get("src") for source in element.iter("source")), None)
    if address:
        for child in list(element):
            drop(child)
        element.tag, element.text = "a", f"{element.get('title') or ''} {element.text or ''}"
        element.set("href", address)


def _read_fallback(shown: Element) -> list[Element]:
    inner = _parse(shown.text) if shown.text and "<" in shown.text else None
    if inner is None:
        return []
    etree.strip_elements(inner, *_UNREAD, _DRAWING, with_tail=False)
    for deeper in list(inner.iter(*_RAW, *_MEDIA)):
        deeper.tag = "div"
    shown.text = None
    return list(inner)


def _read_ruby(root: Element) -> None:
    """The converter puts a reading in brackets, and so do the page's own, of which it loses what lies in them."""
    for bracket in root.iter("rp"):
        if not any(map(str.isalnum, bracket.text or "")):
            bracket.text = None
    etree.strip_tags(root, "rp")


def _join_lines(root: Element) -> None:
    """Line breaks are spaces, but in code. What would be read as a mark at the beginning of a line is text."""
    literal = inside_of(root, "pre", "title")
    code = inside_of(root, *CODE)
    begins = True
    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = element.tag
        begins = begins or not is_inline(tag)
        if event == "start":
            begins = begins and tag not in _BEGUN
            text, holder = element.text, element
        else:
            text, holder = element.tail, None
        if not text or (begins and text.isspace()):
            continue
        if holder is None:
            holder = element.getparent()
        if holder in literal:
            continue
        shown = _SPACE.sub(" ", text) if "\n" in text else text
        if begins:
            begins = False
            mark = _MARK.match(shown)
            if mark and holder not in code:
                shown = f"{shown[: mark.end()]}{BACKSLASH}{shown[mark.end() :]}"
        if shown is text:
            continue
        if event == "start":
            element.text = shown
        else:
            element.tail = shown


def _make_writable(root: Element) -> None:
    """What the parser let pass as a name could be read as something else; `<a/>` would be read as `<a>`."""
    names: set[str] = set()
    for element in root.iter():
        if not _are_names([element.tag], names):
            element.tag = "span"
        if not _are_names(element.keys(), names):
            read = {name: value for name, value in element.items() if name in _READ}
            element.attrib.clear()
            element.attrib.update(read)
        if not element.text and not len(element) and element.tag not in VOID:
            element.text = ""


def _are_names(found: list[str], names: set[str]) -> bool:
    if not names.issuperset(found):
        names.update(filter(_NAME.fullmatch, found))
    return names.issuperset(found)
