"""Links that open a source at the right place: page, slide, time, heading or offset."""

import re
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

from chunksink.chunkbus.slug import slug_of
from chunksink.sinks.document import Document

Locator = dict[str, str | int | float]

_MARKDOWN = "text/markdown"
_MARKDOWN_FILES = ("md", "markdown")
_LINKED = ("http", "https", "file")
_NO_SECTION = re.compile(r"/|/front_matter|(?:/[a-z]+\[\d+\])+")
"""Section paths that name no section, for example `/ul[4]` or `/front_matter`. They are not shown."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\s)")  # `note: plan.md` is a file name
# `#` starts a fragment if `name=value` follows, or if a file suffix is before it and one word after it. Otherwise it is
# part of the name.
_NAMED = re.compile(r"(?P<name>.+?)#(?P<place>[\w.-]+=[^#\s]*)|(?P<file>.+\.\w+)#(?P<word>[^\W\d][\w-]*)", re.DOTALL)
_UNQUOTED = "/%?:@!$&'()*+,;=~"


def locator_of(document: Document) -> Locator:
    """The place of the chunk in its source, as far as it is known."""
    places = {
        "page_start": document.page_start,
        "page_end": document.page_end,
        "slide_number": document.slide_number,
        "sheet_name": document.sheet_name,
        "timestamp_start": document.timestamp_start,
        "timestamp_end": document.timestamp_end,
        "speaker": document.speaker,
        "anchor": document.anchor,
        "section": " > ".join(document.headings) or section_of(document),
        "char_start": document.char_start,
        "char_end": document.char_end,
        "start_offset": document.start_offset,
        "end_offset": document.end_offset,
    }
    return {name: value for name, value in places.items() if value is not None}


def section_of(document: Document) -> str | None:
    """The section path, to show if there are no headings; None if the path names no section."""
    return None if _NO_SECTION.fullmatch(document.section or "/") else document.section


def link_of(document: Document) -> str | None:
    """The source with a fragment that viewers understand; None if the source cannot be linked safely."""
    source = document.source_uri
    if not source or "\\" in source or _CONTROL.search(source):
        return None  # browsers treat a backslash as a slash
    split = _of_web(source.strip(" ")) if _SCHEME.match(source.lstrip(" ")) else _of_file(source)
    if split is None:
        return None
    address, source_fragment = split
    fragment = _fragment(document, source_fragment)
    return f"{address}#{fragment}" if fragment else address


def name_of(source: str) -> str:
    """The file name without its folders."""
    try:
        name = urlsplit(source).path if _SCHEME.match(source) else _split_file(source)[0]
    except ValueError:  # for example unpaired brackets
        name = _split_file(source)[0]
    return name.rstrip("/").rpartition("/")[2]


def _of_web(source: str) -> tuple[str, str] | None:
    """The address of a URL (`http:`, `https:` or `file:`) and its fragment. Only spaces need quoting."""
    try:
        scheme = urlsplit(source).scheme.lower()
    except ValueError:
        return None
    address, _, fragment = source.replace(" ", "%20").partition("#")
    return (address, fragment) if scheme in _LINKED else None


def _of_file(source: str) -> tuple[str, str] | None:
    """A file name with its special characters quoted, and the fragment."""
    if source.startswith("//"):
        return None
    name, fragment = _split_file(source)
    return quote(name), quote(fragment, safe=_UNQUOTED)


def _split_file(source: str) -> tuple[str, str]:
    """The name of a file, and the fragment if the source has one."""
    found = _NAMED.fullmatch(source)
    if found is None:
        return source, ""
    return (found["name"], found["place"]) if found["name"] else (found["file"], found["word"])


def _fragment(document: Document, source_fragment: str) -> str:
    """The fragment of the source, extended by the place of the chunk. A fragment without `=` is an anchor: nothing can
    be appended to it."""
    if source_fragment and "=" not in source_fragment:
        return source_fragment
    places = list(_places(document))
    if source_fragment:
        names = {place.partition("=")[0] for place in source_fragment.split("&")}
        return "&".join([source_fragment, *(f"{name}={value}" for name, value in places if name not in names)])
    if document.anchor:
        return quote(document.anchor)
    if is_markdown(document) and document.headings and all(name == "offset" for name, _ in places):
        return quote(slug_of(document.headings[-1]))
    return "&".join(f"{name}={value}" for name, value in places)


def _places(document: Document) -> Iterator[tuple[str, str]]:
    if document.page_start is not None:
        yield "page", str(document.page_start)
    elif document.slide_number is not None:
        yield "slide", str(document.slide_number)
    elif document.timestamp_start is not None:
        yield "t", f"{document.timestamp_start:g}"
    if document.start_offset is not None:
        yield "offset", quote(document.start_offset)


def is_markdown(document: Document) -> bool:
    """Whether the source is Markdown. Only Markdown viewers derive anchors from the words of headings."""
    return document.mime_type == _MARKDOWN or (document.file_type or "").lower() in _MARKDOWN_FILES
