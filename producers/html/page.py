"""The text of a page before it is parsed: what the parser, or the Markdown after it, would read as something else.

Pages in XML have sections (`<![CDATA[a > b]]>`) that a parser of HTML takes for comments up to the first `>`, and names
for texts of their own. Whatever ends a line for the contract of chunks is white space here, as line breaks are.
"""

import re
from html import escape
from html.entities import html5

from chunksink.chunkbus.patterns import for_good

# What lies in these is no markup, or is not read. Whatever has no end goes on to the end of the page.
_COMMENT = r"<!--(?:-?>|.*?(?:--!?>|\Z))"
_RAW = r"<(?P<raw>script|style|xmp|iframe|noembed|noframes)\b[^<>]*+(?:(?<=/)>|(?<!/)>.*?(?:</(?P=raw)(?![\w:.-])|\Z))"
_OPENING = "<![CDATA["
_CLOSING = "]]>"
_SECTION = re.compile(
    rf"{_COMMENT}|{_RAW}|{re.escape(_OPENING)}(?P<text>.*?){re.escape(_CLOSING)}", re.IGNORECASE | re.DOTALL
)

_DOCTYPE = re.compile(
    r"<!DOCTYPE\s[^<>\[\]]*\[(?P<subset>" + for_good(r"""<!--.*?(?:-->|\Z)|"[^"]*"|'[^']*'|[^\]"']""") + r")\]\s*>",
    re.IGNORECASE | re.DOTALL,
)
_HEAD_CHARACTERS = 4096  # where that begins
_ENTITY = re.compile(r"""<!--.*?(?:-->|\Z)|<!ENTITY\s+([A-Za-z_][\w:.-]*)\s+(?:"([^"%]*)"|'([^'%]*)')\s*>""", re.DOTALL)
_REFERENCE = re.compile(r"&([A-Za-z_][\w:.-]*);")
# A page may name a text once and use it a million times.
_MOST_EXPANDED = 1 << 20

_LINE_ENDS = re.compile(
    r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]|&#(?:0*(?:11|12|8232|8233)(?!\d)|x0*(?:b|c|2028|2029)(?![\da-f]));?",
    re.IGNORECASE,
)
# lxml takes them in no text, or the contract of chunks knows none of them; those from U+FDD0 on are our `marks`.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufdd0-\ufdd7\ufffe\uffff]")
_CONTROL_BY_NUMBER = re.compile(
    r"&#(?:0*(?:[1-8]|1[4-9]|2\d|3[01]|127|6497[6-9]|6498[0-3]|6553[45])(?!\d)"
    r"|x0*(?:[1-8ef]|1[\da-f]|7f|fdd[0-7]|fff[ef])(?![\da-f]));?",
    re.IGNORECASE,
)


def cleaned(page: str) -> str:
    page = _write_entities(page)
    if _OPENING in page:
        page = _write_sections(page)
    page = _LINE_ENDS.sub("\n", page)
    return _CONTROL_BY_NUMBER.sub("", _CONTROL.sub("", page))


def _write_sections(page: str) -> str:
    """Their text as HTML has it. One that does not end only loses its mark."""
    end = page.rfind(_CLOSING) + len(_CLOSING) if _CLOSING in page else 0
    return _SECTION.sub(_as_text, page[:end]) + page[end:].replace(_OPENING, "")


def _as_text(section: re.Match[str]) -> str:
    return section[0] if section["text"] is None else escape(section["text"], quote=False)


def _write_entities(page: str) -> str:
    """Texts that the page itself names; nothing else is looked up, and none in the text of another."""
    begin = page[:_HEAD_CHARACTERS].upper().find("<!DOCTYPE")
    doctype = _DOCTYPE.match(page, begin) if begin >= 0 else None
    if doctype is None:
        return page
    found = (entity for entity in _ENTITY.finditer(doctype["subset"]) if entity[1] and f"{entity[1]};" not in html5)
    texts = {entity[1]: entity[2] or entity[3] or "" for entity in found}
    body = page[: doctype.start()] + page[doctype.end() :]
    uses = (texts.get(use[1], "") for use in _REFERENCE.finditer(body))
    if sum(map(len, uses)) > _MOST_EXPANDED:
        return body
    return _REFERENCE.sub(lambda use: texts.get(use[1], use[0]), body)
