"""The CommonMark parser, set up once: blocks with tables, inline text on demand, addresses left as written; and the
same for MDX, where tags stand beside blocks of Markdown and indentation makes no code."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock, blockquote, fence, heading, hr, html_block, list_block, reference
from markdown_it.token import Token

from chunksink.chunkbus.patterns import for_good
from chunksink.producers.markdown.plain import BlockToken, Plain, PlainBlocks, PlainState

Rule = Callable[[StateBlock, int, int, bool], bool]

# Deeper nesting is kept as text. Each level is a few Python frames, and real documents stay below ten.
MAX_NESTING = 100
# Inline parsing of hostile text is quadratic; beyond this length links are found by pattern.
MAX_INLINE_CHARACTERS = 20_000


def link_definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`[name]: address`; but what follows `[^1]:` are the words of a footnote."""
    if state.src.startswith("[^", state.bMarks[start] + state.tShift[start]):
        return False
    return reference(state, start, end, silent)


_ATTRIBUTE = r"[\w:.-]+(?:=(?:\"[^\"]*\"|'[^']*'|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}))?|\{\.\.\.[^{}]*\}"
_COMPONENT = re.compile(rf"<(?:/?[A-Za-z][\w.:-]*(?:\s+(?:{_ATTRIBUTE}))*\s*/?)?>[ \t]*(?:\n|\Z)")
_MOST_OF_A_TAG = 4000


def component(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A tag of MDX that has its lines for itself: what follows is Markdown again, without an empty line between."""
    first = state.bMarks[start] + state.tShift[start]
    tag = _COMPONENT.match(state.src, first, first + _MOST_OF_A_TAG)
    if silent or tag is None:
        return False
    following = start + 1
    while following < end and state.bMarks[following] < tag.end():
        following += 1
    state.line = following
    token = state.push("html_block", "", 0)
    token.map = [start, following]
    token.content = state.getLines(start, following, state.blkIndent, True)
    return True


# The only rules that can find a block in a line with this character at its head; but what makes a table is its second
# line, and what makes code its indentation.
_RULES: dict[str, tuple[Rule, ...]] = {
    "#": (heading,),
    ">": (blockquote,),
    "-": (hr, list_block),
    "*": (hr, list_block),
    "_": (hr,),
    "+": (list_block,),
    "`": (fence,),
    "~": (fence,),
    "<": (html_block,),
    "[": (link_definition,),
    **dict.fromkeys("0123456789", (list_block,)),
}
# What may end the paragraph that stands before it or turn it into a heading or a table. It may say so of a line that
# does not, never the reverse.
_NO_MORE_TEXT = re.compile(
    r"[#>\-+=~<|:]"
    r"|\*[ \t]"  # a list item
    r"|[*_][*_ \t]*(?:\n|\Z)"  # a rule
    r"|[0-9]{1,9}[.)](?:[ \t\n]|\Z)"
    r"|```"
)
_NO_MORE_TEXT_BEGINS = frozenset("#>-+=~<|:*_0123456789`")
_PARAGRAPH_CLOSE = Token("paragraph_close", "p", -1)  # one for all: only its type is ever read
_WORDS_AND_CODE = re.compile(for_good(r"[^\\`*_\[\]<>&!]++|`[^`]+`"))
_WORDS = ("text", "code_inline", "text_special")


class _Parser(MarkdownIt):
    """Keeps addresses as the source writes them: links are data here, nothing is rendered."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 (the library names it)
        return url

    def validateLink(self, url: str) -> bool:  # noqa: N802
        return True


def _by_first_character(
    rules: Mapping[str, tuple[Rule, ...]], state: StateBlock, start: int, end: int, silent: bool
) -> bool:
    """The rule that a line's first character calls for, else a paragraph: the other rules need not look at it.

    Finds exactly what the library finds with all its rules in turn, and leaves to them what it cannot tell.
    """
    if state.is_code_block(start) or _may_be_table(state, start):
        return False
    for rule in rules.get(state.src[state.bMarks[start] + state.tShift[start]], ()):
        if rule(state, start, end, silent):
            return True
    source, marks, shifts, ends = state.src, state.bMarks, state.tShift, state.eMarks
    line = start + 1
    last = state.lineMax
    while line < last:
        first = marks[line] + shifts[line]
        if first >= ends[line]:
            break
        if source[first] in _NO_MORE_TEXT_BEGINS and _NO_MORE_TEXT.match(source, first):
            return False
        line += 1
    _paragraph(state, start, line)
    return True


def _may_be_table(state: StateBlock, start: int) -> bool:
    following = start + 1
    if following >= state.lineMax:
        return False
    first = state.bMarks[following] + state.tShift[following]
    return first < state.eMarks[following] and state.src[first] in "|-:"


def _paragraph(state: StateBlock, start: int, end: int) -> None:
    tokens: list[Any] = state.tokens
    lines = [start, end]
    if state.level == 0:  # in no list and no quote, whose marks would have to be left out
        content = state.src[state.bMarks[start] : state.eMarks[end - 1]]
        tokens.append(Plain("paragraph_open", lines, mdTrim(content), "p"))
    else:  # the library looks at what its lists are made of
        content = state.getLines(start, end, state.blkIndent, False)
        tokens.append(Token("paragraph_open", "p", 1, {}, lines))
        tokens.append(Token("inline", "", 0, {}, lines, content=mdTrim(content)))
        tokens.append(_PARAGRAPH_CLOSE)
    state.line = end


def _make(plain: PlainBlocks, rules: Mapping[str, tuple[Rule, ...]]) -> _Parser:
    parser = _Parser("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable("table")
    parser.block.ruler.at("reference", link_definition)
    parser.block.ruler.before("table", "plain_blocks", plain.rule)
    parser.block.ruler.before("table", "by_first_character", partial(_by_first_character, rules))
    return parser


def _make_for_mdx(plain: PlainBlocks) -> _Parser:
    parser = _make(plain, _RULES | {"<": (component, html_block)})
    parser.block.ruler.before("html_block", "component", component)
    parser.disable("code")
    return parser


_plain, _mdx_plain = PlainBlocks(html=True), PlainBlocks(html=False)
_parser, _mdx_parser = _make(_plain, _RULES), _make_for_mdx(_mdx_plain)


def _make_for_links() -> _Parser:
    """Finds the same links in a third of the time: emphasis and line breaks hide none, and make most of the tokens."""
    parser = _Parser("commonmark")
    parser.disable(["emphasis", "newline", "balance_pairs", "fragments_join", "text_join"])
    parser.inline.terminator_re = re.compile(r"[\\`\[\]!<&]")  # where the rules that are left have to look
    return parser


_link_parser = _make_for_links()


def parse_blocks(text: str, *, is_mdx: bool = False) -> tuple[list[BlockToken], dict[str, Any]]:
    """Block tokens with their lines, inline text not yet parsed; and the link definitions of the text."""
    tokens: list[BlockToken] = []
    definitions: dict[str, Any] = {}
    parser, plain = (_mdx_parser, _mdx_plain) if is_mdx else (_parser, _plain)
    line, at = plain.read(text, 0, 0, tokens, definitions)
    if at < len(text):
        state = PlainState(text, parser, definitions, tokens)
        parser.block.tokenize(state, line, state.lineMax)
    return tokens, definitions


def parse_inline(content: str, definitions: dict[str, Any]) -> list[Token]:
    tokens: list[Token] = []
    _parser.inline.parse(content, _parser, definitions, tokens)
    return tokens


def parse_links(content: str, definitions: dict[str, Any]) -> list[Token]:
    """Inline tokens without emphasis and line breaks."""
    tokens: list[Token] = []
    _link_parser.inline.parse(content, _link_parser, definitions, tokens)
    return tokens


def plain_text(content: str, definitions: dict[str, Any]) -> str:
    """Inline Markdown without its marks, on one line."""
    if "``" not in content and _WORDS_AND_CODE.fullmatch(content):
        content = content.replace("`", "")
    elif any(mark in content for mark in "\\`*_[]<>&!") and len(content) <= MAX_INLINE_CHARACTERS:
        content = text_of(parse_inline(content, definitions))
    return " ".join(content.split())


def has_words(content: str, definitions: dict[str, Any]) -> bool:
    """Whether inline Markdown shows a text of its own: images, tags and comments show none."""
    if any(mark in content for mark in "<!") and len(content) <= MAX_INLINE_CHARACTERS:
        return any(token.content.strip() for token in parse_inline(content, definitions) if token.type in _WORDS)
    return bool(content.strip())


def text_of(tokens: list[Token]) -> str:
    """What inline tokens show, pictures by their words."""
    parts = []
    for token in tokens:
        if token.type == "image":
            parts.append(text_of(token.children or []))
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type in _WORDS:
            parts.append(token.content)
    return "".join(parts)
