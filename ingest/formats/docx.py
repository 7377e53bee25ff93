"""DOCX: mammoth makes HTML of it, which becomes Markdown like any page; headings follow the outline level."""

import re
from collections import Counter
from dataclasses import replace
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from chunksink.ingest.formats import converted, html
from chunksink.ingest.formats.converted import ConvertedFormat, Places, parse_xml
from chunksink.ingest.formats.markdown.document import Document

_MAX_PART = 16 * 2**20  # mammoth takes fifty times the memory
_BODY = "word/document.xml"
_STYLES = "word/styles.xml"
_LEFT_OUT = r"word/(comments|header|footer|charts/chart|diagrams/data)\d*\.xml"
_UNKNOWN = ("fldSimple", "dir", "bdo", "ruby", "rubyBase", "rt", "AlternateContent", "Choice", "Fallback")


class DocxFormat(ConvertedFormat):
    """Documents of Word: text, headings, lists, tables, footnotes and text boxes."""

    name = "docx"
    suffixes = (".docx",)
    source_type = "docx"
    mime_type = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    libraries = ("mammoth", *html.HtmlFormat.libraries)
    extra = "docx"

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Document, Places]:
        import mammoth

        with converted.open_archive(data, largest=_MAX_PART) as archive:
            converted.count_parts(archive, _LEFT_OUT, left_out)
            styles = parse_xml(archive.read(_STYLES)).iter("{*}style") if _STYLES in archive.namelist() else ()
            tidied = _tidied_body(archive.read(_BODY), {_value(style, "styleId"): style for style in styles}, left_out)
            file = BytesIO(data)
            with ZipFile(file, "a") as target:
                target.writestr(_BODY, tidied)  # of two parts with one name the last is read
            pictures = mammoth.images.img_element(lambda _: {"src": ""})
            body = html.parse_html(mammoth.convert_to_html(file, convert_image=pictures).value).find("body")
            document = html.body_document(body, lambda url: "" if url.startswith("#") else url, left_out)
            return converted.with_core_properties(replace(document, anchors={}), archive), {}


def _tidied_body(data: bytes, styles: dict[str, Any], left_out: Counter[str]) -> bytes:
    from lxml import etree

    root = parse_xml(data)
    word = f"{{{etree.QName(root).namespace}}}"
    left_out["formulas"] += sum(1 for _ in root.iter("{*}oMath"))
    etree.strip_tags(root, *(f"{{*}}{name}" for name in _UNKNOWN))
    first, *others = root.findall(f"{word}body")
    first.extend([block for other in others for block in other])
    for about in root.iter(f"{word}pPr"):
        style, outline = (about.find(f"{word}{name}") for name in ("pStyle", "outlineLvl"))
        if heading := _heading(_value(outline)) or _heading_of_style(_value(style), styles):
            style = etree.SubElement(about, f"{word}pStyle") if style is None else style
            style.set(f"{word}val", heading)
    return bytes(etree.tostring(root, encoding="UTF-8", xml_declaration=True))


def _heading_of_style(name: str, styles: dict[str, Any]) -> str:
    """The name by which mammoth knows a heading, if a style is one, or is based on one; a title is of level 1."""
    for _ in range(32):  # styles may be based on each other
        if (style := styles.get(name)) is None:
            break
        if found := re.fullmatch(r"title|heading ([1-9])", _value(style.find("{*}name")).lower()):
            return _heading(str(int(found[1] or 1) - 1))
        if (outline := style.find("{*}pPr/{*}outlineLvl")) is not None:
            return _heading(_value(outline))
        name = _value(style.find("{*}basedOn"))
    return ""


def _heading(outline_level: str) -> str:
    return f"Heading{min(int(outline_level) + 1, 6)}" if re.fullmatch("[0-8]", outline_level) else ""


def _value(element: Any, name: str = "val") -> str:
    """An attribute of the element's own namespace."""
    return "" if element is None else element.get(f"{element.tag.partition('}')[0]}}}{name}", "")
