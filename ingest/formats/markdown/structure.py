"""Parses a Markdown text into normalised lines, blocks, sections with their heading stacks, and links.

Every line belongs to a block, so that cutting loses nothing: lines without a token (link definitions, nesting beyond
the limit) become prose. Only top-level headings form the heading stack, not headings in quotes and lists. The blocks of
a list and of its nested lists have one `list_number`; code and tables in it are blocks of their own.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from markdown_it.token import Token

from chunksink.chunkbus.patterns import possessive
from chunksink.chunkbus.slug import slug_of
from chunksink.ingest.codes import FENCE_UNCLOSED, NUL_REMOVED
from chunksink.ingest.formats.markdown import parser
from chunksink.ingest.formats.markdown.addresses import LinkKind, links_in_html
from chunksink.ingest.formats.markdown.directives import without_directives
from chunksink.ingest.formats.markdown.document import Block, Kind, Link, Outline, Structure
from chunksink.ingest.formats.markdown.embedded_data import drop_embedded_and_ruby
from chunksink.ingest.formats.markdown.front_matter import FrontMatter, find_front_matter
from chunksink.ingest.formats.markdown.normalise import clean_markdown, collapse_line, shortened

_LEAVES = {
    "paragraph_open": Kind.PROSE,
    "heading_open": Kind.PROSE,
    "html_block": Kind.PROSE,
    "hr": Kind.PROSE,
    "fence": Kind.CODE,
    "code_block": Kind.CODE,
    "table_open": Kind.TABLE,
}
_LISTS = {"bullet_list_open": "ul", "bullet_list_close": "ul", "ordered_list_open": "ol", "ordered_list_close": "ol"}
_CONTAINERS = (*_LISTS, "blockquote_open", "blockquote_close")
_EMPTY_LINE_OF_QUOTE = " \t>"
# READMEs use `<h1>` for a centred title; one in a comment does not count.
_H1 = re.compile(r"(?!\s*<!--).*?<h1(?:\s[^<>]{0,999})?>((?:[^<]|<(?!/?h1\b)){0,4000})</h1\s*>", re.I | re.S)

_ITEM = r"""(?:[#.][\w:.-]+|[\w:-]+=(?:"[^"{}]*"|'[^'{}]*'|[^\s{}"']+))"""
_MORE_ITEMS = possessive(rf"[ \t]+{_ITEM}")
# Attributes of Pandoc, Docusaurus, Hugo and kramdown: `{#usage .wide key="value"}`, `{: #usage}`.
_ATTRIBUTES = re.compile(rf"(?<!\\)\{{:?[ \t]*(?=[#.])({_ITEM}{_MORE_ITEMS})[ \t]*\}}\s*\Z")
# An id of MDX, in a comment: `{/*usage*/}`.
_MDX_ID = re.compile(r"(?<!\\)\{/\*[ \t]*([^\s*{}]{1,200})[ \t]*\*/\}\s*\Z")
_ANCHOR = re.compile(r"(?:^|(?<=[ \t]))#([\w:.-]{1,200})(?=[ \t]|$)")
_VERSION = re.compile(r"\W*(?:v(?:ersion)?\W*)?\d+(?:\.\d+)+", re.I)


def parse(text: str, *, is_mdx: bool = False, drops_directives: bool = False) -> Structure:
    """The structure of a Markdown text, and the text normalised. Normalising it again changes nothing.

    `drops_directives`: directives of documentation frameworks are removed first.
    """
    notice_codes = {NUL_REMOVED} if "\0" in text else set()
    text = clean_markdown(text)
    front = find_front_matter(text)
    lines = text.split("\n")
    if drops_directives:
        lines[front.lines :] = without_directives(lines[front.lines :], is_mdx=is_mdx)
    tokens, definitions = parser.parse_blocks("\n" * front.lines + "\n".join(lines[front.lines :]), is_mdx=is_mdx)
    drop_embedded_and_ruby(text, lines, tokens, definitions)
    _collapse_prose(lines, tokens)
    reader = _Reader(lines, definitions, notice_codes)
    reader.read(front, tokens)
    return reader.document(front)


def _collapse_prose(lines: list[str], tokens: Sequence[Token]) -> None:
    in_table = False
    for token in tokens:
        if token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        elif token.type == "inline" and token.map and not in_table and ("  " in token.content or "\t" in token.content):
            for number in range(*token.map):
                lines[number] = collapse_line(lines[number])


class _List(NamedTuple):
    """The open top-level list; `end` is the line after it."""

    number: int | None = None
    element: str = ""
    end: int = 0


class _Reader:
    """Makes blocks from tokens, and offsets from their line numbers."""

    def __init__(self, lines: list[str], definitions: parser.Definitions, notice_codes: set[str]) -> None:
        self._lines = lines
        self._text = "\n".join(lines)
        self._offsets = [*accumulate((len(line) + 1 for line in lines), initial=0)]
        self._offsets[-1] -= 1  # no line break after the last line
        self._definitions = definitions
        self._notice_codes = notice_codes
        self._blocks: list[Block] = []
        self._links: list[tuple[int, int, str, LinkKind]] = []  # with the lines of their paragraph
        self._end = 0  # the line after the last block
        self._depth = 0  # of lists and quotes
        self._containers = 0  # lists and quotes of the top level
        self._open_lists = 0
        self._list = _List()
        self._list_count = 0
        self._outline = Outline()
        self._anchors: dict[int, str] = {}
        self._slugs: dict[str, int] = {}
        self._title = ""  # the first heading of the top level
        self._top_headings = 0
        self._opening: tuple[int, str] | None = None  # level and words of the heading at the document's beginning
        self._has_begun = False  # whether there were any words or code

    def read(self, front: FrontMatter, tokens: Sequence[Token]) -> None:
        if front.lines:
            self._append(Kind.FRONT_MATTER, 0, front.lines, "front_matter")
        for number, token in enumerate(tokens):
            name = token.type
            if name in _CONTAINERS:
                self._read_container(token)
            elif name == "inline":
                self._note(token, parser.find_links(token.content, self._definitions))
            elif (kind := _LEAVES.get(name)) and token.map:
                self._close_gap(token.map[0])
                if name == "heading_open" and not self._depth:
                    self._open_section(int(token.tag[1]), tokens[number + 1].content)
                elif name == "html_block":
                    self._read_html(token)
                self._add(kind, token, *token.map)
        self._close_gap(len(self._lines))

    def document(self, front: FrontMatter) -> Structure:
        metadata = dict(front.metadata)
        is_changelog = self._top_headings > 1 and _VERSION.match(self._title)
        if title := "" if is_changelog else self._title or (self._opening[1] if self._opening else ""):
            metadata.setdefault("title", title)
        blocks, sections = tuple(self._blocks), tuple(self._outline.sections)
        links, notice_codes = tuple(self._placed_links()), frozenset(self._notice_codes)
        return Structure(self._text, blocks, sections, links, metadata, self._anchors, notice_codes)

    def _read_container(self, token: Token) -> None:
        self._depth += token.nesting
        self._containers += token.nesting > 0 and self._depth == 1
        if token.type not in _LISTS:
            return
        self._open_lists += token.nesting
        if token.nesting > 0 and self._open_lists == 1 and token.map:
            self._close_gap(token.map[0])
            self._list_count += 1
            self._list = _List(self._list_count, self._outline.next_element(_LISTS[token.type]), token.map[1])
        elif self._open_lists == 0:
            self._close_gap(self._list.end)
            self._list = _List()

    def _read_html(self, token: Token) -> None:
        self._note(token, links_in_html(token.content))
        if not self._depth and not self._title and (heading := _H1.match(token.content)):
            self._title = shortened(parser.plain_text(heading[1], {}))

    def _note(self, token: Token, links: Iterator[tuple[str, LinkKind]]) -> None:
        """Records the links, and whether the document has begun."""
        self._has_begun = self._has_begun or parser.has_words(token.content, self._definitions)
        if token.map:
            start, end = token.map
            self._links += ((start, end, url, kind) for url, kind in links)

    def _open_section(self, level: int, content: str) -> None:
        words, anchor = _split_heading(content)
        title = shortened(parser.plain_text(words, self._definitions))
        self._outline.open_section(level, title)
        if anchor := anchor or self._numbered(slug_of(title)):
            self._anchors[self._outline.section] = anchor
        if level == 1:
            self._title = self._title or title
            self._top_headings += 1
        if not self._has_begun:
            self._opening, self._has_begun = (level, title), True
        elif self._opening and level <= self._opening[0]:
            self._opening = None  # not the title: another heading has the same or a higher level

    def _numbered(self, slug: str) -> str:
        """The numbered anchor if an earlier heading has the same slug; "" for the first, whose anchor is the slug."""
        number = self._slugs.get(slug, 0)
        self._slugs[slug] = number + 1
        return f"{slug}-{number}" if slug and number else ""

    def _add(self, kind: Kind, token: Token, first: int, end: int) -> None:
        start = max(first, self._end)
        if start >= end:
            return
        element, detail = self._list.element, ""
        if kind is not Kind.PROSE:
            element = f"{element}{element and '/'}{self._outline.next_element(kind.value)}"
        if kind is Kind.CODE:
            self._has_begun = True
            detail = shortened((token.info.split(maxsplit=1) or [""])[0])
            if token.type == "fence" and end - first < len(token.content.splitlines()) + 2:
                self._notice_codes.add(FENCE_UNCLOSED)
        elif kind is Kind.TABLE:
            detail = shortened(self._lines[start].strip())
        self._append(kind, start, end, element, detail, token.type == "heading_open")

    def _close_gap(self, until: int) -> None:
        """Makes a block from the lines up to this one, unless all are blank. Lines of only `>` join the last block."""
        shown = [number for number in range(self._end, until) if self._lines[number].strip()]
        if not shown:
            return
        start, end = shown[0], shown[-1] + 1
        if self._blocks and not any(self._lines[number].strip(_EMPTY_LINE_OF_QUOTE) for number in shown):
            self._blocks[-1] = self._blocks[-1]._replace(end=self._offsets[end])
            self._end = end
        else:
            self._append(Kind.PROSE, start, end, self._list.element)

    def _append(self, kind: Kind, start: int, end: int, element: str, detail: str = "", heading: bool = False) -> None:
        place = self._offsets[start], self._offsets[end], self._outline.section
        container = self._containers if self._depth else None
        self._blocks.append(Block(kind, *place, self._list.number, element, detail, heading, container=container))
        self._end = end

    def _placed_links(self) -> Iterator[Link]:
        """Links with their offsets, found by search: the parser reports only the lines of their paragraph."""
        cursor = 0
        for start, end, url, kind in self._links:
            cursor = max(cursor, self._offsets[start])
            place = self._text.find(url, cursor, self._offsets[end])
            if place >= 0:
                cursor = place + 1
            yield Link(url, kind, place if place >= 0 else self._offsets[start])


def _split_heading(content: str) -> tuple[str, str]:
    """A heading's inline Markdown without the attributes at its end, and the anchor in these or ""."""
    found = _ATTRIBUTES.search(content)
    anchor = _ANCHOR.search(found[1]) if found else None
    if found is None:
        found = anchor = _MDX_ID.search(content)
    words = content[: found.start()].rstrip() if found else ""
    if not words:  # no attributes, or nothing else, as in a template's `{#if}`
        return content, ""
    open_words = words.rstrip("#")  # `## Usage ## {#usage}`, but not `## C# {#c-sharp}`
    if not open_words or open_words[-1] in " \t":
        words = open_words.rstrip()
    return words, anchor[1] if anchor else ""
