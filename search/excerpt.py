"""Shortens texts for display and removes markup: that of Markdown, HTML tags, and roles of reStructuredText. Code stays
as it is. Texts are cut between words, unless a word is very long (a line of Chinese has no spaces).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from chunksink.sinks.document import Document
from chunksink.sinks.reader import Piece

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # around found words; noncharacters, which texts hardly ever contain
_MARKDOWN = ("text/markdown", "text/html", "application/xhtml+xml", "application/epub+zip")
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
_TAG = re.compile(
    r"</?(?P<name>a|abbr|b|br|code|del|dfn|em|font|i|img|ins|kbd|mark|q|s|samp|small|span|"
    r"strong|sub|sup|tt|u|var)(?:\s[^<>]*)? ?/?>",
    re.IGNORECASE,
)
_REST_OF_TAG = re.compile(r"\A…[^<>\n]{0,300}[\"'](?:\s*/)?>")
"""The rest of a tag if the excerpt begins within it."""
_LINE_OF_TAGS = re.compile(r"^[ \t]*(?:</?[A-Za-z][\w.-]*(?:\s[^<>\n]*)?/?>[ \t]*)+(?:\n|\Z)", re.MULTILINE)
# Lines of Markdown that are not displayed: link definitions, fences of containers, rules, and the lines below headings
# and table headers. In other formats such lines are content.
_ONLY_MARKS = re.compile(
    r"^[ \t]*(?:\[[^\[\]\n]+\]:[ \t]+\S[^\n]*|:{3,}[ \t]*[\w-]*|={2,}[ \t]*|-{3,}[ \t]*"
    r"|\|?(?:[ \t]*:?-{3,}:?[ \t]*\|)+(?:[ \t]*:?-{3,}:?)?[ \t]*)(?:\n|\Z)",
    re.MULTILINE,
)
_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[^`\n]*$", re.MULTILINE)
_CODE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})(?P<language>[^`\n]*)(?:\n|\Z)"
    r"(?P<block>.*?)(?:^[ \t]*(?P=fence)[`~]*[ \t]*(?:\n|\Z)|\Z)"
    r"|(?<![`\\])(?P<ticks>`+)(?!`)(?P<span>(?:[^\n]|\n(?!\s*\n))+?)(?:(?<!`)(?P=ticks)(?!`)|(?=…\Z))",
    re.DOTALL | re.MULTILINE,
)
# What is missing or left over if an excerpt begins or ends within a link or emphasis.
_BEGUN_LINK = re.compile(r"\]\([^()\s]*\Z")
_CUT_ADDRESS = re.compile(rf"\]\([^()\s{_OPEN}]*…\Z")
_REST_OF_WORDS = re.compile(r"[^\[\]\n]*\]\(")
_REST_OF_LINK = re.compile(rf'\A(?P<words>…[^\[\]\n]*)\]\((?P<address>{_ADDRESS})(?:\s"[^"\n]*")?\)')
_BEGUN_EMPHASIS = re.compile(r"\A(…[^*_\n]*[^\s\\*_])(?:\*\*|\*|_)(?![\w*_])")
_CUT_EMPHASIS = re.compile(r"(?<![\w*\\])(?:\*\*|\*|_)(?=[^\s*_])([^*_\n]*…)\Z")
_EMPHASIS = re.compile(
    rf"(?<![\w*\\{_CLOSE}])(?P<stars>\*{{1,3}})(?=[^\s*])([^*\n]{{1,500}})(?<=[^\s\\])(?P=stars)(?![\w*{_OPEN}])"
    rf"|(?<![\w\\{_CLOSE}])_(?=[^\s_])([^_\n]{{1,500}})(?<=[^\s\\])_(?![\w{_OPEN}])"
    rf"|(?<![~\\])~~(?=[^\s~])([^~\n]{{1,500}})(?<=[^\s\\])~~(?!~)"
)
# A row of a table; the first one may be cut.
_ROW = re.compile(r"^(?:…[^\n]*\||[ \t]*\|[^\n]*)$", re.MULTILINE)
_PIPE = re.compile(r"[ \t]*(?<!\\)\|[ \t]*")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_PLACES = 0xF0000
"""Private characters from here on replace code while the markup around it is removed."""
_PLACED = re.compile(f"[{chr(_PLACES)}-{chr(_PLACES + 0xFFFD)}]")
_NO_MARKS = str.maketrans("", "", f"{_OPEN}{_CLOSE}")
_SIGNS = str.maketrans("", "", f"`*{_OPEN}{_CLOSE}")
_MOST = 5_000
"""Only this many characters at each end of a piece are processed. Excerpts are shorter."""
_MOST_SHOWN = 600
"""The longest excerpt around found words, in characters. Engines return less, except for very long words."""


def is_markdown(mime_type: str | None) -> bool:
    """HTML and office files are converted to Markdown when they are read."""
    return mime_type is not None and (mime_type in _MARKDOWN or "officedocument" in mime_type)


def excerpt(snippet: Sequence[Piece], document: Document) -> tuple[Piece, ...]:
    """The snippet, or else the text without markup; without the title and headings, which views show above it."""
    headings = {_words_of(heading) for heading in (document.title or "", *document.headings)}
    shown = snippet or without_markup([Piece(document.text)], document)
    return _pieces(_below_headings(_marked((piece.text, piece.match) for piece in shown), headings))


def without_markup(pieces: Sequence[Piece], document: Document) -> tuple[Piece, ...]:
    """The text of the pieces without markup. Links become their words.

    Markup stays if a found word occurs only in it, for example in the address of a link.
    """
    shown = _ROLE.sub(_words, _marked((_ends(piece.text), piece.match) for piece in pieces))
    if is_markdown(document.mime_type):
        shown = _without_markdown(shown, document.text)
    elif document.mime_type is None:
        shown = _without_common(shown)
    return _pieces(shown)


def _marked(pieces: Iterable[tuple[str, bool]]) -> str:
    return "".join(f"{_OPEN}{text}{_CLOSE}" if match else text for text, match in pieces)


def _pieces(marked: str) -> tuple[Piece, ...]:
    parts = [part for part in _MARKS.split(marked) if part]
    return tuple(Piece(part.strip(_OPEN + _CLOSE), part.startswith(_OPEN)) for part in parts)


def _without_common(marked: str) -> str:
    """Without the markup that texts of unknown formats have, too."""
    shown = _LINK.sub(_words, _LINK.sub(_words, marked))  # twice: a link may contain a picture
    shown = _REST_OF_LINK.sub(_words, shown)
    shown = _REST_OF_HEADING.sub(r"\1", _HEADING.sub(r"\1", shown))
    return _BOLD.sub(r"\1", shown)


def _without_markdown(marked: str, text: str) -> str:
    code: list[str] = []

    def place(found: re.Match[str]) -> str:
        code.append(found[0] if _OPEN in (found["language"] or "") else found["span"] or found["block"] or "")
        return chr(_PLACES + len(code) - 1) if len(code) <= 0xFFFD else found[0]

    shown = _CODE.sub(place, _completed(marked, text))
    shown = _REST_OF_TAG.sub(lambda rest: rest[0] if _OPEN in rest[0] else "…", shown)
    shown = _LINE_OF_TAGS.sub(_unless_found, _TAG.sub(_without_tag, shown))
    shown = _without_common(_ONLY_MARKS.sub(_unless_found, shown))
    shown = _EMPHASIS.sub(_inner, _EMPHASIS.sub(_inner, shown))
    shown = _CUT_EMPHASIS.sub(r"\1", _BEGUN_EMPHASIS.sub(r"\1", shown))
    shown = _ROW.sub(lambda row: _PIPE.sub(" ", row[0]).strip(), shown)
    shown = _ESCAPED.sub(r"\1", shown)
    return _PLACED.sub(lambda found: code[ord(found[0]) - _PLACES], shown)


def _completed(marked: str, text: str) -> str:
    """Add what is missing of code and links in which the excerpt begins or ends. `text` is the whole text."""
    plain = marked.translate(_NO_MARKS)
    start = text.find(plain.removeprefix("…").removesuffix("…"))
    if start < 0:
        return marked
    if plain.endswith("…") and _REST_OF_WORDS.match(text, start + len(plain) - plain.startswith("…") - 1):
        marked = f"{marked[:-1]}](/…"
    marked = _CUT_ADDRESS.sub("](/…", marked)
    if not plain.startswith("…"):
        return marked
    before, rest = text[:start], marked.removeprefix("…")
    if len(_FENCE.findall(before)) % 2:
        return f"```\n{marked}"
    if before.rpartition("\n\n")[2].count("`") % 2:
        return f"…`{rest}"
    link = _BEGUN_LINK.search(before)
    return f"…[{link[0]}{rest}" if link and _OPEN not in rest.partition(")")[0] else marked


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


def _inner(emphasis: re.Match[str]) -> str:
    return emphasis[2] or emphasis[3] or emphasis[4]


def _unless_found(line: re.Match[str]) -> str:
    return line[0] if _OPEN in line[0] or _PLACED.search(line[0]) else ""


def _without_tag(tag: re.Match[str]) -> str:
    if _OPEN in tag[0]:
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
