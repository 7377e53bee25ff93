"""PPTX, XLSX and EPUB: a section for each slide, each sheet, and each heading of a book."""

import posixpath
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from itertools import chain, zip_longest
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from chunksink.ingest.codes import CHUNKING_FAILED
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats import converted, html
from chunksink.ingest.formats.converted import ConvertedFormat, Part, Places, parse_xml
from chunksink.ingest.formats.markdown.document import Document
from chunksink.ingest.formats.markdown.normalise import one_line

_PRESENTATION = "ppt/presentation.xml"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_RELATED = ("diagramData", "chart", "notesSlide")
_MAX_WORKBOOK_BYTES = 2 * 2**30
_MAX_SIZE = 64 * 2**20  # of the cells of a workbook: each counts as its characters and 64 for what it takes besides


class PptxFormat(ConvertedFormat):
    """Slides with their text and tables, then their diagrams, charts and notes; a chunk has the number of its slide."""

    name = "pptx"
    suffixes = (".pptx",)
    source_type = "pptx"
    mime_type = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    libraries = ("lxml",)
    place_name = "slide_number"

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Document, Places]:
        with converted.open_archive(data) as archive:
            converted.count_parts(archive, r"ppt/(comments)/.+\.xml", left_out)
            slides = {id_: path for id_, _, path in _relations(archive, _PRESENTATION)}
            ids = [id_ for slide in parse_xml(archive.read(_PRESENTATION)).iter("{*}sldId") for id_ in slide.values()]
            paths = [slides[id_] for id_ in ids if id_ in slides]
            parts = [part for number, path in enumerate(paths, 1) for part in _slide(archive, number, path, left_out)]
            document, places = converted.build_document(parts)
            return converted.with_core_properties(document, archive), places


def _relations(archive: ZipFile, part: str) -> Iterator[tuple[str, str, str]]:
    """The id, the kind and the path of each part that a part refers to."""
    folder, name = posixpath.split(part)
    path = f"{folder}/_rels/{name}.rels"
    for each in parse_xml(archive.read(path)) if path in archive.namelist() else ():
        target = posixpath.normpath(posixpath.join("/", folder, each.get("Target", "")))
        yield each.get("Id", ""), each.get("Type", "").rpartition("/")[2], target.lstrip("/")


def _slide(archive: ZipFile, number: int, path: str, left_out: Counter[str]) -> list[Part]:
    title = ""
    parts: list[Part] = []
    for shape in parse_xml(archive.read(path)).iter("{*}sp", "{*}graphicFrame", "{*}cxnSp", "{*}pic"):
        place = next(shape.iter("{*}ph"), None)
        table = next(shape.iter(f"{_DRAWING}tbl"), None)
        text = _text(shape) or " ".join(each.get("descr", "") for each in shape.iterfind("{*}nvPicPr/{*}cNvPr"))
        left_out["pictures without text"] += shape.tag.endswith("}pic") and not text
        if table is not None:
            rows = ([_text(cell) for cell in row.iterfind("{*}tc")] for row in table.iterfind("{*}tr"))
            parts.append(Part(converted.markdown_table(rows), is_table=True, place=number))
        elif place is not None and place.get("type") in ("title", "ctrTitle") and not title:
            title = one_line(text)
        elif text:
            parts.append(Part(text, place=number))
    related = [(kind, other) for _, kind, other in _relations(archive, path) if kind in _RELATED]
    for kind, other in sorted(related):
        if text := _text(parse_xml(archive.read(other))):
            parts.append(Part(f"Notes:\n{text}" if kind == "notesSlide" else text, place=number))
    return [Part(title or f"Slide {number}", level=1, place=number), *parts]


def _text(root: Any) -> str:
    """The paragraphs, then the labels and values of the series of a chart."""
    series = (" ".join(value.text or "" for value in each.iter("{*}v")) for each in root.iter("{*}ser"))
    return "\n".join(filter(str.strip, (*map(_words, root.iter(f"{_DRAWING}p")), *series)))


def _words(paragraph: Any) -> str:
    runs = (run for run in paragraph.iter("{*}t", "{*}br") if run.getparent().get("type") != "slidenum")
    return "".join(" " if run.tag.endswith("}br") else run.text or "" for run in runs)


class XlsxFormat(ConvertedFormat):
    """Sheets, hidden ones too, as tables between their empty rows; a chunk has the name of its sheet."""

    name = "xlsx"
    suffixes = (".xlsx",)
    source_type = "xlsx"
    mime_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    libraries = ("openpyxl",)
    extra = "office"
    place_name = "sheet_name"

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Document, Places]:
        openpyxl = import_module("openpyxl")
        with converted.open_archive(data, most=_MAX_WORKBOOK_BYTES) as archive:
            converted.count_parts(archive, r"xl/(comments|threadedComments|charts|drawings).*\.xml", left_out)
            book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
            document, places = converted.build_document(_sheets(book, left_out))
            return converted.with_core_properties(document, archive), places


def _sheets(book: Any, left_out: Counter[str]) -> Iterator[Part]:
    size = 0
    for sheet in book.worksheets:
        yield Part(sheet.title, level=1, place=sheet.title)
        sheet.reset_dimensions()  # a file may state any
        rows: list[list[str]] = []
        for row in chain(sheet.iter_rows(values_only=True), [()]):
            cells = list(map(_shown, row))
            size += sum(len(cell) + 64 for cell in cells if cell)
            if rows and not any(cells):
                yield Part(_grid(rows), is_table=True, place=sheet.title)
                rows = []
            elif any(cells) and size > _MAX_SIZE:
                left_out["rows beyond the limit"] += 1
            elif any(cells):
                rows.append(cells)


def _grid(rows: list[list[str]]) -> str:
    """The rows without the columns that are empty in all of them."""
    used = [number for number, column in enumerate(zip_longest(*rows)) if any(column)]
    return converted.markdown_table([row[number] if number < len(row) else "" for number in used] for row in rows)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    return "" if value is None else one_line(str(value)).removesuffix(" 00:00:00")


class EpubFormat(ConvertedFormat):
    """Books: their chapters in the order of reading, without the table of contents."""

    name = "epub"
    suffixes = (".epub",)
    source_type = "epub"
    mime_type = "application/epub+zip"
    libraries = html.HtmlFormat.libraries

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Document, Places]:
        body = html.parse_html("").find("body")
        with converted.open_archive(data) as archive:
            path = parse_xml(archive.read("META-INF/container.xml")).find(".//{*}rootfile").get("full-path")
            package = parse_xml(archive.read(path))
            texts = package.iterfind(".//{*}item[@media-type='application/xhtml+xml']")
            items = {item.get("id"): item for item in texts if "nav" not in item.get("properties", "")}
            spine = [items[each.get("idref")] for each in package.iter("{*}itemref") if each.get("idref") in items]
            paths = (posixpath.join(posixpath.dirname(path), unquote(item.get("href", ""))) for item in spine)
            chapters = list(map(posixpath.normpath, paths))
            if (lock := "META-INF/encryption.xml") in archive.namelist():  # of fonts, or of the text
                references = parse_xml(archive.read(lock)).iter("{*}CipherReference")
                if not {unquote(each.get("URI", "")) for each in references}.isdisjoint(chapters):
                    raise SourceFailed(CHUNKING_FAILED, "its text is encrypted (DRM)")
            for name in chapters:
                chapter = html.parse_html(html.decode(archive.read(name))).find("body")
                chapter.tag = "div"
                body.append(chapter)
        document = html.body_document(body, lambda url: url if "://" in url else "", left_out)
        stated = {each.tag.rpartition("}")[2]: each.text or "" for each in reversed(package.findall("{*}metadata/*"))}
        return converted.with_metadata(replace(document, anchors={}), stated), {}
