"""What the text of a row is: a page, Markdown, or what another file would hold. Its name says it, else the text has to.

It is a page where its tags are those of HTML, one of them a block's, and nothing outside of them is a block of Markdown
or a paragraph of its own.
"""

import re
from pathlib import PurePosixPath

from chunksink.producers.errors import SourceFailed
from chunksink.producers.html.chunker import document_of as document_of_page
from chunksink.producers.kinds import KINDS
from chunksink.producers.markdown.document import Document
from chunksink.producers.markdown.structure import parse
from chunksink.producers.rows.row import Row
from chunksink.producers.text.chunker import document_of as document_of_text

_BLOCKS = "p br hr div ul ol li dl dt dd table thead tbody tr td th pre blockquote h1 h2 h3 h4 h5 h6 section article"
_OTHERS = """
    html head body title meta link style script noscript main header footer nav aside figure figcaption details summary
    a abbr b bdi bdo big center cite code data del dfn em embed font form i iframe img input ins kbd label mark object
    option picture q rp rt ruby s samp select small source span strike strong sub sup svg time tt u var video wbr
    address audio button caption col colgroup fieldset legend textarea tfoot track
"""
_BLOCK_TAGS, _KNOWN_TAGS = frozenset(_BLOCKS.split()), frozenset(f"{_BLOCKS} {_OTHERS}".split())
_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]{0,40})(?=[\s/>])[^<>]{0,2000}>")
_WHOLE_PAGE = re.compile(r"\s*(?:<\?xml[^<>]{0,200}>\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_CODE_BEGINS = re.compile(r"<!--|<(pre|code|style|script)\b", re.IGNORECASE)
_BLOCK_OF_MARKDOWN = re.compile(
    r"^(?:[ ]{0,3}(?:\#{1,6}[ ]|```|~~~|>[ ]\S|={3,}[ ]*$|-{3,}[ ]*$)|[ \t]*(?:[-*+]|\d{1,3}[.)])[ ]\S|\|.*\|[ \t]*$)",
    re.MULTILINE,
)
_WORD = re.compile(r"\w")
_MOST_UNKNOWN = 0.1  # elements that a site has made up
_MOST_APART = 1  # paragraphs outside of all blocks


def document_of(row: Row) -> Document:
    """Raises SourceFailed."""
    suffix = _suffix(row)
    if row.called == "markdown" or suffix in KINDS["markdown"].suffixes:
        return parse(row.text, is_mdx=suffix == ".mdx")
    if suffix and suffix not in KINDS["html"].suffixes:
        return document_of_text(row.text, row.address or "")
    if (row.called == "html" or suffix or is_page(row.text)) and (page := _page(row.text)) is not None:
        return page
    return parse(row.text)


def is_page(text: str) -> bool:
    if _WHOLE_PAGE.match(text):
        return True
    if "<" not in text:
        return False
    outside = _without_code(text)
    tags = [(match[1] != "", match[2].lower()) for match in _TAG.finditer(outside)]
    blocks = [is_end for is_end, name in tags if name in _BLOCK_TAGS]
    unknown = sum(name not in _KNOWN_TAGS for _, name in tags)
    if not blocks or unknown > _MOST_UNKNOWN * len(tags):
        return False
    paragraphs = [one for one in re.split(r"\n[ \t]*\n", outside) if one.strip()]
    apart = sum(not one.lstrip().startswith("<") for one in paragraphs)
    if len(paragraphs) > 1 and apart > (_MOST_APART if any(blocks) else 0):
        return False
    return _BLOCK_OF_MARKDOWN.search(outside) is None


def _without_code(text: str) -> str:
    """Where lines mean nothing to Markdown that they do not mean here. What has no end stays."""
    small = text.lower()
    parts: list[str] = []
    at = 0
    endless: set[str] = set()
    for begin in _CODE_BEGINS.finditer(text):
        end = f"</{begin[1].lower()}" if begin[1] else "-->"
        if begin.start() < at or end in endless:
            continue
        stop = small.find(end, begin.end())
        if stop < 0:
            endless.add(end)
            continue
        parts += [text[at : begin.start()], "<pre>" if begin[1] else ""]
        at = stop if begin[1] else stop + len(end)
    return "".join([*parts, text[at:]])


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
