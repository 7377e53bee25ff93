"""Structure of a Markdown text: normalised lines, blocks, the heading stack of each section, links.

Blocks are whole lines of the text, so that cutting it can lose nothing: lines that the parser makes no token of
(link definitions, nesting beyond its limit) become prose. Only headings of the document itself build the heading
stack; one inside a quote or a list belongs to what is quoted. A list counts as a whole: its nested lists do not
switch its context, while code and tables stand apart at any depth, because white space means something in them.
"""

import re
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from chunksink.chunkbus.slug import slug_of
from chunksink.producers.markdown.document import Block, Document, Kind, Link
from chunksink.producers.markdown.embedded import drop_embedded
from chunksink.producers.markdown.front_lists import Lists
from chunksink.producers.markdown.front_matter import find_front_matter
from chunksink.producers.markdown.headings import carried, names_a_version, split_heading
from chunksink.producers.markdown.links import LinkKind, find_html_links, find_links, may_hold_links
from chunksink.producers.markdown.normalise import clean_markdown, collapse_line
from chunksink.producers.markdown.odd import odd_of_block
from chunksink.producers.markdown.parser import has_words, parse_blocks, plain_text
from chunksink.producers.markdown.plain import HOLD_WORDS, BlockToken, Plain

_LEAVES = {
    "paragraph_open": Kind.PROSE,
    "heading_open": Kind.PROSE,
    "html_block": Kind.PROSE,
    "hr": Kind.PROSE,
    "fence": Kind.CODE,
    "code_block": Kind.CODE,
    "table_open": Kind.TABLE,
}
_LISTS = {"bullet_list_open": "ul", "ordered_list_open": "ol"}
_LIST_ENDS = ("bullet_list_close", "ordered_list_close")
_NO_LIST = (None, "", 0)
_NOT_BLANK_BUT_EMPTY = " \t>"
# As the first heading of a README is written to be centred; nothing in a comment.
_H1 = re.compile(r"(?!\s*<!--).*?<h1(?:\s[^<>]{0,999})?>((?:[^<]|<(?!/?h1\b)){0,4000})</h1\s*>", re.I | re.S)


def normalise(text: str) -> str:
    """Normalised Markdown; normalising it again changes nothing."""
    return parse(text).text


def parse(text: str, *, is_mdx: bool = False) -> Document:
    """The structure of a Markdown text, which is normalised on the way."""
    text = clean_markdown(text)
    head, said, lists = find_front_matter(text)
    lines = text.split("\n")
    head_lines = text.count("\n", 0, head) + (1 if head and not text.endswith("\n", 0, head) else 0)
    body = "\n" * head_lines + "\n".join(lines[head_lines:]) if head_lines else text
    tokens, definitions = parse_blocks(body, is_mdx=is_mdx)
    drop_embedded(text, lines, tokens, definitions)
    _collapse_prose(lines, tokens)
    reader = _Reader("\n".join(lines), lines, _offsets(lines), definitions)
    if head_lines:
        reader.add_front_matter(head_lines, said, lists)
    reader.read(tokens)
    return reader.document()


def _offsets(lines: list[str]) -> list[int]:
    """Where each line begins in the text that they make, and where the text ends."""
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    offsets[-1] -= 1  # no line break ends the last one
    return offsets


def _collapse_prose(lines: list[str], tokens: list[BlockToken]) -> None:
    in_table = False
    for token in tokens:
        if token.type in HOLD_WORDS:
            content = token.content
            if in_table or not token.map or ("  " not in content and "\t" not in content):
                continue
            for number in range(*token.map):
                lines[number] = collapse_line(lines[number])
        elif token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"


@dataclass
class _Reader:
    """Turns tokens into blocks, and their line numbers into offsets."""

    text: str
    lines: list[str]
    offsets: list[int]
    definitions: dict[str, Any]
    blocks: list[Block] = field(default_factory=list)
    sections: list[tuple[str, ...]] = field(default_factory=lambda: [()])
    found_links: list[tuple[int, int, str, LinkKind]] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    lists: Lists = field(default_factory=dict)
    anchors: dict[int, str] = field(default_factory=dict)
    odd: set[str] = field(default_factory=set)
    _end: int = 0  # the line after the last block
    _headings: list[tuple[int, str]] = field(default_factory=list)
    _elements: dict[str, int] = field(default_factory=dict)
    _slugs: dict[str, int] = field(default_factory=dict)
    _title: str = ""  # the first heading of the top level
    _tops: int = 0  # so many there are
    _opening: tuple[int, str] | None = None  # level and words of a heading that the document begins with
    _has_begun: bool = False  # with words
    _lists: int = 0
    _list: tuple[int, str, int] | None = None  # number, element, last line of the outermost list that is open

    def add_front_matter(self, line_count: int, said: dict[str, str], lists: Lists) -> None:
        self.metadata.update(said)
        self.lists = lists
        self._append(Kind.FRONT_MATTER, 0, line_count, None, "front_matter")

    def read(self, tokens: list[BlockToken]) -> None:
        depth = 0  # of lists and quotes
        lists = 0
        for number, token in enumerate(tokens):
            name = token.type
            if not self._has_begun and (depth or name != "heading_open"):
                self._has_begun = self._shows_words(token)
            if name == "inline":
                self._find_links(token)
            elif kind := _LEAVES.get(name):
                if token.map:
                    start, end = token.map
                    if start > self._end:
                        self._close_gap(start)
                    if name == "heading_open" and depth == 0:
                        words = token if isinstance(token, Plain) else tokens[number + 1]
                        self._open_section(token.tag, words.content)
                    elif name == "html_block" and depth == 0 and not self._title and (top := _H1.match(token.content)):
                        self._title = carried(plain_text(top[1], {}))
                    self._add(kind, max(start, self._end), end, token)
                    if name in HOLD_WORDS:
                        self._find_links(token)
            elif name == "paragraph_close":
                continue
            elif name in _LISTS:
                if lists == 0 and token.map:
                    self._close_gap(token.map[0])
                    self._lists += 1
                    self._list = (self._lists, self._next_element(_LISTS[name]), token.map[1])
                lists += 1
                depth += 1
                self._note_odd(token)
            elif name in _LIST_ENDS:
                lists -= 1
                depth -= 1
                if lists == 0 and self._list:
                    self._close_gap(self._list[2])
                    self._list = None
            elif name == "blockquote_open":
                depth += 1
                self._note_odd(token)
            elif name == "blockquote_close":
                depth -= 1
        self._close_gap(len(self.lines))

    def _add(self, kind: Kind, start: int, end: int, token: BlockToken) -> None:
        if start >= end:
            return
        number, element, _ = self._list or _NO_LIST
        detail = ""
        if kind is Kind.CODE:
            element = f"{element}{element and '/'}{self._next_element('code')}"
            detail = carried((token.info.split(maxsplit=1) or [""])[0])
            self._note_odd(token)
        elif kind is Kind.TABLE:
            element = f"{element}{element and '/'}{self._next_element('table')}"
            detail = carried(self.lines[start].strip())
        elif token.type == "html_block":
            for url, link in find_html_links(token.content):
                self.found_links.append((start, end, url, link))
        self._append(kind, start, end, number, element, detail, token.type == "heading_open")

    def _note_odd(self, token: BlockToken) -> None:
        if code := odd_of_block(token):
            self.odd.add(code)

    def _close_gap(self, until: int) -> None:
        """Makes a block of the lines between the last block and this line, if there is anything on them."""
        start, end = self._end, until
        while start < until and (not self.lines[start] or self.lines[start].isspace()):
            start += 1
        if start >= until:
            return
        while end > start and not self.lines[end - 1].strip():
            end -= 1
        if self.blocks and not any(line.strip(_NOT_BLANK_BUT_EMPTY) for line in self.lines[start:end]):
            self.blocks[-1] = self.blocks[-1]._replace(end=self.offsets[end])  # the marks of a quote's empty lines
            self._end = end
            return
        number, element, _ = self._list or _NO_LIST
        self._append(Kind.PROSE, start, end, number, element)

    def _append(
        self,
        kind: Kind,
        start: int,
        end: int,
        list_number: int | None,
        element: str,
        detail: str = "",
        is_heading: bool = False,
    ) -> None:
        section = len(self.sections) - 1
        first, last = self.offsets[start], self.offsets[end]
        self.blocks.append(Block(kind, first, last, section, list_number, element, detail, is_heading))
        self._end = end

    def _open_section(self, tag: str, content: str) -> None:
        level = int(tag[1])
        words, anchor = split_heading(content)
        title = carried(plain_text(words, self.definitions))
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, title))
        self.sections.append(tuple(text for _, text in self._headings))
        if anchor := anchor or self._numbered(slug_of(title)):
            self.anchors[len(self.sections) - 1] = anchor
        self._elements.clear()
        if level == 1:
            self._title = self._title or title
            self._tops += 1
        if not self._has_begun:
            self._opening, self._has_begun = (level, title), True
        elif self._opening and level <= self._opening[0]:
            self._opening = None  # one of several, or a part before the first whole

    def _numbered(self, slug: str) -> str:
        """The anchor of a heading whose words another had before it; "" of the first, which follows from its words."""
        number = self._slugs.get(slug, 0)
        self._slugs[slug] = number + 1
        return f"{slug}-{number}" if slug and number else ""

    def _shows_words(self, token: BlockToken) -> bool:
        if token.type == "html_block" or token.type in HOLD_WORDS:
            return has_words(token.content, self.definitions)
        return token.type in ("fence", "code_block")

    def _next_element(self, name: str) -> str:
        self._elements[name] = self._elements.get(name, 0) + 1
        return f"{name}[{self._elements[name]}]"

    def _find_links(self, token: BlockToken) -> None:
        if token.map and may_hold_links(token.content):
            start, end = token.map
            for url, kind in find_links(token.content, self.definitions):
                self.found_links.append((start, end, url, kind))

    def document(self) -> Document:
        metadata = dict(self.metadata)
        names_a_part = self._tops > 1 and names_a_version(self._title)
        if title := "" if names_a_part else self._title or (self._opening[1] if self._opening else ""):
            metadata.setdefault("title", title)
        links = self._place_links()
        blocks, sections, odd = tuple(self.blocks), tuple(self.sections), frozenset(self.odd)
        return Document(self.text, blocks, sections, links, metadata, self.anchors, self.lists, odd)

    def _place_links(self) -> tuple[Link, ...]:
        """Where each link stands: the parser tells only the lines of its paragraph."""
        links = []
        cursor = 0
        for start, end, url, kind in self.found_links:
            cursor = max(cursor, self.offsets[start])
            place = self.text.find(url, cursor, self.offsets[end])
            if place >= 0:
                cursor = place + 1
            links.append(Link(url, kind, place if place >= 0 else self.offsets[start]))
        return tuple(links)
