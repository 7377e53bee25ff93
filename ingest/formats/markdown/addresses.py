"""Finds the addresses of links in plain text and HTML, classifies them, and resolves them to possible sources."""

import posixpath
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from itertools import accumulate
from urllib.parse import unquote, urldefrag, urljoin

MAX_ADDRESS = 4096
"""Characters; a longer address is treated as data, not as a link."""


class LinkKind(StrEnum):
    DOCUMENT = "document"
    ANCHOR = "anchor"
    CONFLUENCE = "confluence"
    IMAGE = "image"
    EMAIL = "email"
    EXTERNAL = "external"


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_WEB_ADDRESS = re.compile("https?://", re.IGNORECASE)
_BARE = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]]+")
_NOT_AT_END = ".,;:!?*_。，；：！？）"
_HTML_ADDRESS = re.compile(
    r"""<(a|img)\s[^<>]{0,999}?(?:href|src)\s{0,9}=\s{0,9}["']\s{0,99}([^"'\s]{1,4096})\s{0,99}["']""", re.I
)
# Obsidian's `[[Note#Part|shown]]`; not footnote numbers, `[[_TOC_]]`, character classes or shell tests (`[[ -f x ]]`).
_WIKI = re.compile(
    r"(!?)(?<!\\)(?<!\[)(\[\[(?!\s|\d{1,3}\]\]|_?toc_?\]\])([^\[\]|:<>\"*\n]{1,999})(?:\|[^\[\]\n]{0,999})?\]\])", re.I
)
_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|avif|bmp)\s*\Z", re.I)

_HOST_AND_PATH = re.compile(r"(?:https?:)?//([^/?#\s]+)(.*)", re.I | re.S)
# Confluence Cloud shares its hosts with Jira; a host named `confluence` may have moved to MediaWiki.
_CLOUD = re.compile(r"(?:.*[@.])?[\w-]+\.atlassian\.net(?::\d+)?", re.I)
_JIRA = re.compile(r"/(?:browse|jira|projects|issues|secure|servicedesk|rest)(?:[/?#]|$)")
_CONFLUENCE_HOST = re.compile(r".*\bconfluence\b", re.I)
_WIKI_HOST = re.compile(r"(?:.*[@.])?wiki\.", re.I)
_WIKI_PATH = re.compile(r"/(?:[\w-]+/)?(?:display|pages|x|spaces)/")
_MEDIAWIKI = re.compile(r"/(?:w|title|wiki(?!/(?:spaces|display|pages|x)/)|index\.php)(?:[/?#]|$)")
# Paths of Confluence on any host, below a context path such as `/wiki`.
_CONFLUENCE_PATH = re.compile(
    r"/(?:[\w-]+/)?"
    r"(?:pages/\w+\.action"
    r"|spaces/[^/?#]+/(?:pages/\d|blog/\d|overview(?:[?#]|$))"
    r"|plugins/servlet/mobile"
    r"|download/attachments/\d)"
)
# Paths that count only with a host, since without one they may be folders. Space keys are upper-case, `~name` is a
# person's space. A short link (`/x/...`) must have a capital or a digit: `golang.org/x/net` has none.
_CONFLUENCE_PATH_OF_HOST = re.compile(
    r"/(?:[\w-]+/)?"
    r"(?:display/(?:[A-Z][A-Z0-9]*|~[^/?#]+)(?:[/?#]|$)"
    r"|x/(?=[\w-]*[A-Z0-9])[\w-]+(?:[?#]|$)"
    r"|l/cp/)"
)


def classify(url: str) -> LinkKind:
    url = url.strip()
    if url.startswith("#"):
        return LinkKind.ANCHOR
    if _is_confluence(url):
        return LinkKind.CONFLUENCE
    if url.lower().startswith("mailto:"):
        return LinkKind.EMAIL
    if _SCHEME.match(url) or url.startswith("//"):
        return LinkKind.EXTERNAL
    return LinkKind.DOCUMENT


def _is_confluence(url: str) -> bool:
    address = _HOST_AND_PATH.match(url)
    if address is None:
        return _CONFLUENCE_PATH.match(url) is not None
    host, path = address.groups()
    if _CLOUD.fullmatch(host):
        return _JIRA.match(path) is None
    is_named = _CONFLUENCE_HOST.match(host) or (_WIKI_HOST.match(host) and _WIKI_PATH.match(path))
    if is_named and not _MEDIAWIKI.match(path):
        return True
    return _CONFLUENCE_PATH.match(path) is not None or _CONFLUENCE_PATH_OF_HOST.match(path) is not None


def is_embedded(url: str) -> bool:
    """Whether the address is itself data (`data:`, as for embedded images), or too long for a link."""
    return len(url) > MAX_ADDRESS or url[:5].lower() == "data:"


def target_uri(url: str, kind: LinkKind, source_uri: str) -> str | None:
    """The most likely `source_uri` of a link's target in the same root; None if the link leads elsewhere."""
    if kind is LinkKind.ANCHOR:
        return source_uri
    return next(filter(None, targets(url, source_uri)), None) if kind is LinkKind.DOCUMENT else None


def targets(url: str, source_uri: str) -> Iterator[str]:
    """Possible names of the target of a document link, the most likely first; "" is the root.

    An address with a leading slash is relative to the top of its site, which may be any folder above the source. A
    note's name is relative to the source's folder or to a folder above it. If the source has a web address, the top
    of the site is known.
    """
    note = note_of(url)
    if _WEB_ADDRESS.match(source_uri):
        with suppress(ValueError):  # brackets that are not an IPv6 address
            yield from () if note else [urldefrag(urljoin(source_uri, url.strip())).url]
        return
    path = unquote(re.split("[?#]", url.strip(), maxsplit=1)[0]) if note is None else note
    folder = posixpath.dirname(source_uri)
    if not path:
        yield source_uri
        return
    first, *deeper = accumulate(folder.split("/"), "{}/{}".format)
    tops = (first, "", *deeper) if path.startswith("/") or note else ()
    for above in dict.fromkeys(tops if path.startswith("/") else (folder, *tops)):
        name = posixpath.normpath(posixpath.join(above, path.lstrip("/")))
        if name != ".." and not name.startswith("../"):
            yield "" if name == "." else name


def note_of(url: str) -> str | None:
    """The note's name or path in a wiki link, without `#Part` and `|shown`; None for other links."""
    return re.split("[#|]", url[2:-2], maxsplit=1)[0].strip() if url.startswith("[[") else None


def links_in_html(html: str) -> Iterator[tuple[str, LinkKind]]:
    """Addresses of `<a>` and `<img>`."""
    for match in _HTML_ADDRESS.finditer(html) if "=" in html else ():
        yield match[2], LinkKind.IMAGE if match[1].lower() == "img" else classify(match[2])


def links_in_text(text: str) -> Iterator[tuple[str, LinkKind]]:
    """Wiki links and bare addresses, which are plain text in CommonMark.

    Punctuation at the end is not part of an address, nor is a closing parenthesis without an opening one.
    """
    for match in _WIKI.finditer(text) if "[[" in text else ():
        embeds, url, name = match.groups()
        is_image = embeds and _IMAGE_NAME.search(name)
        yield url, LinkKind.IMAGE if is_image else LinkKind.ANCHOR if name[0] == "#" else LinkKind.DOCUMENT
    for match in _BARE.finditer(text) if "://" in text else ():
        url = match[0].rstrip(_NOT_AT_END)
        while url.endswith(")") and url.count(")") > url.count("("):
            url = url[:-1].rstrip(_NOT_AT_END)
        if not url.endswith("://"):
            yield url, classify(url)
