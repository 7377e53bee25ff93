"""Structure of a Markdown text: normalised lines, blocks, the heading stack of each section, links.

Blocks are whole lines of the text, so that cutting it can lose nothing: lines that the parser makes no token of
(link definitions, nesting beyond its limit) become prose. Only headings of the document itself build the heading
stack; one inside a quote or a list belongs to what is quoted. A list counts as a whole: its nested lists do not
switch its context, while code and tables stand apart at any depth, because white space means something in them.
"""

from dataclasses import dataclass, field
from typing import Any

from markdown_it.token import Token

from producers.markdown.document import Block, Document, Kind, Link
from producers.markdown.front_matter import front_matter_length, read_front_matter
from producers.markdown.links import LinkKind, find_html_links, find_links
from producers.markdown.normalise import clean, collapse_line
from producers.markdown.parser import parse_blocks, plain_text

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
_NOT_BLANK_BUT_EMPTY = " \t>"


def normalise(text: str) -> str:
    """Normalised Markdown; normalising it again changes nothing."""
    return parse(text).text


def parse(text: str) -> Document:
    """The structure of a Markdown text, which is normalised on the way."""
    text = clean(text)
    head = front_matter_length(text)
    lines = text.split("\n")
    head_lines = text.count("\n", 0, head) + (1 if head and not text.endswith("\n", 0, head) else 0)
    tokens, definitions = parse_blocks("\n" * head_lines + "\n".join(lines[head_lines:]))
    _collapse_prose(lines, tokens)
    reader = _Reader(lines, definitions)
    if head_lines:
        reader.add_front_matter(head_lines)
    reader.read(tokens)
    return reader.document()


def _collapse_prose(lines: list[str], tokens: list[Token]) -> None:
    in_table = False
    for token in tokens:
        if token.type == "inline":
            content = token.content
            if in_table or not token.map or ("  " not in content and "\t" not in content):
                continue
            for number in range(*token.map):
                lines[number] = collapse_line(lines[number])
        elif token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"


@dataclass(slots=True)
class _Lines:
    """A block while it is being read: `start` and `end` are line numbers."""

    kind: Kind
    start: int
    end: int
    section: int
    list_number: int | None = None
    element: str = ""
    detail: str = ""
    is_heading: bool = False

    def block(self, offsets: list[int]) -> Block:
        start, end = offsets[self.start], offsets[self.end]
        return Block(self.kind, start, end, self.section, self.list_number, self.element, self.detail, self.is_heading)


@dataclass
class _Reader:
    """Turns tokens into blocks; line numbers become offsets at the end."""

    lines: list[str]
    definitions: dict[str, Any]
    blocks: list[_Lines] = field(default_factory=list)
    sections: list[tuple[str, ...]] = field(default_factory=lambda: [()])
    found_links: list[tuple[int, int, str, LinkKind]] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    _headings: list[tuple[int, str]] = field(default_factory=list)
    _elements: dict[str, int] = field(default_factory=dict)
    _lists: int = 0
    _list: tuple[int, str, int] | None = None  # number, element, last line of the outermost list that is open

    def add_front_matter(self, line_count: int) -> None:
        self.metadata.update(read_front_matter("\n".join(self.lines[:line_count]) + "\n"))
        self.blocks.append(_Lines(Kind.FRONT_MATTER, 0, line_count, 0, element="front_matter"))

    def read(self, tokens: list[Token]) -> None:
        depth = 0  # of lists and quotes
        lists = 0
        for number, token in enumerate(tokens):
            kind = _LEAVES.get(token.type)
            if kind is not None and token.map:
                start, end = token.map
                self._close_gap(start)
                if token.type == "heading_open" and depth == 0:
                    self._open_section(token, tokens[number + 1])
                self._add(kind, start, end, token)
            elif token.type == "inline":
                self._find_links(token)
            elif token.type in _LISTS:
                if lists == 0 and token.map:
                    self._close_gap(token.map[0])
                    self._lists += 1
                    self._list = (self._lists, self._next_element(_LISTS[token.type]), token.map[1])
                lists += 1
                depth += 1
            elif token.type in _LIST_ENDS:
                lists -= 1
                depth -= 1
                if lists == 0 and self._list:
                    self._close_gap(self._list[2])
                    self._list = None
            elif token.type == "blockquote_open":
                depth += 1
            elif token.type == "blockquote_close":
                depth -= 1
        self._close_gap(len(self.lines))

    def _add(self, kind: Kind, start: int, end: int, token: Token) -> None:
        start = max(start, self.blocks[-1].end if self.blocks else 0)
        if start >= end:
            return
        number, element = self._list[:2] if self._list else (None, "")
        detail = ""
        if kind is Kind.CODE:
            element = "/".join(filter(None, (element, self._next_element("code"))))
            detail = token.info.split()[0] if token.info.split() else ""
        elif kind is Kind.TABLE:
            element = "/".join(filter(None, (element, self._next_element("table"))))
            detail = self.lines[start].strip()
        elif token.type == "html_block":
            for url, link in find_html_links(token.content):
                self.found_links.append((start, end, url, link))
        is_heading = token.type == "heading_open"
        section = len(self.sections) - 1
        self.blocks.append(_Lines(kind, start, end, section, number, element, detail, is_heading))

    def _close_gap(self, until: int) -> None:
        """Makes a block of the lines between the last block and this line, if there is anything on them."""
        start = self.blocks[-1].end if self.blocks else 0
        while start < until and not self.lines[start].strip():
            start += 1
        end = until
        while end > start and not self.lines[end - 1].strip():
            end -= 1
        if start >= end:
            return
        if self.blocks and not any(line.strip(_NOT_BLANK_BUT_EMPTY) for line in self.lines[start:end]):
            self.blocks[-1].end = end  # the marks of a quote's empty lines
            return
        number, element = self._list[:2] if self._list else (None, "")
        self.blocks.append(_Lines(Kind.PROSE, start, end, len(self.sections) - 1, number, element))

    def _open_section(self, token: Token, inline: Token) -> None:
        level = int(token.tag[1])
        title = plain_text(inline.content, self.definitions)
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, title))
        self.sections.append(tuple(text for _, text in self._headings))
        self._elements.clear()
        if title and "heading" not in self.metadata:
            self.metadata["heading"] = title

    def _next_element(self, name: str) -> str:
        self._elements[name] = self._elements.get(name, 0) + 1
        return f"{name}[{self._elements[name]}]"

    def _find_links(self, token: Token) -> None:
        if token.map:
            start, end = token.map
            for url, kind in find_links(token.content, self.definitions):
                self.found_links.append((start, end, url, kind))

    def document(self) -> Document:
        text = "\n".join(self.lines)
        offsets = [0]
        for line in self.lines:
            offsets.append(offsets[-1] + len(line) + 1)
        offsets[-1] = len(text)
        blocks = tuple(block.block(offsets) for block in self.blocks)
        metadata = dict(self.metadata)
        heading = metadata.pop("heading", "")
        if heading:
            metadata.setdefault("title", heading)
        return Document(text, blocks, tuple(self.sections), self._place_links(text, offsets), metadata)

    def _place_links(self, text: str, offsets: list[int]) -> tuple[Link, ...]:
        """Where each link stands: the parser tells only the lines of its paragraph."""
        links = []
        cursor = 0
        for start, end, url, kind in self.found_links:
            cursor = max(cursor, offsets[start])
            place = text.find(url, cursor, offsets[end])
            if place >= 0:
                cursor = place + 1
            links.append(Link(url, kind, place if place >= 0 else offsets[start]))
        return tuple(links)
