"""PDF: PDFium reads the text of each page, with the values of form fields. Lines in the outline become headings."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
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

_HYPHEN = re.compile("[\ufffe\x02\u00ad]\\s*")  # PDFium writes one of these for a hyphen at the end of a line
_LEADERS = re.compile(r"\.(?:\s?\.){3,}")  # between words and page numbers of a table of contents
_ADDRESS = re.compile(r"://|www\.|@|\w\.[a-z]{2}")
_SUSPENDED = re.compile(r"(?:und|oder|bzw|and|or|et)\b")
_MAX_LINE_GAP = 1.5
"""The largest gap between lines of a block, in line heights. Double spacing is smaller, the gap to a footer larger."""
_MIN_REPEATING_PAGES = 3
_MAX_RUNNING_LINES = 3
_MAX_RUNNING_CHARACTERS = 200
_MAX_FIRST_PAGE = 100
"""The largest page number that the first page of a file may have. A number on a later page is a page number only if
counting back from it gives the first page at most this: 2001 in `Invoice - 2001` on page 3 would give 1999. A number
after a word such as "page" always is one."""
_WORD = re.compile(r"[^\W\d_]+")
_PAGE_NUMBER = re.compile(
    r"\b(?:(?:page|pg|seite|blatt|pagina|página|pag|pág)\b[ .:]*|[ps]\. ?)(\d{1,9})"  # page 7, S. 7
    r"|^[-–— ]*(\d{1,9})(?= *(?:$|[-–—|·•/]| (?:of|von|sur|de|di) ))"  # - 7 -, 7 of 9, 7 | Report
    r"|(?: [-–—]|[|·•]) *(\d{1,9})$",  # Report | 7
    re.IGNORECASE,
)
_WITHOUT_TEXT = "pages without text"


class PdfFormat(DocumentFormat):
    """Pages of text. A chunk records the numbers of its pages. Scans need text recognition (OCR) first."""

    name = "pdf"
    suffixes = (".pdf",)
    mime_type = "application/pdf"
    libraries = ("pypdfium2",)
    extra = "pdf"
    rules = "6"
    place_name = "page"

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        parts: list[Part] = []
        with _open(data) as pdf:
            pdf.init_forms()
            outline = _outline(pdf)
            texts = (_page_text(pdf, number, left_out) for number in range(len(pdf)))
            pages = [[one_line(line) for line in text.strip().split("\n")] for text in texts]
            _drop_running_lines(pages, outline)
            for number, lines in enumerate(pages):
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
    """The levels of headings, by page index and letters of the title."""
    found: dict[tuple[int | None, str], int] = {}
    for bookmark in pdf.get_toc(max_depth=6):
        target, letters = bookmark.get_dest(), _letters(bookmark.get_title())
        if target and letters:
            found[target.get_index(), letters] = bookmark.level + 1
    return found


def _letters(text: str) -> str:
    """The letters only: outlines often omit the numbers of headings."""
    return "".join(_WORD.findall(text.casefold()))


def _drop_running_lines(pages: Sequence[list[str]], outline: Mapping[tuple[int | None, str], int]) -> None:
    """Removes headers and footers, except headings. Of equal header lines the first stays, of equal footer lines the
    last. No line is both: on a short page the footer does not reach into the header."""
    tops = _running_lines(pages)
    from_below = _running_lines([lines[::-1] for lines in pages])
    bottoms = [min(depth, len(lines) - top) for depth, lines, top in zip(from_below, pages, tops, strict=True)]
    headers = [(number, slice(depth)) for number, depth in enumerate(tops) if depth]
    footers = [(number, slice(-depth, None)) for number, depth in enumerate(bottoms) if depth]
    for places in (headers, footers[::-1]):
        kept: set[str] = set()
        for number, place in places:
            lines = [(line, _key(line, number)) for line in pages[number][place]]
            pages[number][place] = [
                line for line, key in lines if key not in kept or (number, _letters(line)) in outline
            ]
            kept.update(key for _, key in lines)


def _running_lines(pages: Sequence[list[str]]) -> list[int]:
    """The number of header lines of each page, at most three. A header line is shared by more than half of the pages.
    A line that occurs more than twice per page on average is text."""
    depths = [0] * len(pages)
    for depth in range(_MAX_RUNNING_LINES if len(pages) >= _MIN_REPEATING_PAGES else 0):
        reached = [page for page, lines in enumerate(pages) if depths[page] == depth < len(lines)]
        keys = {page: _key(pages[page][depth], page) for page in reached}
        common, count = next(iter(Counter(keys.values()).most_common(1)), ("", 0))
        if count * 2 <= len(pages):
            break
        everywhere = sum(_key(line, page) == common for page, lines in enumerate(pages) for line in lines)
        if everywhere > 2 * len(pages):
            break
        for page, key in keys.items():
            depths[page] += key == common
    return depths


def _key(line: str, page: int) -> str:
    """The line with its page number made relative to the page's index, so that headers of different pages are equal. A
    page number follows a word such as "page", or is set off from the rest."""
    found = _PAGE_NUMBER.search(line) if len(line) <= _MAX_RUNNING_CHARACTERS else None
    if found is None or found.lastindex is None:
        return line
    start, end = found.span(found.lastindex)
    first = int(line[start:end]) - page
    return line if found.lastindex > 1 and first > _MAX_FIRST_PAGE else f"{line[:start]}\0{first}{line[end:]}"


def _page_text(pdf: Any, number: int, left_out: Counter[str]) -> str:
    """The text of a page. Words that were split between two lines are joined."""
    raw = import_module("pypdfium2.raw")
    page = pdf[number]
    if raw.FPDFPage_GetAnnotCount(page):  # makes the values of form fields part of the page's text
        raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
        page.close()
        page = pdf[number]
    textpage = page.get_textpage()
    text = textpage.get_text_range()
    left_out[_WITHOUT_TEXT] += not text.strip() and next(page.get_objects(max_depth=2), None) is not None
    text = _HYPHEN.sub(lambda hyphen: "-\n" if _ends_block(textpage, hyphen.start()) else "\ufffe", text)
    page.close()
    return _LEADERS.sub(" … ", re.sub(r"\S+", _without_hyphens, text).replace("\r\n", "\n"))


def _ends_block(textpage: Any, position: int) -> bool:
    """Whether the line with this hyphen is the last of its block, so that a footer follows."""
    index = import_module("pypdfium2.raw").FPDFText_GetCharIndexFromTextIndex(textpage, position)
    if not 0 <= index < textpage.count_chars() - 1:
        return False
    (_, bottom, _, top), (*_, next_top) = (textpage.get_charbox(each, loose=True) for each in (index, index + 1))
    return bool(bottom - next_top > _MAX_LINE_GAP * (top - bottom))


def _without_hyphens(run: re.Match[str]) -> str:
    """The characters between two spaces, without hyphens that only split a word."""
    is_address = _ADDRESS.search(run[0]) is not None

    def shown(hyphen: re.Match[str]) -> str:
        if not is_address and _SUSPENDED.match(run[0], hyphen.end()):
            return "- "
        rest = run[0][hyphen.end() : hyphen.end() + 2]
        around = run[0][hyphen.start() - 1 : hyphen.start()] + rest
        is_within_capitals = len(around) == 3 and around.isalpha() and around.isupper()
        is_joint = rest[:1].isdigit() or (rest[:1].isupper() and not is_within_capitals)
        return "-" if is_address or is_joint else ""

    return _HYPHEN.sub(shown, run[0])
