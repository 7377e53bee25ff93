"""The body of a DOCX, made so that mammoth sees all of its text.

It passes over elements that it does not know, and over the text in them: formulas, fields, runs from right to left,
readings of Japanese, drawn text boxes. Here those become what it knows.
"""

import posixpath
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO

from lxml import etree

from chunksink.producers.docx.fields import write_fields
from chunksink.producers.docx.formulas import on_one_line
from chunksink.producers.docx.imported import Imported, mark_imports
from chunksink.producers.docx.numbers import Numbers
from chunksink.producers.docx.xml import read_xml
from chunksink.producers.html.marks import without_marks
from chunksink.producers.html.tags import Element, holders_of

_WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_VML = "urn:schemas-microsoft-com:vml"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_PARTS = ("document", "footnotes", "endnotes")
# What mammoth reads, and what it leaves out because it was deleted or is no text.
_KNOWN = frozenset(
    (
        *(*_PARTS, "body", "footnote", "endnote", "p", "r", "t", "tbl", "tr", "tc", "sdt", "sdtContent", "hyperlink"),
        *("ins", "moveTo", "smartTag", "customXml", "object", "drawing", "pict", "txbxContent"),
        *("del", "moveFrom", "pPr", "rPr", "tblPr", "trPr", "tcPr", "sectPr"),
    )
)
_KNOWN_IN_VML = frozenset(("group", "rect", "roundrect", "shape", "textbox"))


@dataclass(frozen=True)
class Readable:
    """A file without its pictures, the names of all elements in it that hold text, as mammoth has them, and the files
    that it brings in, by the numbers that stand in their places."""

    data: bytes
    holders: frozenset[str]
    imported: list[Imported]


def readable(data: bytes) -> Readable:
    """Raises SourceFailed where a file that it brings in is missing."""
    out, holders, imported = BytesIO(), set[str](), list[Imported]()
    with zipfile.ZipFile(BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as made:
        names = dict.fromkeys(archive.namelist())

        def read(name: str) -> bytes | None:
            return archive.read(name) if name in names else None

        for name in names:
            if name.endswith((".xml", ".rels")):
                part = archive.read(name)
                made.writestr(name, _tidied(part, name, read, holders, imported) if name.endswith(".xml") else part)
    return Readable(out.getvalue(), frozenset(holders), imported)


def _tidied(
    part: bytes, path: str, read: Callable[[str], bytes | None], holders: set[str], imported: list[Imported]
) -> bytes:
    try:
        root = read_xml(part)
    except etree.XMLSyntaxError:
        return part
    name = etree.QName(root)
    if name.namespace not in _WORD or name.localname not in _PARTS:
        return part
    word = f"{{{name.namespace}}}"
    _choose(root, word)
    for text in root.iter(f"{word}t"):
        if text.text:
            text.text = without_marks(text.text)
    if name.localname == "document":
        Numbers(read(posixpath.join(posixpath.dirname(path), "numbering.xml"))).mark(root, word)
        imported += mark_imports(root, word, path, read)
    write_fields(root, word)
    _write_formulas(root, word)
    _write_readings(root, word)
    _bring_out_boxes(root, word)
    _part_lines(root, word)
    for element in holders_of(root, (f"{word}t",)):
        if not _is_known(element, word):
            _unwrap(element)
    holders.update(_called(element, word) for element in holders_of(root, (f"{word}t",)))
    whole: bytes = etree.tostring(root.getroottree(), xml_declaration=True, encoding="UTF-8")
    return whole


def _choose(root: Element, word: str) -> None:
    """Of what is said in several ways mammoth takes the last one, be it empty."""
    for ways in list(root.iter(f"{_COMPATIBILITY}AlternateContent")):
        fallback = ways.find(f"{_COMPATIBILITY}Fallback")
        choice = next((way for way in ways if next(way.iter(f"{word}t"), None) is not None), None)
        is_empty = fallback is None or next(fallback.iter(f"{word}t"), None) is None
        chosen = choice if choice is not None and is_empty else fallback
        if chosen is not None:
            ways[:] = list(chosen)
        _unwrap(ways)


def _write_formulas(root: Element, word: str) -> None:
    for formula in list(root.iter("{*}oMath")):
        if formula.getparent() is not None:
            run = formula.makeelement(f"{word}r")
            formula.addprevious(run)
            _write(run, word, on_one_line(formula))
            formula.getparent().remove(formula)


def _write_readings(root: Element, word: str) -> None:
    """`東京(とうきょう)`, as of HTML."""
    for ruby in list(root.iter(f"{word}ruby")):
        for reading in ruby.findall(f"{word}rt"):
            said = "".join(reading.itertext(f"{word}t"))
            ruby.append(reading)
            for child in list(reading):
                reading.remove(child)
            _write(reading, word, f"({said})" if said else "")


def _bring_out_boxes(root: Element, word: str) -> None:
    for box in list(root.iter(f"{word}txbxContent")):
        drawing = next(box.iterancestors(f"{word}drawing"), None)
        if drawing is not None:
            picture = drawing.makeelement(f"{word}pict")
            picture.append(box)
            drawing.addnext(picture)


def _part_lines(root: Element, word: str) -> None:
    """What begins a line, a page or a column parts words."""
    for mark in list(root.iter(f"{word}br", f"{word}cr", f"{word}ptab")):
        if mark.tag == f"{word}br" and mark.get(f"{word}type", "textWrapping") == "textWrapping":
            continue
        mark.tag = f"{word}t"
        mark.text = " "


def _write(holder: Element, word: str, text: str) -> None:
    etree.SubElement(holder, f"{word}t").text = text


def _unwrap(element: Element) -> None:
    for child in list(element):
        element.addprevious(child)
    element.getparent().remove(element)


def _is_known(element: Element, word: str) -> bool:
    name = etree.QName(element)
    return (name.namespace == word[1:-1] and name.localname in _KNOWN) or (
        name.namespace == _VML and name.localname in _KNOWN_IN_VML
    )


def _called(element: Element, word: str) -> str:
    name = etree.QName(element)
    prefix = {word[1:-1]: "w", _VML: "v"}.get(name.namespace)
    return f"{prefix}:{name.localname}" if prefix else str(element.tag)
