"""What a DOCX says that is not its text: in headers and footers of its pages, comments, diagrams, charts, in letters
that are drawn, and of drawings that hold a text of their own.
"""

import re
import zipfile
from io import BytesIO

from lxml import etree

from producers.docx.xml import read_xml
from producers.html.tags import Element

_PART = re.compile(r"word/(header|footer|comments|diagrams/data|charts/chart)\d*\.xml", re.IGNORECASE)
_FEWEST_WORDS = {"header": 3, "footer": 3}
"""`Page 3 of 12` is a number."""
_TEXTS = ("{*}t", "{*}v")
_BODY = re.compile(r"word/(?:document|footnotes|endnotes)\.xml", re.IGNORECASE)


def has_unread_parts(data: bytes) -> bool:
    """Whether there are words in them."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        parts = ((found, archive.read(name)) for name in names if (found := _PART.fullmatch(name)))
        if any(_words(part) >= _FEWEST_WORDS.get(found[1].lower(), 1) for found, part in parts):
            return True
        return any(_draws_words(archive.read(name)) for name in names if _BODY.fullmatch(name))


def _draws_words(part: bytes) -> bool:
    if b"textpath" not in part and b"txbxContent" not in part:
        return False
    try:
        root = read_xml(part)
    except etree.XMLSyntaxError:
        return False
    drawn = [element.get("string") for element in root.iter("{*}textpath")]
    for drawing in root.iter("{*}drawing"):
        if next(drawing.iter("{*}txbxContent"), None) is not None:
            drawn += [element.get("descr") for element in drawing.iter("{*}docPr")]
    return any(map(str.isalpha, "".join(filter(None, drawn))))


def _words(part: bytes) -> int:
    try:
        root = read_xml(part)
    except etree.XMLSyntaxError:
        return 0
    said: dict[Element, str] = {}
    for text in root.iter(*_TEXTS):
        if next(text.iterancestors("{*}Fallback"), None) is None:  # which says it once more
            paragraph = next(text.iterancestors("{*}p"), text)
            said[paragraph] = said.get(paragraph, "") + (text.text or "")
    return sum(any(map(str.isalpha, word)) for words in said.values() for word in words.split())
