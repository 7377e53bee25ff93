"""Files that a DOCX brings in as a whole (`altChunk`): Word makes paragraphs of them when it opens the document."""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email import message_from_bytes, policy
from html import escape

from lxml import etree

from chunksink.producers.docx.xml import read_xml
from chunksink.producers.errors import CHUNKING_FAILED, SourceFailed
from chunksink.producers.html.charset import decode
from chunksink.producers.html.marks import FILE, FILE_END
from chunksink.producers.html.tags import Element

_PLACE = re.compile(rf"<p>{FILE}(\d+){FILE_END}</p>")
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_STRICT_ID = "{http://purl.oclc.org/ooxml/officeDocument/relationships}id"
_HEAD = re.compile(r"<head\b.*?</head\s*>", re.IGNORECASE | re.DOTALL)
_PAGES = (".htm", ".html", ".xhtml")
_ARCHIVES = (".mht", ".mhtml")
_TEXTS = (".txt", ".text")


@dataclass(frozen=True)
class Imported:
    name: str
    data: bytes


def mark_imports(root: Element, word: str, part: str, read: Callable[[str], bytes | None]) -> Iterator[Imported]:
    """Puts a paragraph with the number of the file where the document brings it in. Raises SourceFailed."""
    places = list(root.iter(f"{word}altChunk"))
    targets = _targets(part, read) if places else {}
    for number, place in enumerate(places):
        name = targets.get(place.get(_ID) or place.get(_STRICT_ID) or "", "")
        data = read(name) if name else None
        if data is None:
            raise SourceFailed(CHUNKING_FAILED, f"cannot be read whole: it brings in {name or 'a file'} that it lacks")
        run = etree.SubElement(place, f"{word}r")
        etree.SubElement(run, f"{word}t").text = f"{FILE}{number}{FILE_END}"
        place[:] = [run]
        place.tag = f"{word}p"
        yield Imported(name, data)


def _targets(part: str, read: Callable[[str], bytes | None]) -> dict[str, str]:
    """The names of what a part refers to, by their ids there."""
    folder, name = posixpath.split(part)
    found = read(f"{folder}/_rels/{name}.rels".lstrip("/"))
    if found is None:
        return {}
    return {
        relation.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
        for relation in read_xml(found)
        if relation.get("TargetMode") != "External"
    }


def put_back(html: str, imported: list[Imported], read_docx: Callable[[bytes], str]) -> str:
    """The page with their text in it. Raises SourceFailed."""

    def text_at(place: re.Match[str]) -> str:
        number = int(place[1])
        return _html_of(imported[number], read_docx) if number < len(imported) else ""

    return _PLACE.sub(text_at, html)


def _html_of(file: Imported, read_docx: Callable[[bytes], str]) -> str:
    name = file.name.lower()
    if file.data.startswith(b"PK"):
        return read_docx(file.data)
    if name.endswith(_ARCHIVES):
        message = message_from_bytes(file.data, policy=policy.default)
        pages = [part for part in message.walk() if part.get_content_type() == "text/html"]
        if pages:
            return "".join(_body(_read(page.get_payload(decode=True), page.get_content_charset())) for page in pages)
    if name.endswith(_PAGES):
        return _body(decode(file.data))
    if name.endswith(_TEXTS):
        lines = decode(file.data).replace("\r\n", "\n").split("\n")
        return "".join(f"<p>{escape(line)}</p>" for line in lines)
    reason = f"cannot be read whole: it brings in {file.name}, which is neither HTML, text nor DOCX"
    raise SourceFailed(CHUNKING_FAILED, f"{reason}; open it in Word, save it, and ingest that")


def _read(data: object, charset: str | None) -> str:
    assert isinstance(data, bytes)
    try:
        return data.decode(charset) if charset else decode(data)
    except (LookupError, UnicodeDecodeError):
        return decode(data)


def _body(page: str) -> str:
    return f"<div>{_HEAD.sub('', page)}</div>"
