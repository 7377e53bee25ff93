"""What a DOCX says that is not its text: in headers and footers of its pages, comments, diagrams, charts, in letters
that are drawn, and of what drawings and tables are said to show.
"""

import re
import zipfile
from io import BytesIO

from lxml import etree

from chunksink.producers.docx.xml import read_xml
from chunksink.producers.html.tags import Element

_PART = re.compile(r"word/(header|footer|comments|diagrams/data|charts/chart)\d*\.xml", re.IGNORECASE)
_FEWEST_WORDS = {"header": 3, "footer": 3}
"""`Page 3 of 12` is a number."""
_TEXTS = ("{*}t", "{*}v")
_OF_DRAWINGS = (b"textpath", b"docPr", b"alt=", b"tblCaption", b"tblDescription")
_DESCRIPTIONS = ("descr", "title")
_BODY = re.compile(r"word/(?:document|footnotes|endnotes)\.xml", re.IGNORECASE)


def has_unread_parts(data: bytes) -> bool:
    """Whether there are words in them."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        parts = ((found, archive.read(name)) for name in names if (found := _PART.fullmatch(name)))
        if any(_words(part) >= _FEWEST_WORDS.get(found[1].lower(), 1) for found, part in parts):
            return True
        return any(_draws_words(archive.read(name)) for name in names if _BODY.fullmatch(name))


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
    words = (word for some in (*said.values(), *_descriptions(root)) for word in some.split())
    return sum(any(map(str.isalpha, word)) for word in words)


def _descriptions(root: Element) -> list[str]:
    found = (element.get(name) for element in root.iter("{*}docPr", "{*}cNvPr") for name in _DESCRIPTIONS)
    return [described for described in found if described]


def _draws_words(part: bytes) -> bool:
    """What a drawing or a table is said to show. Of pictures that is text, but not where they are in a group or
    a canvas."""
    if not any(sign in part for sign in _OF_DRAWINGS):
        return False
    try:
        root = read_xml(part)
    except etree.XMLSyntaxError:
        return False
    said = [element.get("string") for element in root.iter("{*}textpath")]
    said += [element.get("alt") for element in root.iter("{urn:schemas-microsoft-com:vml}*")]
    said += [value for element in root.iter("{*}tblCaption", "{*}tblDescription") for value in element.values()]
    for drawing in root.iter("{*}drawing"):
        pictures = drawing.iter("{*}pic")
        if not any(etree.QName(picture.getparent()).localname == "graphicData" for picture in pictures):
            said += _descriptions(drawing)
    return any(map(str.isalpha, "".join(filter(None, said))))
