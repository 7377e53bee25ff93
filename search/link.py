"""From a document to a link that opens its source at the place: page, slide, moment, heading."""

import re
from urllib.parse import quote, urlsplit

from sinks.document import Document

Locator = dict[str, str | int | float]

_LINKED = ("", "http", "https", "file")
_NO_SLUG = re.compile(r"[^\w\- ]")


def locator_of(document: Document) -> Locator:
    """Where in its source the chunk stands, as far as it is known."""
    places = {
        "page_start": document.page_start,
        "page_end": document.page_end,
        "slide_number": document.slide_number,
        "sheet_name": document.sheet_name,
        "timestamp_start": document.timestamp_start,
        "timestamp_end": document.timestamp_end,
        "speaker": document.speaker,
        "anchor": document.anchor,
        "section": " > ".join(document.headings) or document.section,
        "char_start": document.char_start,
        "char_end": document.char_end,
        "start_offset": document.start_offset,
        "end_offset": document.end_offset,
    }
    return {name: value for name, value in places.items() if value is not None}


def link_of(document: Document) -> str | None:
    """The source with a fragment that viewers know; None where its name is no address that a page may link to."""
    source = document.source_uri
    if not source or "\\" in source or any(ord(character) < 33 for character in source.strip()):
        return None  # browsers read a backslash as a slash
    try:
        parts = urlsplit(source.strip())
    except ValueError:
        return None
    if parts.scheme.lower() not in _LINKED or (not parts.scheme and source.strip().startswith("//")):
        return None
    if parts.fragment:
        return source.strip()
    fragment = _fragment(document)
    return f"{source.strip()}#{fragment}" if fragment else source.strip()


def _fragment(document: Document) -> str:
    if document.anchor:
        return quote(document.anchor)
    if document.page_start is not None:
        return f"page={document.page_start}"
    if document.slide_number is not None:
        return f"slide={document.slide_number}"
    if document.timestamp_start is not None:
        return f"t={document.timestamp_start:g}"
    return quote(_slug(document.headings[-1])) if document.headings else ""


def _slug(heading: str) -> str:
    """The anchor that Markdown viewers give a heading."""
    return _NO_SLUG.sub("", heading.strip().lower()).replace(" ", "-")
