"""Chooses the part of a text that views show with a hit, and removes its markup."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from itertools import accumulate, takewhile

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from chunksink.chunkbus.patterns import INDIC_SIGN, LETTER, SPACELESS
from chunksink.search.link import is_markdown
from chunksink.sinks.document import Document
from chunksink.sinks.reader import Piece, after_marks, marked

BEFORE = 90
"""Usually only this many characters precede the first found word, so that a view with few lines shows the word."""
_LENGTH = 300
"""Characters of a snippet: about 40 words."""
_TOKEN = 40
"""Longer addresses and codes before the first found word are shortened."""
_PART = 4_000
"""Only this many characters of a longer text are parsed, which takes 5 ms."""
_HTML = ("text/html", "application/xhtml+xml", "application/epub+zip")
_ROWS = "rows"
_LINE_ANCHOR = re.compile(r"L\d+")
_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_TAG = re.compile(r"<!--.*?-->|<[/!?A-Za-z][^<>]*>", re.DOTALL)
_FENCE_OR_ID = re.compile(r"^:{3,}[ \t]*[\w-]*(?:\n|\Z)|[ \t]+\{[ \t]*#[^{}\n]*\}\Z", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w`:])(?::[A-Za-z][\w+.-]*){1,3}:`[~!]?([^`<>]{1,500}?)(?:\s*<[^`<>]{1,500}>)?`(?![`\w])")
_DIRECTIVE = re.compile(
    r"^[ \t]*\.\. (?:\|[^|\n]+\|[ \t]+)?"
    r"(?:(?:code|code-block|contents|currentmodule|figure|highlight|image|include|index|literalinclude|module|only|raw"
    r"|sourcecode|toctree)::[^\n]*|[\w:+.-]*\w::(?:[ \t]+([^\n]*))?$)"
    r"(?:\n[ \t]+:[\w-]+:[^\n]*)*(?:\n[ \t]*(?=\n))*",
    re.MULTILINE,
)
"""The marker, name and options of a reStructuredText directive. The group is its argument, if that is a text."""
WORD_LETTER = rf"(?:(?-i:[^\W_{SPACELESS}])|{INDIC_SIGN})"
"""As `LETTER`, but only in scripts with spaces between words. A word ends where another script begins: 手机iPhone."""
_LATIN_LETTER = r"(?-i:[0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff])"
"""For found words that are all ASCII. Each search compiles its own pattern, which takes longer with `WORD_LETTER`."""
IS_SPACED = re.compile(f"[^{SPACELESS}]").match
_IS_LETTER = re.compile(WORD_LETTER).match
_BETWEEN_WORDS = re.compile(rf"(?<={LETTER})(?:(?!{LETTER}).)+(?={LETTER})", re.DOTALL)
_LONG_TOKEN = re.compile(rf"[^\s{SPACELESS}]{{{_TOKEN + 1},}}")
_MARKUP = re.compile(r"[\s`*#\[\]]+")
_OBSIDIAN = re.compile(
    r"\A\[![\w-]+\][+-]?[ \t]*"  # the type of a callout
    r"|!\[\[[^\[\]\n]+\]\]"  # an embedded file
    r"|(?<!\w)\[\[(?!\s)(?:[^\[\]|\n]*\|)?([^\[\]\n]+)\]\]"  # a link
    r"|(?<![\w=])==(?![\s=])((?:(?!==)[^`\n]|`[^`\n]*`)+)(?<!\s)==(?![\w=])"  # highlighted
    r"|(?<![\w%])%%(?:(?!%%)[^`]|`[^`]*`)+%%(?![\w%])"  # a comment
    r"|(?<!\S)\^[\w-]+(?=[ \t]*(?:%%|\n|\Z))",  # the id of a block
    re.ASCII,  # else \w would match the letters around a highlighted word in scripts without spaces
)
"""Obsidian markup. The groups are the parts that readers see."""


def has_markdown(document: Document) -> bool:
    """Whether the text is Markdown. HTML and office files are converted to Markdown when they are read."""
    mime_type = document.mime_type or ""
    return is_markdown(document) or mime_type in _HTML or "officedocument" in mime_type


def keeps_lines(document: Document) -> bool:
    """Whether the text is from a text file without headings, such as code. Its line breaks and indentation matter."""
    return _LINE_ANCHOR.fullmatch(document.anchor or "") is not None


def plain_text(text: str, document: Document) -> str:
    """The text without Markdown markup, one line for each block or table row. Rows may be Markdown or plain text, and
    count as Markdown. In other formats, only roles and directives of reStructuredText are replaced by their words."""
    if not has_markdown(document) and document.source_type != _ROWS:
        return _ROLE.sub(r"\1", _DIRECTIVE.sub(r"\1", text))
    return "\n".join(_blocks(text, obsidian=is_markdown(document)))


def _blocks(markdown: str, *, obsidian: bool) -> Iterator[str]:
    opened, marker = "", ""
    cells: list[str] = []
    for token in _PARSER.parse(markdown, {"obsidian": obsidian}):
        words = _words(token).strip("\n")
        if token.type == "list_item_open":
            marker = f"{token.info}{token.markup} " if token.info else "- "
        elif opened in ("th_open", "td_open"):
            cells.append(words)
        elif token.type == "tr_close":
            yield " ".join(filter(None, cells))
            cells.clear()
        elif words.strip():
            yield marker + words
            marker = ""
        opened = token.type


def _words(token: Token) -> str:
    if token.type in ("inline", "image"):
        return _FENCE_OR_ID.sub("", "".join(map(_words, token.children or ()))).rstrip()
    if token.type in ("html_block", "html_inline"):
        return unescape(_TAG.sub(" " if token.block or "<br" in token.content else "", token.content))
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content


def _obsidian(state: StateInline, silent: bool) -> bool:
    """An inline rule, applied only outside code. It matches nothing if `silent`: the parser then only looks for the end
    of a link."""
    found = _OBSIDIAN.match(state.src, state.pos, state.posMax) if state.env["obsidian"] and not silent else None
    if found is None:
        return False
    if found.lastindex:
        end = state.posMax
        state.pos, state.posMax = found.span(found.lastindex)
        state.md.inline.tokenize(state)
        state.posMax = end
    state.pos = found.end()
    return True


_PARSER.inline.ruler.after("image", "obsidian", _obsidian)


def pattern_of(snippets: Iterable[Sequence[Piece]]) -> re.Pattern[str]:
    """Matches the words that the engine marked in any of its snippets."""
    words: dict[tuple[bool, bool], set[str]] = {}
    for begins, word, ends in (word for found in snippets for word in _words_with_bounds(found)):
        words.setdefault((begins, ends), set()).add(word)
    whole = words.get((True, True), set())
    for bounds in words.keys() - {(True, True)}:
        words[bounds] -= whole  # a word that the engine marked as a whole word is not marked inside other words
    letter = _LATIN_LETTER if all(word.isascii() for of_kind in words.values() for word in of_kind) else WORD_LETTER
    before, after = f"(?<!{letter})", f"(?!{letter})"
    patterns = [
        f"{before * begins}(?:{'|'.join(sorted(of_kind, key=len, reverse=True))}){after * ends}"
        for (begins, ends), of_kind in sorted(words.items(), reverse=True)  # whole words first
        if of_kind
    ]
    return re.compile("|".join(patterns) or "(?!)", re.IGNORECASE)


def snippet(found: Sequence[Piece], document: Document, words: re.Pattern[str]) -> tuple[Piece, ...]:
    """The part of the text with the most distinct found `words`. `found` is the engine's snippet, which marks them, or
    the whole text.

    The result has no markup, and none of the headings that views show above the text. If the found words occur only in
    headings, the headings are kept. If they occur only in markup, as in the address of a link, the markup is kept.
    """
    whole = "".join(piece.text for piece in found).strip("…")
    matches = list(words.finditer(whole)) if len(document.text) > _PART else []
    part = _part(document.text, document.text.find(whole) + (_best_match(matches).start() if matches else 0))
    plain = plain_text(part, document)
    in_lines = keeps_lines(document)
    shown = (_best(text, words, in_lines) for text in (_below_headings(plain, document), plain, part))
    return next(filter(None, shown), tuple(found))


def excerpt(shown: Sequence[Piece], document: Document) -> tuple[Piece, ...]:
    """The snippet, or else the beginning of the text; without the title and headings, which views show above it."""
    shown = shown or (Piece(plain_text(_part(document.text), document)),)
    text = "".join(piece.text for piece in shown)
    above = len(text) - len(_below_headings(text, document))
    ends = accumulate(len(piece.text) for piece in shown)
    below = ((piece, end - above) for piece, end in zip(shown, ends, strict=True) if end > above)
    return tuple(Piece(piece.text[-length:], piece.match) for piece, length in below)


def _part(text: str, at: int = 0) -> str:
    """The text; if it is very long, the part around this place."""
    start = max(0, at - _PART // 2) if len(text) > _PART else 0
    end = start + _PART
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _below_headings(text: str, document: Document) -> str:
    headings = {_MARKUP.sub("", heading) for heading in (document.title or "", *document.headings)}
    line, _, rest = text.partition("\n")
    while rest.strip() and _MARKUP.sub("", line) in headings:
        text = rest.lstrip("\n")
        line, _, rest = text.partition("\n")
    return text


def _best(text: str, words: re.Pattern[str], in_lines: bool) -> tuple[Piece, ...]:
    """The part of the text with the most distinct found words, all marked. Empty if the text has none. With `in_lines`
    it begins one line above the first word."""
    if not (matches := list(words.finditer(text))):
        return ()
    first = _best_match(matches).start()
    if in_lines:
        start = text.rfind("\n", 0, max(0, text.rfind("\n", 0, first))) + 1
        text, first = text[start:], first - start
    shortened = _LONG_TOKEN.sub(lambda token: beginning(token[0], _TOKEN), text[:first])
    before = ending(shortened, max(BEFORE, _LENGTH - len(text) + first))
    shown = before + beginning(text[first:], _LENGTH - len(before))
    return marked(shown, (match.span() for match in words.finditer(shown)))


def _best_match(matches: Sequence[re.Match[str]]) -> re.Match[str]:
    """Where the part with the most distinct words begins. A name with a digit (ERR-1150) counts as three words. On a
    tie, the part with the words that are rarest in this text; of several with the same words, one that begins with the
    rarest."""
    words = [_word(match[0]) for match in matches]
    often = Counter(words)
    weights = {word: 3 if _is_name(word) else 1 for word in often}

    def value(number: int) -> tuple[int, int, int]:
        end = matches[number].start() + _LENGTH - BEFORE
        near = takewhile(lambda other: matches[other].end() <= end, range(number, len(matches)))
        found = {words[other] for other in near}
        return sum(weights[word] for word in found), -sum(often[word] for word in found), -often[words[number]]

    return matches[max(range(len(matches)), key=value)]


def _word(found: str) -> str:
    """The same for all forms of a word, which usually have the same first letters."""
    return found.casefold() if _is_name(found) else found[:5].casefold()


def _is_name(word: str) -> bool:
    """Not a year."""
    return len(word) > 2 and any(map(str.isdigit, word)) and any(map(str.isalpha, word))


def _words_with_bounds(found: Sequence[Piece]) -> Iterator[tuple[bool, str, bool]]:
    """For each marked piece: whether it begins a word, its pattern, and whether it ends a word. The engine may have
    marked only a part of a word."""
    around = ["", *(piece.text.strip("*~`") for piece in found), ""]  # these characters may be in a word: **bo**ld
    for before, piece, after in zip(around, found, around[2:], strict=False):
        if piece.match and piece.text.strip():
            word = r"[\W_]+".join(map(re.escape, _BETWEEN_WORDS.split(piece.text)))
            begins = not _IS_LETTER(before[-1:]) and IS_SPACED(piece.text)
            ends = not _IS_LETTER(after[:1]) and IS_SPACED(piece.text[-1])
            yield bool(begins), word, bool(ends)


def beginning(text: str, length: int) -> str:
    """The first characters, up to `length`."""
    if len(text) <= length:
        return text
    start = text[: after_marks(text, length)]
    words = start.rpartition(" ")[0]
    return f"{words} …" if len(words) > length // 2 else f"{start}…"


def ending(text: str, length: int) -> str:
    """The last characters, up to `length`."""
    if len(text) <= length:
        return text
    end = text[after_marks(text, len(text) - length) :]
    words = end.partition(" ")[2]
    return f"… {words}" if len(words) > length // 2 else f"…{end}"
