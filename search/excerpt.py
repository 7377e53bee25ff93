"""Shortens texts for display and removes markup: Markdown links, headings, bold, code and rules, HTML tags, and roles
of reStructuredText. Texts are cut between words, unless a word is very long (a line of Chinese has no spaces).
"""

import re
from collections.abc import Collection, Iterator, Sequence

from chunksink.sinks.document import Document
from chunksink.sinks.reader import Piece

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # around found words; noncharacters, which texts hardly ever contain
_MARKS = re.compile(f"({_OPEN}[^{_OPEN}{_CLOSE}]*{_CLOSE})")
# An address, as opposed to arguments in code such as `list[0](x)`. The last one may be cut off.
_ADDRESS = r"(?=[^()\s]*[/#.])(?:[^()<>\s\\*^|]|\([^()<>\s\\*^|]*\))+"
_LINK = re.compile(
    rf'(?<![A-Za-z0-9_\]){_CLOSE}])!?\[(?P<words>[^\[\]]*)\]\((?P<address>{_ADDRESS})(?:(?:\s"[^"\n]*")?\)|(?P<cut>…)\Z)'
)
_HEADING = re.compile(r"^#{1,6} (.*?)(?:[ \t]+\{[ \t]*#[^{}\n]*\})?$", re.MULTILINE)
_REST_OF_HEADING = re.compile(r"\A(…[^\n]*?)[ \t]+\{[ \t]*#[^{}\n]*\}$", re.MULTILINE)
"""The rest of a heading if the excerpt begins within it."""
_BOLD = re.compile(rf"(?<![\w*{_CLOSE}])\*\*(?=[^\s*])([^*\n]{{1,500}})(?<=\S)\*\*(?![\w*{_OPEN}])")
_ROLE = re.compile(
    r"(?<![\w`:])(?::[A-Za-z][\w+.-]*){1,3}:`[~!]?(?P<words>[^`<>]{1,500}?)(?:\s*<(?P<address>[^`<>]{1,500})>)?`(?![`\w])"
)
# Code between backticks, or an inline tag.
_TAG = re.compile(
    r"(?P<ticks>`+).*?(?:(?P=ticks)|\Z)|</?(?P<name>a|abbr|b|br|code|del|dfn|em|font|i|img|ins|kbd|mark|q|s|samp|small|span|"
    r"strong|sub|sup|tt|u|var)(?:\s[^<>]*)? ?/?>",
    re.IGNORECASE | re.DOTALL,
)
_REST_OF_TAG = re.compile(r"\A…[^<>\n]{0,300}[\"'](?:\s*/)?>")
"""The rest of a tag if the excerpt begins within it."""
_LINE_OF_TAGS = re.compile(r"^[ \t]*(?:</?[A-Za-z][\w.-]*(?:\s[^<>\n]*)?/?>[ \t]*)+(?:\n|\Z)", re.MULTILINE)
_FENCES = ("```", "~~~")
# Lines of Markdown that are not displayed: link definitions, fences of code and containers, rules, and the lines below
# headings and table headers. In other formats such lines are content.
_ONLY_MARKS = re.compile(
    r"^[ \t]*(?:\[[^\[\]\n]+\]:[ \t]+\S[^\n]*|:{3,}[ \t]*[\w-]*|(?:`{3,}|~{3,})[^`\n]*|={2,}[ \t]*|-{3,}[ \t]*"
    r"|\|?(?:[ \t]*:?-{3,}:?[ \t]*\|)+(?:[ \t]*:?-{3,}:?)?[ \t]*)(?:\n|\Z)",
    re.MULTILINE,
)
_SIGNS = str.maketrans("", "", f"`*{_OPEN}{_CLOSE}")
_MOST = 5_000
"""Only this many characters at each end of a piece are processed. Excerpts are shorter."""
_MOST_SHOWN = 600
"""The longest excerpt around found words, in characters. Engines return less, except for very long words."""


def excerpt(pieces: Sequence[Piece], document: Document) -> list[Piece]:
    """The text without markup, and without the title and headings that are shown above it. Links become their words.

    Markup stays if a found word occurs only in it, for example in the address of a link.
    """
    ends = [(_ends(piece.text), piece.match) for piece in pieces]
    marked = "".join(f"{_OPEN}{text}{_CLOSE}" if match else text for text, match in ends)
    shown = _LINK.sub(_words, _LINK.sub(_words, marked))  # twice: a link may contain a picture
    if document.mime_type == "text/markdown" and not document.text.startswith(_FENCES):
        shown = _REST_OF_TAG.sub(lambda rest: rest[0] if _OPEN in rest[0] else "…", shown)
        shown = _LINE_OF_TAGS.sub(_unless_found, _TAG.sub(_without_tag, shown))
        shown = _ONLY_MARKS.sub(_unless_found, shown)
    shown = _ROLE.sub(_words, shown)
    shown = _REST_OF_HEADING.sub(r"\1", _HEADING.sub(r"\1", shown))
    shown = _BOLD.sub(r"\1", shown)
    shown = _below_headings(shown, {_words_of(heading) for heading in (document.title or "", *document.headings)})
    parts = [part for part in _MARKS.split(shown) if part]
    return [Piece(part.strip(_OPEN + _CLOSE), part.startswith(_OPEN)) for part in parts]


def _below_headings(marked: str, headings: Collection[str]) -> str:
    """Remove headings from the start of the text if they are shown above it."""
    line, _, rest = marked.partition("\n")
    if not rest.strip() or _words_of(line) not in headings or line.count(_OPEN) != line.count(_CLOSE):
        return marked
    return _below_headings(rest.lstrip(), headings)


def _words_of(heading: str) -> str:
    return " ".join(heading.translate(_SIGNS).split())


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _MOST else f"{text[:_MOST]}{text[-_MOST:]}"


def _words(link: re.Match[str]) -> str:
    if _OPEN in (link["address"] or "") and _OPEN not in link["words"]:
        return link[0]
    return link["words"] + (link.groupdict().get("cut") or "")


def _unless_found(line: re.Match[str]) -> str:
    return line[0] if _OPEN in line[0] else ""


def _without_tag(tag: re.Match[str]) -> str:
    if tag["ticks"] or _OPEN in tag[0]:
        return tag[0]
    return " " if tag["name"].lower() == "br" else ""


def around_match(pieces: Sequence[Piece], before: int) -> Iterator[Piece]:
    """Start at most `before` characters before the first found word, so that it is visible, and limit the length."""
    remaining = _MOST_SHOWN
    first = next((number for number, piece in enumerate(pieces) if piece.match), 0)
    for number, piece in enumerate(pieces):
        text = ending(piece.text, before) if number < first else piece.text
        yield Piece(beginning(text, remaining), piece.match)
        remaining -= len(text)
        if remaining <= 0:
            return


def beginning(text: str, most: int) -> str:
    """The first characters, up to `most`."""
    if len(text) <= most:
        return text
    start = text[:most]
    words = start.rpartition(" ")[0]
    return f"{words} …" if len(words) > most // 2 else f"{start}…"


def ending(text: str, most: int) -> str:
    """The last characters, up to `most`."""
    if len(text) <= most:
        return text
    end = text[-most:]
    words = end.partition(" ")[2]
    return f"… {words}" if len(words) > most // 2 else f"…{end}"
