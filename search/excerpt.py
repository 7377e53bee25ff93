"""Texts that are shown in part: whole words, where the one that would be cut through is no giant, as a line of Chinese
is; and what a reader would see of links, headings, tags and bold words of Markdown, and of roles of reStructuredText.
"""

import re
from collections.abc import Collection, Sequence

from chunksink.sinks.document import Document
from chunksink.sinks.reader import Piece

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # around what was found: of no script, so that hardly any text has them
_MARKS = re.compile(f"({_OPEN}[^{_OPEN}{_CLOSE}]*{_CLOSE})")
# An address that can be told from arguments of code: `list[0](x)`, `[this](auto x)`. The last one may be cut off.
_ADDRESS = r"(?=[^()\s]*[/#.])(?:[^()<>\s\\*^|]|\([^()<>\s\\*^|]*\))+"
_LINK = re.compile(
    rf'(?<![A-Za-z0-9_\]){_CLOSE}])!?\[(?P<words>[^\[\]]*)\]\((?P<address>{_ADDRESS})(?:(?:\s"[^"\n]*")?\)|(?P<cut>…)\Z)'
)
_HEADING = re.compile(r"^#{1,6} (.*?)(?:[ \t]+\{[ \t]*#[^{}\n]*\})?$", re.MULTILINE)
_ROLE = re.compile(
    r"(?<![\w`:])(?::[A-Za-z][\w+.-]*){1,3}:`[~!]?(?P<words>[^`<>]{1,500}?)(?:\s*<(?P<address>[^`<>]{1,500})>)?`(?![`\w])"
)
_BOLD = re.compile(rf"(?<![\w*{_CLOSE}])\*\*(?=[^\s*])([^*\n]{{1,500}})(?<=\S)\*\*(?![\w*{_OPEN}])")
# Code between backticks, or one of the tags that stand within a line.
_TAG = re.compile(
    r"(?P<ticks>`+).*?(?:(?P=ticks)|\Z)|<br ?/?>|</?(?P<name>a|abbr|b|code|del|dfn|em|font|i|img|ins|kbd|mark|q|s|samp|"
    r"small|span|strong|sub|sup|tt|u|var)(?:\s[^<>]*)?>",
    re.IGNORECASE | re.DOTALL,
)
# Lines of Markdown that nobody is to read: definitions of links, edges of containers and of code, rules, also of tables
# and below headings, and tags.
_ONLY_MARKS = re.compile(
    r"^[ \t]*(?:\[[^\[\]\n]+\]:[ \t]+\S[^\n]*|:{3,}[ \t]*[\w-]*|(?:`{3,}|~{3,})[^`\n]*|={2,}[ \t]*|-{3,}[ \t]*"
    r"|</?[A-Za-z][\w.-]*(?:\s[^<>\n]*)?/?>"
    r"|\|?(?:[ \t]*:?-{3,}:?[ \t]*\|)+(?:[ \t]*:?-{3,}:?)?[ \t]*)(?:\n|\Z)",
    re.MULTILINE,
)
# What is left of them where an excerpt begins within.
_REST_OF_TAG = re.compile(r"\A…[^<>\n]{0,300}[\"'](?:\s*/)?>")
_REST_OF_HEADING = re.compile(r"\A(…[^\n]*?)[ \t]+\{[ \t]*#[^{}\n]*\}$", re.MULTILINE)
_FENCES = ("```", "~~~")
_SIGNS = str.maketrans("", "", "`*")
_MOST = 5_000
"""Characters at each end of a piece that are looked at: nobody is shown more."""


def excerpt(pieces: Sequence[Piece], document: Document) -> list[Piece]:
    """As it is read below the title and the headings of its document."""
    is_prose = document.mime_type == "text/markdown" and not document.text.startswith(_FENCES)
    return below_headings(as_read(pieces, with_tags=is_prose), (document.title or "", *document.headings))


def as_read(pieces: Sequence[Piece], *, with_tags: bool = False) -> list[Piece]:
    """Without marks; links as their words, but for those in whose address alone is what was found. `with_tags` it has
    tags of HTML, which are marks too."""
    told = [(_ends(piece.text), piece.match) for piece in pieces]
    marked = "".join(f"{_OPEN}{text}{_CLOSE}" if match else text for text, match in told)
    shown = _LINK.sub(_words, _LINK.sub(_words, marked))  # twice: a link may show a picture
    shown = _without_marks(shown) if with_tags else shown
    shown = _REST_OF_HEADING.sub(r"\1", _HEADING.sub(r"\1", shown))
    shown = _ROLE.sub(_words, _BOLD.sub(r"\1", shown))
    parts = [part for part in _MARKS.split(shown) if part]
    return [Piece(part.strip(_OPEN + _CLOSE), part.startswith(_OPEN)) for part in parts]


def below_headings(pieces: Sequence[Piece], headings: Collection[str]) -> list[Piece]:
    """Without the headings that the text begins with, where these are shown above it."""
    line, _, rest = "".join(piece.text for piece in pieces).partition("\n")
    if not rest.strip() or _words_of(line) not in map(_words_of, headings):
        return list(pieces)
    left: list[Piece] = []
    passed = len(line)
    for piece in pieces:
        text = piece.text[passed:]
        passed = max(0, passed - len(piece.text))
        if text := text if left else text.lstrip():
            left.append(Piece(text, piece.match))
    return below_headings(left, headings)


def _words_of(heading: str) -> str:
    return " ".join(heading.translate(_SIGNS).split())


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _MOST else f"{text[:_MOST]}{text[-_MOST:]}"


def _words(link: re.Match[str]) -> str:
    if _OPEN in (link["address"] or "") and _OPEN not in link["words"]:
        return link[0]
    return link["words"] + (link.groupdict().get("cut") or "")


def _without_marks(marked: str) -> str:
    """As it is, where what was found is in tags alone, or in lines of marks."""
    read = _TAG.sub(lambda tag: tag[0] if tag["ticks"] else "" if tag["name"] else " ", _REST_OF_TAG.sub("…", marked))
    read = _ONLY_MARKS.sub("", read)
    return read if _OPEN in read or _OPEN not in marked else marked


def beginning(text: str, most: int) -> str:
    """Up to so many characters of it."""
    if len(text) <= most:
        return text
    start = text[:most]
    words = start.rpartition(" ")[0]
    return f"{words} …" if len(words) > most // 2 else f"{start}…"


def ending(text: str, most: int) -> str:
    """Its last characters, up to so many."""
    if len(text) <= most:
        return text
    end = text[-most:]
    words = end.partition(" ")[2]
    return f"… {words}" if len(words) > most // 2 else f"…{end}"
