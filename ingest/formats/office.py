"""DOCX, PPTX, XLSX and EPUB: archives of XML. Slides, sheets and headings become sections."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from importlib import import_module
from io import BytesIO
from itertools import chain, zip_longest
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from chunksink.ingest.codes import CHUNKING_FAILED
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats import html
from chunksink.ingest.formats.document_format import DocumentFormat, Part, Places, build_document, with_metadata
from chunksink.ingest.formats.markdown.document import Kind, Structure
from chunksink.ingest.formats.markdown.normalise import one_line

_COMPOUND_FILE = b"\xd0\xcf\x11\xe0"
_SHEETS = "xl/worksheets/"  # read as streams, so their size is not limited
_CORE_PROPERTIES = "docProps/core.xml"
_ALTERNATIVES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
_MAX_PART = 16 * 2**20  # mammoth needs fifty times as much memory
_BODY = "word/document.xml"
_STYLES = "word/styles.xml"
_LEFT_OUT = r"word/(comments|header|footer|charts/chart|diagrams/data)\d*\.xml"
_UNKNOWN_TO_MAMMOTH = ("fldSimple", "dir", "bdo", "ruby", "rubyBase", "AlternateContent", "Choice", "Fallback")
_PRESENTATION = "ppt/presentation.xml"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_RELATED = ("diagramData", "chart", "notesSlide")
# The formats for leading zeros (`00000`) and percentages (`0.0%`).
_NUMBER_FORMAT = re.compile(r"(0{2,99})|(?:#,##)?0(?:\.(0{1,9}))?(?:\\?( ))?%")
_MAX_FORMATTED = 10**12  # larger numbers are shown as they are stored
_MAX_WORKBOOK_BYTES = 2 * 2**30
_MAX_ROWS = 2**20  # of a sheet in Excel; openpyxl adds an empty row for each number that is missing
_MAX_SIZE = 64 * 2**20  # of a workbook; each cell counts as 64 plus its characters


class DocxFormat(DocumentFormat):
    """Word documents: text, headings, lists, tables, footnotes and text boxes."""

    name = "docx"
    suffixes = (".docx",)
    mime_type = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    rules = "3"
    libraries = ("mammoth", *html.HtmlFormat.libraries)
    extra = "docx"

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        import mammoth

        with _open_archive(data, max_part=_MAX_PART) as archive:
            _count_parts(archive, _LEFT_OUT, left_out)
            styles = _parse_xml(archive.read(_STYLES)).iter("{*}style") if _STYLES in archive.namelist() else ()
            tidied = _tidied_body(archive.read(_BODY), {_value(style, "styleId"): style for style in styles}, left_out)
            file = BytesIO(data)
            with ZipFile(file, "a") as target:
                target.writestr(_BODY, tidied)  # of two parts with the same name, the last counts
            pictures = mammoth.images.img_element(lambda _: {"src": ""})
            body = html.parse_html(mammoth.convert_to_html(file, convert_image=pictures).value).find("body")
            document = html.body_document(body, lambda url: "" if url.startswith("#") else url, left_out)
            return _with_core_properties(replace(document, anchors={}), archive), {}


def _tidied_body(data: bytes, styles: dict[str, Any], left_out: Counter[str]) -> bytes:
    """The main part without elements unknown to mammoth. Headings get the styles that mammoth knows."""
    from lxml import etree

    root = _parse_xml(data)
    word = f"{{{etree.QName(root).namespace}}}"
    left_out["formulas"] += sum(1 for _ in root.iter("{*}oMath"))
    etree.strip_elements(root, "{*}rt", with_tail=False)  # the readings of ruby
    etree.strip_tags(root, *(f"{{*}}{name}" for name in _UNKNOWN_TO_MAMMOTH))
    for properties in root.iter(f"{word}pPr"):
        style, outline = (properties.find(f"{word}{name}") for name in ("pStyle", "outlineLvl"))
        if heading := _heading(_value(outline)) or _heading_of_style(_value(style), styles):
            style = etree.SubElement(properties, f"{word}pStyle") if style is None else style
            style.set(f"{word}val", heading)
    return bytes(etree.tostring(root, encoding="UTF-8", xml_declaration=True))


def _heading_of_style(name: str, styles: dict[str, Any]) -> str:
    """mammoth's name for a heading style, or for a style based on one, else "". A title counts as level 1."""
    for _ in range(32):  # bounded, because styles may be based on each other
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
    """The attribute in the element's namespace; "" if it is missing."""
    return "" if element is None else element.get(f"{element.tag.partition('}')[0]}}}{name}", "")


class PptxFormat(DocumentFormat):
    """Slides: text and tables, then charts, diagrams and notes. A chunk records the number of its slide."""

    name = "pptx"
    suffixes = (".pptx",)
    mime_type = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    libraries = ("lxml",)
    place_name = "slide_number"

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        with _open_archive(data) as archive:
            _count_parts(archive, r"ppt/(comments)/.+\.xml", left_out)
            slides = {id_: path for id_, _, path in _relations(archive, _PRESENTATION)}
            ids = [id_ for slide in _parse_xml(archive.read(_PRESENTATION)).iter("{*}sldId") for id_ in slide.values()]
            paths = dict.fromkeys(slides[id_] for id_ in ids if id_ in slides)
            parts = [part for number, path in enumerate(paths, 1) for part in _slide(archive, number, path, left_out)]
            document, places = build_document(parts)
            return _with_core_properties(document, archive), places


def _relations(archive: ZipFile, part: str) -> Iterator[tuple[str, str, str]]:
    """Id, kind and path of each part that this part refers to."""
    folder, name = posixpath.split(part)
    path = f"{folder}/_rels/{name}.rels"
    for each in _parse_xml(archive.read(path)) if path in archive.namelist() else ():
        target = posixpath.normpath(posixpath.join("/", folder, each.get("Target", "")))
        yield each.get("Id", ""), each.get("Type", "").rpartition("/")[2], target.lstrip("/")


def _slide(archive: ZipFile, number: int, path: str, left_out: Counter[str]) -> list[Part]:
    title = ""
    parts: list[Part] = []
    for shape in _parse_xml(archive.read(path)).iter("{*}sp", "{*}graphicFrame", "{*}cxnSp", "{*}pic"):
        place = next(shape.iter("{*}ph"), None)
        table = next(shape.iter(f"{_DRAWING}tbl"), None)
        text = _text(shape) or " ".join(each.get("descr", "") for each in shape.iterfind("{*}nvPicPr/{*}cNvPr"))
        left_out["pictures without text"] += shape.tag.endswith("}pic") and not text
        if table is not None:
            rows = ([_text(cell) for cell in row.iterfind("{*}tc")] for row in table.iterfind("{*}tr"))
            parts.append(Part(_markdown_table(rows), kind=Kind.TABLE, place=number))
        elif place is not None and place.get("type") in ("title", "ctrTitle") and not title:
            title = one_line(text)
        elif text:
            parts.append(Part(text, place=number))
    related = {(kind, other) for _, kind, other in _relations(archive, path) if kind in _RELATED}
    for kind, other in sorted(related):
        if text := _text(_parse_xml(archive.read(other))):
            parts.append(Part(f"Notes:\n{text}" if kind == "notesSlide" else text, place=number))
    return [Part(title or f"Slide {number}", level=1, place=number), *parts]


def _text(root: Any) -> str:
    """The paragraphs, then the labels and values of each data series of a chart."""
    series = (" ".join(value.text or "" for value in each.iter("{*}v")) for each in root.iter("{*}ser"))
    return "\n".join(filter(str.strip, (*map(_words, root.iter(f"{_DRAWING}p")), *series)))


def _words(paragraph: Any) -> str:
    runs = (run for run in paragraph.iter("{*}t", "{*}br") if run.getparent().get("type") != "slidenum")
    return "".join(" " if run.tag.endswith("}br") else run.text or "" for run in runs)


class XlsxFormat(DocumentFormat):
    """Sheets, including hidden ones. Empty rows separate tables. A chunk records the name of its sheet."""

    name = "xlsx"
    rules = "3"
    suffixes = (".xlsx",)
    mime_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    libraries = ("openpyxl",)
    extra = "office"
    place_name = "sheet_name"

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        openpyxl = import_module("openpyxl")
        with _open_archive(data, max_total=_MAX_WORKBOOK_BYTES) as archive:
            _count_parts(archive, r"xl/(comments|threadedComments|charts|drawings).*\.xml", left_out)
            book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
            document, places = build_document(_sheets(book, left_out))
            return _with_core_properties(document, archive), places


def _sheets(book: Any, left_out: Counter[str]) -> Iterator[Part]:
    size = 0
    for sheet in book.worksheets:
        yield Part(sheet.title, level=1, place=sheet.title)
        sheet.reset_dimensions()  # the size that a file states may be wrong
        rows: list[list[str]] = []
        for number, row in enumerate(chain(sheet.iter_rows(max_row=_MAX_ROWS + 1), [()])):
            cells = list(map(_shown, row))
            size += sum(len(cell) + 64 for cell in cells if cell)
            left_out["rows beyond the limit"] += number > _MAX_ROWS
            if rows and not any(cells):
                columns = (column for column in zip_longest(*rows, fillvalue="") if any(column))
                yield Part(_markdown_table(zip(*columns, strict=True)), kind=Kind.TABLE, place=sheet.title)
                rows = []
            elif any(cells) and size > _MAX_SIZE:
                left_out["rows beyond the limit"] += 1
            elif any(cells):
                rows.append(cells)


def _shown(cell: Any) -> str:
    value = cell.value
    if type(value) in (int, float) and cell.has_style and (number := _formatted(cell, value)):
        return number
    if isinstance(value, float):
        return f"{value:.15g}"
    return "" if value is None else one_line(str(value)).removesuffix(" 00:00:00")


def _formatted(cell: Any, value: float) -> str:
    """The number as the cell shows it; "" if its format is not one of `_NUMBER_FORMAT`."""
    found = None
    with suppress(IndexError):  # a style that the workbook does not have
        found = _NUMBER_FORMAT.fullmatch(cell.number_format.partition(";")[0])
    if found is None or not abs(value) < _MAX_FORMATTED:
        return ""
    zeros, decimals, space = (part or "" for part in found.groups())
    if zeros:
        return f"{'-' * (value < 0)}{abs(int(value)):0{len(zeros)}}" if value == int(value) else ""
    percent = Decimal(f"{value * 100:.15g}").quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    return f"{percent:f}{space}%"


def _markdown_table(rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; the first row is the header, and short rows are filled with empty cells."""
    cells = [[one_line(cell).replace("|", "\\|") for cell in row] for row in rows]
    width = max(map(len, cells), default=0)
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in cells]
    return "\n".join([*lines[:1], f"| {' | '.join(['---'] * width)} |", *lines[1:]])


class EpubFormat(DocumentFormat):
    """Books: the chapters in reading order, without the table of contents."""

    name = "epub"
    rules = "5"
    suffixes = (".epub",)
    mime_type = "application/epub+zip"
    libraries = html.HtmlFormat.libraries

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        body = html.parse_html("").find("body")
        with _open_archive(data) as archive:
            path = _parse_xml(archive.read("META-INF/container.xml")).find(".//{*}rootfile").get("full-path")
            package = _parse_xml(archive.read(path))
            texts = package.iterfind(".//{*}item[@media-type='application/xhtml+xml']")
            items = {item.get("id"): item for item in texts if "nav" not in item.get("properties", "")}
            spine = [items[each.get("idref")] for each in package.iter("{*}itemref") if each.get("idref") in items]
            paths = (posixpath.join(posixpath.dirname(path), unquote(item.get("href", ""))) for item in spine)
            chapters = dict.fromkeys(map(posixpath.normpath, paths))
            if (encryption := "META-INF/encryption.xml") in archive.namelist():  # fonts may be encrypted
                references = _parse_xml(archive.read(encryption)).iter("{*}CipherReference")
                if not {unquote(each.get("URI", "")) for each in references}.isdisjoint(chapters):
                    raise SourceFailed(CHUNKING_FAILED, "its text is encrypted (DRM)")
            for name in chapters:
                chapter = html.parse_html(html.decode(archive.read(name))).find("body")
                chapter.tag = "div"
                body.append(chapter)
        document = html.body_document(body, lambda url: url if "://" in url else "", left_out)
        stated = {each.tag.rpartition("}")[2]: each.text or "" for each in reversed(package.findall("{*}metadata/*"))}
        stated["creator"] = ";".join(each.text or "" for each in package.iterfind("{*}metadata/{*}creator"))
        return with_metadata(replace(document, anchors={}), stated), {}


def _open_archive(data: bytes, *, max_total: int = 512 * 2**20, max_part: int = 64 * 2**20) -> ZipFile:
    """Opens an archive. It may unpack to at most `max_total` bytes, and each text part except sheets to `max_part`."""
    if data.startswith(_COMPOUND_FILE):
        reason = "it has a password, or its format is older than 2007; save it without a password in the current format"
        raise SourceFailed(CHUNKING_FAILED, reason)
    archive = ZipFile(BytesIO(data))
    members = archive.infolist()
    texts = (each for each in members if each.filename.endswith("ml") and not each.filename.startswith(_SHEETS))
    if sum(each.file_size for each in members) > max_total or any(each.file_size > max_part for each in texts):
        raise SourceFailed(CHUNKING_FAILED, f"it unpacks to more than {max_total >> 20} MiB, or a part is too large")
    return archive


def _parse_xml(data: bytes) -> Any:
    """The root element without entities and comments. An `AlternateContent` element keeps one of its alternatives: the
    last with text, else the last."""
    from lxml import etree

    root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True))
    for alternatives in list(root.iter(_ALTERNATIVES)):
        with_text = [each for each in alternatives if next(each.iter("{*}t"), None) is not None]
        alternatives[:] = (with_text or list(alternatives))[-1:]
    return root


def _with_core_properties(document: Structure, archive: ZipFile) -> Structure:
    found = _parse_xml(archive.read(_CORE_PROPERTIES)) if _CORE_PROPERTIES in archive.namelist() else ()
    return with_metadata(document, {each.tag.rpartition("}")[2]: each.text or "" for each in found})


def _count_parts(archive: ZipFile, pattern: str, left_out: Counter[str]) -> None:
    """Counts the parts whose names match the pattern and that contain words, by the pattern's group."""
    found = ((match[1], name) for name in set(archive.namelist()) if (match := re.fullmatch(pattern, name)))
    texts = ((what, re.sub(rb"<[^<>]*>", b"", archive.read(name)).decode("utf-8", "replace")) for what, name in found)
    left_out.update(what for what, text in texts if re.search(r"[^\W\d_]", text))
