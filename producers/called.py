"""What sources are called besides their names, and what links call them: notes by their files, pages of a Confluence by
their numbers or titles, as addresses and exports have them. It counts where one source alone is called so.
"""

import posixpath
import re
from collections.abc import Iterator
from unicodedata import normalize
from urllib.parse import parse_qs, unquote, unquote_plus, urlsplit

from chunksink.producers.markdown.links import LinkKind, note_of

HIDDEN = (".md", ".mdx", ".markdown", ".html")
# An export calls its files `Title-of-it_12345.html` or `12345.html`; a row of an interface has the number as its id.
_EXPORTED = re.compile(r"(?:^|/)(?:([^/]+)_)?(\d{5,})\.html?\Z|#id=(\d{5,})\Z", re.IGNORECASE)
_PAGE = re.compile(r"(?:/spaces/([^/]+))?/pages/(\d{5,})(?:/([^/]+))?/?\Z")
_SHOWN = re.compile(r"/display/([^/]+)/([^/]+)/?\Z")
_SIGNS_OF_PAGES = ("/pages/", "/display/", ".action")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def also_called(name: str) -> Iterator[str]:
    yield from notes_of(name)
    yield from pages_of(name)


def notes_of(name: str) -> Iterator[str]:
    """What a link by name may say: the name of its file, also without the suffix of a note."""
    file = folded(posixpath.basename(name))
    yield file
    stem, suffix = posixpath.splitext(file)
    if suffix in HIDDEN:
        yield stem


def pages_of(name: str) -> Iterator[str]:
    """As which page of a Confluence a source may be linked to."""
    if found := _EXPORTED.search(name):
        title, number, row = found.groups()
        yield _page(number or row)
        if title:
            yield _titled("", title)
    number, space, title = _of_address(name)
    if number:
        yield _page(number)
    if title:
        yield _titled(space, title)


def called_by(source_uri: str | None, url: str, kind: str) -> Iterator[str]:
    """What a link calls its target, the surest first."""
    if kind == LinkKind.DOCUMENT and (note := note_of(url)) is not None:
        yield folded(note)
    if kind != LinkKind.CONFLUENCE:
        return
    number, space, title = _of_address(url)
    if number:
        yield _page(number)
    elif title:
        _, own_space, _ = _of_address(source_uri or "")
        yield _titled(space or own_space, title)
        yield _titled("", title)


def folded(name: str) -> str:
    """In whatever case."""
    return normalize("NFC", name).casefold()


def _of_address(url: str) -> tuple[str, str, str]:
    """Number, space and title of the page that it shows, each empty where the address does not say it."""
    if not any(sign in url for sign in _SIGNS_OF_PAGES):  # as nearly all
        return "", "", ""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return "", "", ""
    said = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if ".action" in parts.path:
        return said.get("pageId", ""), said.get("spaceKey", ""), said.get("title", "")
    if found := _PAGE.search(parts.path):
        space, number, title = found.groups(default="")
        return number, unquote(space), unquote_plus(title)
    if found := _SHOWN.search(parts.path):
        return "", unquote(found[1]), unquote_plus(found[2])
    return "", "", ""


def _page(number: str) -> str:
    """As no file can be called."""
    return f"page/{number}"


def _titled(space: str, title: str) -> str:
    return f"page/{folded(space)}/{_BETWEEN_WORDS.sub(' ', folded(title)).strip()}"
