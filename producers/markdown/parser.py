"""The CommonMark parser, set up once: blocks with tables, inline text on demand, addresses left as written."""

from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

# Deeper nesting is kept as text. Each level is a few Python frames, and real documents stay below ten.
MAX_NESTING = 100
# Inline parsing of hostile text is quadratic; beyond this length links are found by pattern.
MAX_INLINE_CHARACTERS = 20_000

# Characters with which no other block than a paragraph begins, and none interrupts one.
_STRUCTURAL = frozenset("!\"#$%&'()*+,-./0123456789:;<=>?@[\\]^_`{|}~ \t")


class _Parser(MarkdownIt):
    """Keeps addresses as the source writes them: links are data here, nothing is rendered."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 (the library names it)
        return url

    def validateLink(self, url: str) -> bool:  # noqa: N802
        return True


def _plain_paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A paragraph whose every line begins with a letter: the other rules need not look at it.

    Exactly what the library's own paragraph rule would make of it, found in a third of the time.
    """
    if silent or state.is_code_block(start):
        return False
    source, marks, shifts, ends = state.src, state.bMarks, state.tShift, state.eMarks
    line = start
    last = state.lineMax
    while line < last:
        first = marks[line] + shifts[line]
        if first >= ends[line]:
            break
        if source[first] in _STRUCTURAL:
            return False
        line += 1
    _push_paragraph(state, start, line)
    return True


def _push_paragraph(state: StateBlock, start: int, end: int) -> None:
    state.line = end
    state.push("paragraph_open", "p", 1).map = [start, end]
    inline = state.push("inline", "", 0)
    inline.content = mdTrim(state.getLines(start, end, state.blkIndent, False))
    inline.map = [start, end]
    inline.children = []
    state.push("paragraph_close", "p", -1)


def _make() -> _Parser:
    parser = _Parser("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable("table")
    parser.block.ruler.before("table", "plain_paragraph", _plain_paragraph)
    return parser


_parser = _make()
# Emphasis hides no link, and pairing its marks is half the work.
_link_parser = _Parser("commonmark").disable(["emphasis", "balance_pairs", "fragments_join", "text_join"])


def parse_blocks(text: str) -> tuple[list[Token], dict[str, Any]]:
    """Block tokens with their lines, inline text not yet parsed; and the link definitions of the text."""
    tokens: list[Token] = []
    definitions: dict[str, Any] = {}
    _parser.block.parse(text, _parser, definitions, tokens)
    return tokens, definitions


def parse_inline(content: str, definitions: dict[str, Any]) -> list[Token]:
    tokens: list[Token] = []
    _parser.inline.parse(content, _parser, definitions, tokens)
    return tokens


def parse_links(content: str, definitions: dict[str, Any]) -> list[Token]:
    """Inline tokens without emphasis."""
    tokens: list[Token] = []
    _link_parser.inline.parse(content, _link_parser, definitions, tokens)
    return tokens


def plain_text(content: str, definitions: dict[str, Any]) -> str:
    """Inline Markdown without its marks, on one line."""
    if any(mark in content for mark in "\\`*_[]<>&!") and len(content) <= MAX_INLINE_CHARACTERS:
        content = _text_of(parse_inline(content, definitions))
    return " ".join(content.split())


def _text_of(tokens: list[Token]) -> str:
    parts = []
    for token in tokens:
        if token.type == "image":
            parts.append(_text_of(token.children or []))
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type in ("text", "code_inline", "text_special", "html_inline"):
            parts.append("" if token.type == "html_inline" else token.content)
    return "".join(parts)
