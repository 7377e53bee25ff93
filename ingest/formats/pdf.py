"""PDF: PDFium reads the text of each page, with the values of form fields. Lines in the outline become headings."""

import re
from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import Any

from chunksink.ingest.codes import CHUNKING_FAILED, SCAN_WITHOUT_TEXT
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.document_format import (
    DocumentFormat,
    Part,
    Places,
    build_document,
    parts_of_lines,
    with_metadata,
)
from chunksink.ingest.formats.markdown.document import Structure
from chunksink.ingest.formats.markdown.normalise import one_line

_HYPHEN = re.compile("[\ufffe\x02\u00ad]\\s*")  # joins a word with its rest on the next line
_WITHOUT_TEXT = "pages without text"


class PdfFormat(DocumentFormat):
    """Pages of text. A chunk records the numbers of its pages. Scans need text recognition (OCR) first."""

    name = "pdf"
    suffixes = (".pdf",)
    mime_type = "application/pdf"
    libraries = ("pypdfium2",)
    extra = "pdf"
    place_name = "page"

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        parts: list[Part] = []
        with _open(data) as pdf:
            pdf.init_forms()
            outline = _outline(pdf)
            for number in range(len(pdf)):
                lines = [one_line(line) for line in _page_text(pdf, number, left_out).split("\n")]
                keys = [(number, _letters(line)) for line in lines]
                levels = {index: outline[key] for index, key in enumerate(keys) if key in outline}
                parts += parts_of_lines([*lines, ""], levels, number + 1)
            stated = pdf.get_metadata_dict()
        document, places = build_document(parts)
        is_scan = not document.blocks and left_out.pop(_WITHOUT_TEXT, 0)
        document = replace(document, notice_codes=frozenset({SCAN_WITHOUT_TEXT} if is_scan else ()))
        return with_metadata(document, {"title": stated["Title"], "creator": stated["Author"]}), places


def _open(data: bytes) -> Any:
    pdfium = import_module("pypdfium2")
    try:
        return pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if "password" not in str(error):
            raise
        remedy = "write a copy without one: qpdf --decrypt --password=PASSWORD IN.pdf OUT.pdf"
        raise SourceFailed(CHUNKING_FAILED, f"it is encrypted with a password; {remedy}") from error


def _outline(pdf: Any) -> dict[tuple[int | None, str], int]:
    """The levels of headings, by page number and letters of the title."""
    found: dict[tuple[int | None, str], int] = {}
    for bookmark in pdf.get_toc(max_depth=6):
        target, letters = bookmark.get_dest(), _letters(bookmark.get_title())
        if target and letters:
            found[target.get_index(), letters] = bookmark.level + 1
    return found


def _letters(text: str) -> str:
    """The letters only: outlines often omit the numbers of headings."""
    return "".join(re.findall(r"[^\W\d_]+", text.casefold()))


def _page_text(pdf: Any, number: int, left_out: Counter[str]) -> str:
    raw = import_module("pypdfium2.raw")
    page = pdf[number]
    if raw.FPDFPage_GetAnnotCount(page):  # makes the values of form fields part of the page's text
        raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
        page.close()
        page = pdf[number]
    text = page.get_textpage().get_text_range()
    left_out[_WITHOUT_TEXT] += not text.strip() and next(page.get_objects(max_depth=2), None) is not None
    page.close()
    return _HYPHEN.sub("", text).replace("\r\n", "\n")
