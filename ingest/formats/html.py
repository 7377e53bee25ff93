"""HTML: the main part of a page, tidied with lxml and written as Markdown by html-to-markdown."""

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any
from urllib.parse import urljoin

from chunksink.ingest.codes import CHUNKING_FAILED, SITE_LEFT_OUT
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.document_format import DocumentFormat, Places, with_metadata
from chunksink.ingest.formats.markdown.addresses import LinkKind, classify
from chunksink.ingest.formats.markdown.document import Link, Structure
from chunksink.ingest.formats.markdown.normalise import one_line, refuse_binary

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BUTTON_HEADINGS = (
    "//button[@aria-expanded or (normalize-space() = normalize-space(..) and contains('h1 h2 h3 h4 h5 h6', name(..)))]"
)
"""Buttons that are the heading of a collapsible part."""
_ONLY_DIGITS = "[translate(normalize-space(), '0123456789 ', '') = '']"
_COPIES_AND_NUMBERS = (
    "//math//*[starts-with(name(), 'annotation')]"
    "| //*[@aria-hidden = 'true'][preceding-sibling::*[1]"
    "[descendant-or-self::math and normalize-space() = normalize-space(descendant-or-self::math)]]"
    "| //td[contains(@class, 'lineno') or contains(@class, 'gutter') or @class = 'lntd'][following-sibling::*[1]//pre]"
    f"{_ONLY_DIGITS} | //pre//span[contains(@class, 'lineno') or @class = 'ln']{_ONLY_DIGITS}"
)
"""Other forms of a formula, as from KaTeX and Wikipedia, and the line numbers of code."""
_BLOCKS = (*_HEADINGS, "p", "div", "ul", "ol", "dl", "table", "pre", "blockquote", "section", "article", "hr")
_CONTAINERS = ("body", "div", "ul", "ol", "li", "dl", "dd", "blockquote", "table", "thead", "tbody", "tr", "th", "td")
_EMBEDDED = ("iframe", "object", "embed", "video", "audio", "canvas", "svg")
_NEVER_READ = ("script", "style", "template", "noscript", "button", "rt", "rp", "rtc")
_SITE_ROLES = ("navigation", "banner", "contentinfo", "search", "menu", "menubar", "dialog", "alertdialog", "doc-toc")
_AROUND = "ancestor::article|ancestor::section|ancestor::blockquote"
_PERMALINK = re.compile(r"[\s\u200b\ufe0e]*+[¶#§🔗\uf0c1↑]?[\s\u200b\ufe0e]*")
_CHARSET = re.compile(rb"<(?:meta|\?xml)\b[^<>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# Browsers use these larger character sets instead of the named ones.
_LARGER = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932"}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ue000-\ue002\ufffe\uffff]")
_END_OF_PAGE = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)  # browsers also read what follows it
_PRE_OR_BREAK = re.compile(r"(<pre(?=[\s>/]).*?</pre>)|(?<!\s)\s*\n\s*", re.DOTALL)
_ESCAPE = "\ue000"
# Code, which stays; or text that Markdown would read as a tag, an entity, a link or a fence.
_CODE_OR_MARKUP = re.compile(
    r"(?s)<(pre|code|kbd|samp)(?=[\s>/]).*?</\1>|"
    r"(?:&lt;(?=[A-Za-z/!?])|&amp;(?=#?\w{1,32};)|\[(?=[^\[\]<]*\][(:])|```|~~~)"
)
# A mark is the number of a note (a link, or the id of a heading) between two private characters. It keeps the place of
# the note until the Markdown is parsed.
_SPACE_AFTER_MARKS = re.compile("(?<= )((?:\ue001\\d+\ue002)+) ")
_MARK = re.compile("\ue001(\\d*)\ue002?")


class HtmlFormat(DocumentFormat):
    """Pages. Reads the main part (`main`, `article`, `#main-content`), else all but navigation and the like."""

    name = "html"
    suffixes = (".html", ".htm", ".xhtml")
    mime_type = "text/html"
    rules = "4"
    libraries = ("html-to-markdown", "lxml", "markdown-it-py")

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        root = parse_html(decode(data))
        body = root.find("body")
        length, main = _length(body), _main_part(body)
        notice_codes = {SITE_LEFT_OUT} if _length(main) < length else set()
        base = next((each.get("href").strip() for each in root.iter("base") if each.get("href")), "")
        document = body_document(main, lambda address: urljoin(base, address), left_out)
        document = with_metadata(document, _head_metadata(root))
        return replace(document, notice_codes=document.notice_codes | notice_codes), {}


def html_to_markdown(page: str) -> str:
    """A page or a part of one as Markdown, with the words of links but not their addresses."""
    return _MARK.sub("", _to_markdown(parse_html(page).find("body"), str, Counter())[0])


def body_document(body: Any, resolve: Callable[[str], str], left_out: Counter[str]) -> Structure:
    """An element as a document. `resolve` makes the URL of an address; a link with an empty URL becomes text."""
    markdown, notes = _to_markdown(body, resolve, left_out)
    # A page has no front matter; below an empty line, `---` is read as a rule.
    return _without_marks(f"\n{markdown}" if markdown.startswith(("---", "+++")) else markdown, notes)


def decode(data: bytes) -> str:
    """Decodes by the byte order mark, else as UTF-8, else with the charset that the page names. Raises SourceFailed for
    binary data."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    refuse_binary(data)
    with suppress(UnicodeDecodeError):
        return data.decode("utf-8-sig")
    found = _CHARSET.search(data[:65_536])
    name = "cp1252"
    with suppress(LookupError, UnicodeError):
        name = codecs.lookup(found[1].decode() if found else name).name
    return data.decode(_LARGER.get(name, name), "replace")


def parse_html(page: str) -> Any:
    """The root element of a page. It always has a body, and no scripts, styles, templates, buttons or ruby readings."""
    from lxml import etree

    text = _END_OF_PAGE.sub("", _CONTROL.sub("", page)).strip() or "<p>"
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    if parser.error_log.filter_from_fatals():
        raise SourceFailed(CHUNKING_FAILED, "its tags are nested too deeply")
    if root is None:
        return parse_html("")
    if root.find("body") is None:
        etree.SubElement(root, "body")
    for button in root.xpath(_BUTTON_HEADINGS):
        button.tag = "span"
    etree.strip_elements(root, *_NEVER_READ, with_tail=False)
    etree.strip_tags(root, "ruby", "rb")
    for element in root.xpath(_COPIES_AND_NUMBERS):
        element.clear(keep_tail=True)
        element.tag = "span"
    return root


def _head_metadata(root: Any) -> dict[str, str]:
    """The metadata in the head of a page."""
    metas = root.iter("meta")
    stated = {(meta.get("name") or meta.get("property", "")).lower(): meta.get("content", "") for meta in metas}
    return {
        "title": root.findtext(".//title") or stated.get("og:title", ""),
        "language": root.get("lang") or root.get("xml:lang", ""),
        "creator": stated.get("author", ""),
        "date": stated.get("article:published_time") or stated.get("date", ""),
    }


def _main_part(body: Any) -> Any:
    """The main part of a page, with the page's only `h1` if that is outside of it and not the name of the site."""
    searches = (".//main|.//*[@role='main']", ".//article[not(ancestor::article)]", ".//div[@id='main-content']")
    parts: list[Any] = next(filter(None, map(body.xpath, searches)), [])
    if len(parts) != 1 or not _length(parts[0]):
        return _without_site(body, "nav", "search", "header", "footer", "aside")
    titles = list(body.iter("h1"))
    if len(titles) == 1 and parts[0] not in titles[0].iterancestors() and not _is_site_name(titles[0], parts[0]):
        titles[0].tail, parts[0].text = parts[0].text, None
        parts[0].insert(0, titles[0])
    return _without_site(parts[0], "nav", "search")


def _is_site_name(heading: Any, part: Any) -> bool:
    """Whether a heading is only the site's name: the page's title is another heading, a separator and this one, as in
    `Bees - Encyclopedia`."""
    title, name = one_line(heading.getroottree().findtext(".//title") or ""), one_line("".join(heading.itertext()))
    others = {one_line("".join(other.itertext())) for other in part.iter(*_HEADINGS)}
    return any(f"{other} {sign} {name}" == title for other in others for sign in "-–—|")


def _without_site(part: Any, *tags: str) -> Any:
    """Removes navigation and the like, but not the headers and footers of sections and quotes."""
    for element in list(part.iterdescendants("*")):
        role = (element.get("role") or "").lower().partition(" ")[0]
        if (role in _SITE_ROLES) if role else element.tag in tags:
            is_inner = element.tag != "nav" and element.xpath(_AROUND)
            if not is_inner and next(element.iter("h1", "article", "main"), None) is None:
                _drop(element)
    return part


def _length(element: Any) -> int:
    return sum(len(text.strip()) for text in element.itertext())


def _drop(element: Any) -> None:
    element.clear(keep_tail=True)
    element.tag, element.tail = "span", f" {element.tail or ''}"


def _to_markdown(body: Any, resolve: Callable[[str], str], left_out: Counter[str]) -> tuple[str, list[Link | str]]:
    """The Markdown of an element with marks in it, and their notes."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
    from lxml import etree

    notes = _tidy(body, resolve, left_out)
    html = etree.tostring(body, method="html", encoding="unicode", with_tail=False)
    html = _PRE_OR_BREAK.sub(lambda found: found[1] or " ", html)  # joins lines: a line may look like Markdown
    html = _CODE_OR_MARKUP.sub(lambda found: found[0] if found[1] else _ESCAPE + found[0], html)
    options = ConversionOptions(
        preprocessing=PreprocessingOptions(enabled=False),  # it would drop text that it takes for navigation
        hidden_content="all",
        extract_metadata=False,
        bullets="-",
        highlight_style="none",
        compact_tables=True,
    )
    result = convert(html, options)
    if result.warnings:
        raise SourceFailed(CHUNKING_FAILED, f"it cannot be read completely: {result.warnings[0].message}")
    return (result.content or "").replace(_ESCAPE, "\\").strip(), notes


def _tidy(body: Any, resolve: Callable[[str], str], left_out: Counter[str]) -> list[Link | str]:
    """Reduces an element to what Markdown can express, and marks its links, pictures and headings."""
    notes: list[Link | str] = []
    anchors = {heading: _anchor_of(heading) for heading in body.iter(*_HEADINGS)}
    for element in list(body.iter(*_EMBEDDED)):
        left_out["drawings and embedded parts"] += element.tag != "svg" or _length(element) > 0
        _drop(element)
    for link in [*body.iter("a"), *body.iterfind(".//span[@class='mw-editsection']")]:
        is_sign = "#" in link.get("href", "") and _PERMALINK.fullmatch("".join(link.itertext()))
        if link.tag == "span" or (is_sign and next(link.iter("img"), None) is None):
            _drop(link)
    for table in list(body.iter("table")):
        _tidy_table(table)
    for element in list(body.iter("img", "a")):
        is_picture = element.tag == "img"
        if is_picture:
            element.text = f" {one_line(element.get('alt', ''))} "
            left_out["pictures without text"] += element.text.isspace()
        address = element.get("data-src") or element.get("src") or element.get("href", "")
        with suppress(ValueError):  # brackets that are not an IPv6 address
            if url := resolve("".join(address.splitlines()).strip()):
                _mark(element, Link(url, LinkKind.IMAGE if is_picture else classify(url), 0), notes)
        if not element.tail and (following := element.getnext()) is not None and following.tag == "a" and address:
            element.tail = " "
        element.tag = "span"
        element.attrib.clear()
    for heading, anchor in anchors.items():
        _tidy_heading(heading, body)
        _mark(heading, anchor, notes)
    for block in body.iter(*_BLOCKS):
        for outer in block.iterancestors():
            outer.tag = outer.tag if outer.tag in _CONTAINERS else "div"
    return notes


def _mark(element: Any, note: Link | str, notes: list[Link | str]) -> None:
    """Puts the number of a note after the first words of an element. Before them it would change how they are escaped
    in Markdown."""
    if note:
        first = next((inner for inner in element.iter("*") if inner.text and not inner.text.isspace()), element)
        text = first.text or ""
        end = len(text.rstrip())
        first.text = f"{text[:end]}\ue001{len(notes)}\ue002{text[end:]}"
        notes.append(note)


def _without_marks(markdown: str, notes: list[Link | str]) -> Structure:
    """The document of the Markdown, with links and anchors at the marks, and addresses in the text as links."""
    from chunksink.ingest.formats.markdown.structure import parse

    # The first parse normalises the text with its marks. So nothing is left to normalise for the second one, and the
    # two texts differ only by the marks.
    marked = _SPACE_AFTER_MARKS.sub(r"\1", parse(markdown).text)
    document = parse(_MARK.sub("", marked))
    begins = [block.start for block in document.blocks]
    urls = {note.url for note in notes if isinstance(note, Link)}
    links = [link for link in document.links if "://" in link.url and link.url not in urls]
    anchors: dict[int, str] = {}
    removed = 0
    for mark in _MARK.finditer(marked) if document.blocks else ():
        note, place = notes[int(mark[1])], mark.start() - removed
        removed += len(mark[0])
        block = document.blocks[max(0, bisect_right(begins, place) - 1)]
        if isinstance(note, Link):
            links.append(replace(note, at=place - 1))
        elif block.is_heading:
            anchors.setdefault(block.section, note)
    return replace(document, links=tuple(links), anchors=anchors)


def _anchor_of(heading: Any) -> str:
    """The id of a heading, of an element in it, of an empty one before it, of an element that begins with it, or of a
    section whose first heading it is."""
    before, outer = heading.getprevious(), heading.getparent()
    around = [] if before is None or _length(before) else list(before.iter("*"))
    if (before is None and outer.tag != "body") or (outer.tag == "section" and next(outer.iter(*_HEADINGS)) is heading):
        around.append(outer)
    places = (*heading.iter("*"), *around)
    ids = (place.get("id") or (place.get("name", "") if place.tag == "a" else "") for place in places)
    return next((each for each in ids if re.fullmatch(r"\S{1,200}", each)), "")


def _tidy_table(table: Any) -> None:
    """Makes the first row the header. A table is replaced by the content of its cells if it has one column
    and no header, or if its cells contain headings, code or tables."""
    rows = table.xpath("./tr|./thead/tr|./tbody/tr|./tfoot/tr")
    has_blocks = sum(1 for _ in table.iter("table", "pre", *_HEADINGS)) > 1
    is_column = next(table.iter("th"), None) is None and all(len(row) <= 1 for row in rows)
    if has_blocks or is_column:
        for element in (table, *table.xpath("./thead|./tbody|./tfoot"), *rows, *(cell for row in rows for cell in row)):
            element.tag = "div"
    elif rows:
        for cell in rows[0]:
            cell.tag = "th"


def _tidy_heading(heading: Any, body: Any) -> None:
    """Turns elements around a heading into `div`, and blocks in it into `span`: Markdown cannot express them."""
    for outer in takewhile(lambda outer: outer is not body, heading.iterancestors()):
        outer.tag = "div"
    for inner in heading.iter(*_BLOCKS, "br"):
        if inner is not heading:
            inner.tag, inner.tail = "span", f" {inner.tail or ''}"
    if not _MARK.sub("", "".join(heading.itertext())).strip():
        heading.tag = "div"
