"""PDF: the text of its pages, each chunk with the pages that it comes from. A scan without text is empty.

What people fill into a form, or write onto a page, is no text of the page for the parser: it follows that text.
"""

import logging
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import BytesIO
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import (
    CHUNKING_FAILED,
    CONVERTER_MISSING,
    PARTS_LEFT_OUT,
    SCAN_WITHOUT_TEXT,
    SourceFailed,
)
from chunksink.producers.markdown.chunker import MarkdownChunker
from chunksink.producers.markdown.records import Form, SourceVersion
from chunksink.producers.produced import Tell, untold
from chunksink.producers.text import paragraphs

if TYPE_CHECKING:
    from pypdf import PageObject

# Raise it with any change here that the chunks show.
_RULES_VERSION = "2"
_PAGE_BREAK = "\n\n"
_HYPHENATED = "\u00ad\n"
"""A word that goes on in the next line."""
# Bits of what a field and a mark on the page are.
_HIDDEN = 1 << 1
_PASSWORD = 1 << 13
_RADIO = 1 << 15
_BUTTON = 1 << 16
_OFF = "/Off"
_NO_COMMENTS = ("/FreeText", "/Widget", "/Link", "/Popup")
_BOXES = ("☒", "☐")
_MOST_FIELDS = 32  # in one another


@dataclass(frozen=True)
class PdfChunker:
    """Cuts PDF by the policy and tokenizer of the Markdown chunker."""

    markdown: MarkdownChunker = field(default_factory=MarkdownChunker)

    def __post_init__(self) -> None:
        require("pypdf", "pdf", "PDF")

    @property
    def parser(self) -> tuple[str, str]:
        from pypdf import __version__

        return ("pypdf", f"{__version__}+pdf-{_RULES_VERSION}")

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return self.markdown.canonicalizer

    def chunks(
        self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record, tell: Tell = untold
    ) -> list[Record]:
        """The document's chunks, none where it has no text. Raises SourceFailed."""
        pages, metadata, has_pictures, has_comments = _read(data)
        texts = [paragraphs(page.replace(_HYPHENATED, "")).text.strip() for page in pages]
        starts = list(accumulate((len(text) + len(_PAGE_BREAK) for text in texts), initial=0))
        document = paragraphs(_PAGE_BREAK.join(texts), metadata)
        if has_pictures and not any(texts):
            raise SourceFailed(SCAN_WITHOUT_TEXT, "its pages are pictures and hold no text")
        if has_comments:
            tell(PARTS_LEFT_OUT)
        form = Form(self.parser, "pdf", "application/pdf")
        records = self.markdown.cut(document, source, form, created_at=created_at, producer=producer, tell=tell)
        return [_with_pages(record, starts) for record in records]


def require(module: str, extra: str, what: str) -> None:
    """Raises SourceFailed where what reads this kind of source is not installed."""
    if find_spec(module) is None:
        raise SourceFailed(CONVERTER_MISSING, f"{what} needs {module}: pip install 'chunksink[{extra}]'")


def unreadable(what: str, error: Exception) -> SourceFailed:
    """Parsers meet broken files with any kind of error; whatever it is, this file cannot be read, and others can."""
    return SourceFailed(CHUNKING_FAILED, f"cannot be read as {what}: {str(error) or type(error).__name__}")


def _read(data: bytes) -> tuple[list[str], dict[str, str], bool, bool]:
    """The text of each page, what the file says of itself, and whether it shows pictures, and has comments."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # else Python prints what it says
    try:
        reader = PdfReader(BytesIO(data))
        pages = [_PAGE_BREAK.join((page.extract_text(), "\n".join(_filled_in(page)))) for page in reader.pages]
        said = reader.metadata
        about = {"title": said.title, "author": said.author} if said else {}
        has_comments = any(map(_has_comments, reader.pages))
        has_pictures = not any(map(str.strip, pages)) and any(map(_shows_pictures, reader.pages))
    except DependencyError as error:
        remedy = "pip install 'chunksink[pdf]' brings what encrypted files need"
        raise SourceFailed(CONVERTER_MISSING, f"{error}; {remedy}") from error
    except FileNotDecryptedError as error:
        remedy = "write a copy without one (qpdf --decrypt --password=PASSWORD IN.pdf OUT.pdf) and ingest that"
        raise SourceFailed(CHUNKING_FAILED, f"the PDF is encrypted and asks for a password; {remedy}") from error
    except Exception as error:
        raise unreadable("PDF", error) from error
    return pages, {name: str(value) for name, value in about.items() if value}, has_pictures, has_comments


def _shows_pictures(page: "PageObject") -> bool:
    resources = _inherited(page, "/Resources")
    drawn = _own(resources, "/XObject") if isinstance(resources, dict) else None
    if not isinstance(drawn, dict):
        return False
    return any(isinstance(each, dict) and _own(each, "/Subtype") == "/Image" for each in _items(list(drawn.values())))


def _filled_in(page: "PageObject") -> Iterator[str]:
    """What was written onto the page, and the values of its fields with their names."""
    for note in _items(_own(page, "/Annots")):
        if not isinstance(note, dict) or _number(_own(note, "/F")) & _HIDDEN:
            continue
        kind = _own(note, "/Subtype")
        value = _text(_own(note, "/Contents")) if kind == "/FreeText" else _value(note) if kind == "/Widget" else ""
        label = _text(_inherited(note, "/TU")) or _text(_inherited(note, "/T")) if kind == "/Widget" else ""
        if value:
            yield f"{label}: {value}" if label else value


def _has_comments(page: "PageObject") -> bool:
    """Notes that stand at the page, and what was said of what is marked on it; not of links, nor what is read."""
    notes = (note for note in _items(_own(page, "/Annots")) if isinstance(note, dict))
    shown = (note for note in notes if not _number(_own(note, "/F")) & _HIDDEN)
    return any(_own(note, "/Subtype") not in _NO_COMMENTS and _text(_own(note, "/Contents")) for note in shown)


def _value(field: dict[Any, Any]) -> str:
    """As the page shows it; no password, and of what can be chosen only what is."""
    kind, flags, value = _inherited(field, "/FT"), _number(_inherited(field, "/Ff")), _inherited(field, "/V")
    if kind == "/Tx":
        return "" if flags & _PASSWORD else _text(value)
    if kind == "/Ch":
        options = [_items(option) for option in _items(_inherited(field, "/Opt")) if isinstance(option, list)]
        shown = {_text(option[0]): _text(option[-1]) for option in options if option}
        chosen = filter(None, map(_text, _items(value) if isinstance(value, list) else [value]))
        return ", ".join(shown.get(said, said) for said in chosen)
    if kind != "/Btn" or flags & _BUTTON:
        return ""
    state = _own(field, "/AS")
    if flags & _RADIO:
        return "" if state in (None, _OFF) else _text(state).removeprefix("/")
    return _BOXES[(value if state is None else state) in (None, _OFF)]


def _inherited(field: dict[Any, Any], name: str) -> Any:
    """What a field says itself, else what one of those around it says."""
    holder: Any = field
    for _ in range(_MOST_FIELDS):
        if not isinstance(holder, dict) or name in holder:
            break
        holder = _own(holder, "/Parent")
    return _own(holder, name) if isinstance(holder, dict) else None


def _own(holder: dict[Any, Any], name: str) -> Any:
    """What stands there, be it somewhere else in the file."""
    found = holder.get(name)
    return None if found is None else found.get_object()


def _items(value: Any) -> list[Any]:
    return [item.get_object() for item in value] if isinstance(value, list) else []


def _text(value: Any) -> str:
    from pypdf.generic import StreamObject

    text = value.get_data().decode("utf-8", "replace") if isinstance(value, StreamObject) else value
    return text.strip() if isinstance(text, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _with_pages(record: Record, starts: list[int]) -> Record:
    from chunksink.chunkbus.canonical import chunk_object_hash

    place = record["span"]["char_range"]
    first, last = (bisect_right(starts, at) for at in (place["char_start"], place["char_end"] - 1))
    record["span"]["pages"] = {"page_start": first, "page_end": last}
    record["hashes"]["chunk_object_hash"] = chunk_object_hash(record)
    return record
