"""What the text of a row is: a page, Markdown, or what another file would hold. Nothing says it, so the text has to.

It is a page where all its tags are those of HTML, one of them a block's, and no line is a block of Markdown.
"""

import re
from pathlib import PurePosixPath

from producers.errors import SourceFailed
from producers.html.chunker import document_of as document_of_page
from producers.markdown.document import Document
from producers.markdown.structure import parse
from producers.rows.row import Row
from producers.text.chunker import document_of as document_of_text

_MARKDOWN = (".md", ".mdx", ".markdown", ".mkd", ".qmd", ".rmd")
_PAGES = (".html", ".htm", ".xhtml")
_BLOCKS = "p br hr div ul ol li dl dt dd table thead tbody tr td th pre blockquote h1 h2 h3 h4 h5 h6 section article"
_OTHERS = """
    html head body title meta link style script noscript main header footer nav aside figure figcaption details summary
    a abbr b bdi bdo big center cite code data del dfn em embed font form i iframe img input ins kbd label mark object
    option picture q rp rt ruby s samp select small source span strike strong sub sup svg time tt u var video wbr
    address audio button caption col colgroup fieldset legend textarea tfoot track
"""
_BLOCK_TAGS, _KNOWN_TAGS = frozenset(_BLOCKS.split()), frozenset(f"{_BLOCKS} {_OTHERS}".split())
_TAG = re.compile(r"</?([a-zA-Z][\w:-]*)(?=[\s/>])[^<>]{0,2000}>")
_WHOLE_PAGE = re.compile(r"\s*(?:<\?xml[^<>]*>\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE)
# Where lines mean nothing to Markdown that they do not mean here.
_CODE = re.compile(r"<(pre|code|style|script)\b.*?</\1\s*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_BLOCK_OF_MARKDOWN = re.compile(r"^(?:#{1,6} |```|~~~|[-*+] \S|\d{1,3}\. \S|\|.*\|\s*$|> \S)", re.MULTILINE)
_WORD = re.compile(r"\w")
_MOST_UNKNOWN = 0.1  # elements that a site has made up


def document_of(row: Row) -> Document:
    """Raises SourceFailed."""
    suffix = _suffix(row)
    if row.field == "markdown" or suffix in _MARKDOWN:
        return parse(row.text, is_mdx=suffix == ".mdx")
    if (row.field == "html" or is_page(row.text)) and (page := _page(row.text)) is not None:
        return page
    if suffix and suffix not in _PAGES:
        return document_of_text(row.text, row.address or "")
    return parse(row.text)


def is_page(text: str) -> bool:
    if _WHOLE_PAGE.match(text):
        return True
    if "<" not in text:
        return False
    outside = _CODE.sub(" <pre> ", text)
    tags = [match[1].lower() for match in _TAG.finditer(outside)]
    unknown = sum(tag not in _KNOWN_TAGS for tag in tags)
    blocks = set(tags) & _BLOCK_TAGS
    if not blocks or unknown > _MOST_UNKNOWN * len(tags):
        return False
    if blocks <= {"br", "hr"} and "\n\n" in outside:
        return False  # its empty lines part what it says
    return _BLOCK_OF_MARKDOWN.search(outside) is None


def _page(text: str) -> Document | None:
    """None where nothing of its words would be left, as of a component that is all templates and programs."""
    try:
        document = document_of_page(text)
    except SourceFailed:
        return None
    return document if document.text.strip() or not _WORD.search(_TAG.sub("", text)) else None


def _suffix(row: Row) -> str:
    """Of a file; what an address of the web ends with tells nothing of the text that was taken from there."""
    if row.address is None or "://" in row.address:
        return ""
    return PurePosixPath(row.address.replace("\\", "/")).suffix.lower()
