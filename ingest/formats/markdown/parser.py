"""Configures markdown-it-py: CommonMark with tables. Inline text is parsed on demand; addresses are not normalised."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from markdown_it import MarkdownIt, rules_block
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from chunksink.ingest.formats.markdown.addresses import LinkKind, classify, links_in_html, links_in_text
from chunksink.ingest.formats.markdown.normalise import one_line

Definitions = dict[str, Any]
"""The link definitions of a text in the library's format."""

MAX_NESTING = 100
"""Deeper nesting is kept as text. Each level takes a few Python frames; real documents have fewer than ten levels."""
MAX_INLINE_CHARACTERS = 20_000
"""Inline parsing of hostile text is quadratic; in longer text a regular expression finds the links."""

_ATTRIBUTE = r"[\w:.-]+(?:=(?:\"[^\"]*\"|'[^']*'|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}))?|\{\.\.\.[^{}]*\}"
COMPONENT = re.compile(rf"<(?:/?[A-Za-z][\w.:-]*(?:\s+(?:{_ATTRIBUTE}))*\s*/?)?>[ \t]*(?:\n|\Z)")
_MAX_TAG = 4000
_LINK = re.compile(r"(!?)\[[^\[\]\n]{0,999}\]\(\s{0,99}<?((?:[^\s<>()]|\([^\s<>()]{0,999}\)){1,4096})")
_ADDRESS_IN_ANGLES = re.compile(r"<(?:a|img)\b|<[a-z][a-z0-9+.-]*:|@[^<>@\s]*>", re.IGNORECASE)
_WORDS = ("text", "code_inline", "text_special")
_BRACKETS = ("[", "]")


def parse_blocks(text: str, *, is_mdx: bool = False) -> tuple[list[Token], Definitions]:
    """The block tokens with unparsed inline text, and the link definitions."""
    tokens: list[Token] = []
    definitions: Definitions = {}
    parser = _mdx_parser if is_mdx else _parser
    parser.block.parse(text, parser, definitions, tokens)
    return tokens, definitions


def plain_text(content: str, definitions: Definitions) -> str:
    """The text of inline Markdown, without markup and on one line."""
    if any(mark in content for mark in "\\`*_[]<>&!") and len(content) <= MAX_INLINE_CHARACTERS:
        content = _text_of(_parse_inline(content, definitions))
    return one_line(content)


def has_words(content: str, definitions: Definitions) -> bool:
    """Whether inline Markdown has text besides images, tags and comments."""
    if any(mark in content for mark in "<!") and len(content) <= MAX_INLINE_CHARACTERS:
        return any(token.content.strip() for token in _parse_inline(content, definitions) if token.type in _WORDS)
    return bool(content.strip())


def find_links(content: str, definitions: Definitions) -> Iterator[tuple[str, LinkKind]]:
    """Address and kind of each link in inline Markdown, in order."""
    may_have_links = "](" in content or "://" in content or "[[" in content or _ADDRESS_IN_ANGLES.search(content)
    if not may_have_links and not (definitions and "[" in content):
        return
    if len(content) > MAX_INLINE_CHARACTERS:
        for match in _LINK.finditer(content):
            yield match[2], LinkKind.IMAGE if match[1] else classify(match[2])
        return
    tokens: list[Token] = []
    _link_parser.inline.parse(content, _link_parser, definitions, tokens)
    yield from _links_of(tokens)


def _links_of(tokens: Iterable[Token]) -> Iterator[tuple[str, LinkKind]]:
    depth = 0
    text = ""  # escapes and entities split it into several tokens
    for token in tokens:
        if token.type in ("text", "text_special"):
            if not depth:
                is_escaped_bracket = token.type == "text_special" and token.content in _BRACKETS
                text += token.markup if is_escaped_bracket else token.content
            continue
        yield from links_in_text(text)
        text = ""
        if token.type == "link_open":
            depth += 1
            url = str(token.attrs["href"])
            yield url, classify(url)
        elif token.type == "link_close":
            depth -= 1
        elif token.type == "image":
            yield str(token.attrs["src"]), LinkKind.IMAGE
        elif token.type == "html_inline":
            yield from links_in_html(token.content)
    yield from links_in_text(text)


def _parse_inline(content: str, definitions: Definitions) -> list[Token]:
    tokens: list[Token] = []
    _parser.inline.parse(content, _parser, definitions, tokens)
    return tokens


def _text_of(tokens: Iterable[Token]) -> str:
    text = ""
    for token in tokens:
        if token.type == "image":
            text += _text_of(token.children or [])
        elif token.type in _WORDS:
            text += token.content
        elif token.type in ("softbreak", "hardbreak"):
            text += " "
    return text


def _link_definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The rule for `[name]: address`, except footnotes (`[^1]: text`)."""
    if state.src.startswith("[^", state.bMarks[start] + state.tShift[start]):
        return False
    return rules_block.reference(state, start, end, silent)


def _component(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The rule for an MDX tag that has its lines to itself. Markdown may begin on the next line."""
    first = state.bMarks[start] + state.tShift[start]
    tag = COMPONENT.match(state.src, first, first + _MAX_TAG)
    if silent or tag is None:
        return False
    state.line = next((line for line in range(start + 1, end) if state.bMarks[line] >= tag.end()), end)
    token = state.push("html_block", "", 0)
    token.map = [start, state.line]
    token.content = state.getLines(start, state.line, state.blkIndent, True)
    return True


class _Parser(MarkdownIt):
    """Keeps addresses as written, because nothing is rendered."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 (the library's name)
        return url

    def validateLink(self, url: str) -> bool:  # noqa: N802
        return True


def _make_parser(*, is_mdx: bool = False) -> _Parser:
    parser = _Parser("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable("table")
    parser.block.ruler.at("reference", _link_definition)
    if is_mdx:
        parser.block.ruler.before("html_block", "component", _component)
        parser.disable("code")
    return parser


_parser = _make_parser()
_mdx_parser = _make_parser(is_mdx=True)
# Finds the same links in a third of the time: most tokens are emphasis and line breaks, which never hide a link.
_link_parser = _Parser("commonmark")
_link_parser.disable(["emphasis", "newline", "balance_pairs", "fragments_join", "text_join"])
_link_parser.inline.terminator_re = re.compile(r"[\\`\[\]!<&]")  # where the remaining rules begin
