"""Links that a document holds, and what they point to. Found while parsing; written out by `producers.links`."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import accumulate
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from chunksink.chunkbus.patterns import for_good
from chunksink.producers.markdown.confluence import is_confluence
from chunksink.producers.markdown.parser import MAX_INLINE_CHARACTERS, parse_links


class LinkKind(StrEnum):
    DOCUMENT = "document"
    ANCHOR = "anchor"
    CONFLUENCE = "confluence"
    IMAGE = "image"
    EMAIL = "email"
    EXTERNAL = "external"


_BARE = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]]+")
_BRACKETS = ("[", "]")
_ENDS_NO_ADDRESS = ".,;:!?*_。，；：！？）"
_PATTERN = re.compile(r"(!?)\[[^\[\]\n]{0,999}\]\(\s{0,99}<?((?:[^\s<>()]|\([^\s<>()]{0,999}\)){1,4096})")
_HTML_ADDRESS = re.compile(
    r"""<(a|img)\s[^<>]{0,999}?(?:href|src)\s{0,9}=\s{0,9}["']\s{0,99}([^"'\s]{1,4096})\s{0,99}["']""", re.I
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_OF_WEB = re.compile("https?://", re.IGNORECASE)


# Nearly all links are written like this, and so is what stands before them; code and tags hide what looks like one.
_ENTITY = r"&(?=#?\w{1,32};)"
_HIDES = r"`[^`]+`|<!--[ \n][^<>`-]*-->"
_PLAIN = re.compile(
    for_good(rf"[^\\`\[<&]++|{_HIDES}|<(?![A-Za-z/!?])|(?!{_ENTITY})&") + r"(?:\Z|(?P<link>"
    r"<(?P<tag>/[A-Za-z][A-Za-z0-9-]*|[A-Za-z][A-Za-z0-9-]*(?:[ \n][A-Za-z_:][A-Za-z0-9_.:-]*=\"[^\"`]*\")*[ ]?/?)>"
    r"|<(?P<auto>https?://[^\s<>\\&`\x00-\x1f\x7f]*)>"
    r"|\[(?P<words>(?:[^\[\]`\\<]|`[^`\[\]]+`)*)\]"
    rf"(?:\((?P<address>(?:(?!{_ENTITY})[^\s()<>\\`\x00-\x1f\x7f])*)(?:[ ]\"[^\"\\`\n]*\")?\)"
    r"|(?:\[(?P<name>[^\[\]`\\<]*)\])?(?![\[(]))))"
)
_HIDDEN = re.compile(_HIDES)

# As Obsidian writes them: `[[Note#Part|shown]]`. None are numbers of footnotes, a mark for the contents, and classes of
# characters; `[[ -f x ]]` is a test of a shell.
_WIKI = re.compile(
    r"(!?)(?<!\\)(?<!\[)(\[\[(?!\s|\d{1,3}\]\]|_?toc_?\]\])([^\[\]|:<>\"*\n]{1,999})(?:\|[^\[\]\n]{0,999})?\]\])", re.I
)
_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|avif|bmp)\s*\Z", re.I)

_HTML_SIGN = re.compile(r"<(?:[aA]|img|IMG)\b")
_HTML_ATTRIBUTE = re.compile("href|src", re.I)  # most `<a` of a text that is built into a site are anchors
_IN_ANGLES = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:|@[^<>@\s]*>")


def may_hold_links(content: str) -> bool:
    """Nearly never, and soon seen."""
    return "[" in content or "<" in content or "://" in content


def _has_sign(content: str) -> bool:
    """Of a link that needs no definition."""
    return (
        "](" in content
        or "://" in content
        or "[[" in content
        or ("<" in content and (_IN_ANGLES.search(content) is not None or _has_address(content)))
    )


def _has_address(content: str) -> bool:
    return _HTML_SIGN.search(content) is not None and _HTML_ATTRIBUTE.search(content) is not None


def find_links(content: str, definitions: dict[str, Any]) -> Iterator[tuple[str, LinkKind]]:
    """Address and kind of each link in a paragraph's or cell's inline Markdown, in order."""
    if not (definitions and "[" in content) and not _has_sign(content):
        return
    if len(content) > MAX_INLINE_CHARACTERS:
        for match in _PATTERN.finditer(content):
            yield match[2], LinkKind.IMAGE if match[1] else classify(match[2])
        return
    plain = _plain_links(content, definitions.get("references", {}))
    yield from links_of(parse_links(content, definitions)) if plain is None else plain


def _plain_links(content: str, named: Mapping[str, Any]) -> list[tuple[str, LinkKind]] | None:
    """What parsing finds, in a tenth of its time; None where there is more to it than plain links, code and text."""
    if "``" in content:
        return None
    has_bare = "://" in content
    found: list[tuple[str, LinkKind]] = []
    begin = at = 0  # of the text that is not looked through for bare addresses yet; of what is not looked at at all
    while match := _PLAIN.match(content, at):
        link, tag, auto, words, address, name = match.groups()
        start = match.start("link") if link else match.end()
        at = match.end()
        url = auto or address
        if url is None and words is not None:
            definition = named.get(normalizeReference(name or words)) if named else None
            if definition is None and ("`" in link or "&" in link or (name and named)):
                return None
            if definition is None:
                continue  # brackets of the text
            url = definition["href"]
        for text in _HIDDEN.split(content[begin:start]) if has_bare else ():
            found += _bare_links(text)
        begin = at
        if not link:
            return found
        if tag:
            found += find_html_links(link)
        elif url is not None:
            is_image = not auto and content[start - 1 : start] == "!"
            found.append((url, LinkKind.IMAGE if is_image else classify(url)))
    return None


def links_of(tokens: Iterable[Token]) -> Iterator[tuple[str, LinkKind]]:
    """The links among inline tokens, and the bare addresses in their text."""
    inside = 0
    text = ""  # what an escape or an entity has parted into several tokens
    for token in tokens:
        if token.type in ("text", "text_special"):
            if not inside:
                is_no_mark = token.type == "text_special" and token.content in _BRACKETS
                text += token.markup if is_no_mark else token.content
            continue
        yield from _written_out(text)
        text = ""
        if token.type == "link_open":
            inside += 1
            url = str(token.attrs["href"])
            yield url, classify(url)
        elif token.type == "link_close":
            inside -= 1
        elif token.type == "image":
            yield str(token.attrs["src"]), LinkKind.IMAGE
        elif token.type == "html_inline":
            yield from find_html_links(token.content)
    yield from _written_out(text)


def _written_out(text: str) -> Iterator[tuple[str, LinkKind]]:
    """Links in text that is none to CommonMark."""
    for match in _WIKI.finditer(text) if "[[" in text else ():
        embeds, url, name = match.groups()
        is_image = embeds and _IMAGE_NAME.search(name)
        yield url, LinkKind.IMAGE if is_image else LinkKind.ANCHOR if name[0] == "#" else LinkKind.DOCUMENT
    yield from _bare_links(text)


def _bare_links(text: str) -> Iterator[tuple[str, LinkKind]]:
    """Addresses that stand in the text as they are. What ends a sentence ends none, nor does a parenthesis that none
    of their own has opened."""
    if "://" not in text:
        return
    for match in _BARE.finditer(text):
        url = match[0].rstrip(_ENDS_NO_ADDRESS)
        while url.endswith(")") and url.count(")") > url.count("("):
            url = url[:-1].rstrip(_ENDS_NO_ADDRESS)
        if not url.endswith("://"):
            yield url, classify(url)


def find_html_links(html: str) -> Iterator[tuple[str, LinkKind]]:
    for match in _HTML_ADDRESS.finditer(html) if "=" in html else ():
        yield match[2], LinkKind.IMAGE if match[1].lower() == "img" else classify(match[2])


def classify(url: str) -> LinkKind:
    url = url.strip()
    if url.startswith("#"):
        return LinkKind.ANCHOR
    if is_confluence(url):
        return LinkKind.CONFLUENCE
    if url.lower().startswith("mailto:"):
        return LinkKind.EMAIL
    if _SCHEME.match(url) or url.startswith("//"):
        return LinkKind.EXTERNAL
    return LinkKind.DOCUMENT


def target_uri(url: str, kind: LinkKind, source_uri: str) -> str | None:
    """The `source_uri` that a link to another document of the same root would have; None where it leads elsewhere."""
    if kind is LinkKind.ANCHOR:
        return source_uri
    return next(filter(None, targets(url, source_uri)), None) if kind is LinkKind.DOCUMENT else None


def targets(url: str, source_uri: str) -> Iterator[str]:
    """Names of what a link to a document of the same root leads to, the likeliest first; empty is the root.

    An address that begins with a slash counts from the top of its site: the folder that its source is called by, or
    what lies above it, or one of the folders between, since a site is built from a folder within its project. So does
    what Obsidian writes in double brackets, if it does not count from the folder of its source. A source that is
    called by an address of the web has one site, whose top is known.
    """
    note = note_of(url)
    if _OF_WEB.match(source_uri):
        with suppress(ValueError):  # brackets, where they mean an address
            yield from () if note else [urldefrag(urljoin(source_uri, url.strip())).url]
        return
    path = unquote(re.split("[?#]", url.strip(), maxsplit=1)[0]) if note is None else note
    folder = posixpath.dirname(source_uri)
    if not path:
        yield source_uri
        return
    tops = _tops(folder) if path.startswith("/") or note else ()
    for above in tops if path.startswith("/") else dict.fromkeys((folder, *tops)):
        name = posixpath.normpath(posixpath.join(above, path.lstrip("/")))
        if name != ".." and not name.startswith("../"):
            yield "" if name == "." else name


def note_of(url: str) -> str | None:
    """The name that a link has which is written as in Obsidian, or its path from some folder; None of other links."""
    return re.split("[#|]", url[2:-2], maxsplit=1)[0].strip() if url.startswith("[[") else None


def _tops(folder: str) -> Iterator[str]:
    """Where the top of a site may be, the likeliest first."""
    first, *deeper = accumulate(folder.split("/"), "{}/{}".format)
    yield from dict.fromkeys((first, "", *deeper))
