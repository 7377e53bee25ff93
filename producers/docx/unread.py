"""What a DOCX says in parts that are not its text: headers and footers of its pages, comments, diagrams, charts."""

import re
import zipfile
from io import BytesIO

from lxml import etree

from producers.docx.xml import read_xml

_PART = re.compile(r"word/(header|footer|comments|diagrams/data|charts/chart)\d*\.xml", re.IGNORECASE)
_FEWEST_WORDS = {"header": 3, "footer": 3}
"""`Page 3 of 12` is a number."""
_TEXTS = ("{*}t", "{*}v")


def has_unread_parts(data: bytes) -> bool:
    """Whether there are words in them."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        parts = ((found, archive.read(name)) for name in archive.namelist() if (found := _PART.fullmatch(name)))
        return any(_words(part) >= _FEWEST_WORDS.get(found[1].lower(), 1) for found, part in parts)


def _words(part: bytes) -> int:
    try:
        said = " ".join(text.text or "" for text in read_xml(part).iter(*_TEXTS))
    except etree.XMLSyntaxError:
        return 0
    return sum(any(map(str.isalpha, word)) for word in said.split())
