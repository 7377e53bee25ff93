"""Plain text: paragraphs parted by empty lines, under the headings of the markup that such a file mostly has.

It does not go through Markdown: the marks that would keep a hash or a star from meaning something there would stand
in what people search and read. Sizes, sentences, overlap and ids are the chunking specification's all the same.
"""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, dropwhile

from chunksink.chunkbus.chunk import Record
from chunksink.producers.markdown.chunker import MarkdownChunker
from chunksink.producers.markdown.document import Block, Document, Kind
from chunksink.producers.markdown.headings import carried, names_a_version
from chunksink.producers.markdown.normalise import clean, collapse_line, decode
from chunksink.producers.markdown.odd import tell_removed
from chunksink.producers.markdown.records import Form, SourceVersion
from chunksink.producers.produced import Tell, untold
from chunksink.producers.terminal import readable
from chunksink.producers.text.headings import Heading, find_headings

TEXT = Form(("plain-text", "5"), "txt", "text/plain")
_ORG_TITLE = re.compile(r"#\+title:[ \t]*(\S.*)", re.IGNORECASE)
_CONTROL = re.compile("[\x1b\b]")  # colours of a log, and words of manual pages that are written over to be bold
# As letters have it, and proposals of many projects; reStructuredText has a colon before each name, too.
_FIELD = re.compile(r":?([A-Za-z][\w-]*):(?:[ \t]+(\S.*)|[ \t]*\Z)")
_TITLES = ("title", "subject")
# What may stand above a title and is no text: comments, targets and attributes.
_NO_TEXT = re.compile(r"\.\.(?:\s|\Z)|//|:!?[\w-]+!?:|\[.*\]\s*\Z|\w+::|#\+|# -\*-")


@dataclass(frozen=True)
class TextChunker:
    """Cuts plain text by the policy and tokenizer of the Markdown chunker."""

    markdown: MarkdownChunker = field(default_factory=MarkdownChunker)

    @property
    def parser(self) -> tuple[str, str]:
        return TEXT.parser

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return self.markdown.canonicalizer

    def chunks(
        self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record, tell: Tell = untold
    ) -> list[Record]:
        """The source's chunks, none where it has no text. Raises SourceFailed where it is not UTF-8."""
        tell_removed(data, tell)
        document = document_of(decode(data), source.uri)
        return self.markdown.cut(document, source, TEXT, created_at=created_at, producer=producer, tell=tell)


def document_of(text: str, uri: str) -> Document:
    """Under the headings of the markup that a file of this name has."""
    lines = _lines(readable(text) if _CONTROL.search(text) else text)
    headings = list(find_headings(lines, uri))
    title = _title(lines, headings)
    return _document(lines, headings, {"title": title} if title else {})


def paragraphs(text: str, metadata: dict[str, str] | None = None) -> Document:
    """A text whose only structure is its empty lines."""
    return _document(_lines(text), (), metadata or {})


def _lines(text: str) -> list[str]:
    return [collapse_line(line) for line in clean(text).split("\n")]


def _title(lines: Sequence[str], headings: Sequence[Heading]) -> str:
    """The one that a header or Org's way of saying it gives, else the heading that it begins with, but not the first of
    several versions."""
    if titled := _title_of_header(lines):
        return carried(titled)
    begins = _text_begins(lines)
    for line in lines[:begins]:
        if said := _ORG_TITLE.match(line):
            return carried(said[1])
    if not headings or headings[0].first > begins:
        return ""
    first = headings[0]
    is_alone = all(heading.level > first.level for heading in headings[1:])
    return first.words if is_alone or not names_a_version(first.words) else ""


def _title_of_header(lines: Sequence[str]) -> str:
    """Of at least two fields, one of which says it, above everything else; a field goes on where lines are set in."""
    fields: list[tuple[str, str]] = []
    for line in dropwhile(lambda line: not line.strip(), lines):
        if not line.strip():
            break
        if fields and line[0].isspace():
            name, value = fields.pop()
            fields.append((name, f"{value} {line.strip()}".lstrip()))
        elif said := _FIELD.fullmatch(line.rstrip()):
            fields.append((said[1].lower(), said[2] or ""))
        else:
            return ""
    if len(fields) < 2:
        return ""
    return next((value for wanted in _TITLES for name, value in fields if name == wanted and value), "")


def _text_begins(lines: Sequence[str]) -> int:
    """Below comments, targets, attributes and what is set in below one."""
    has_mark = False
    for number, line in enumerate(lines):
        if line.strip() and not (has_mark and line[0].isspace()):
            has_mark = _NO_TEXT.match(line) is not None
            if not has_mark:
                return number
    return len(lines)


def _document(lines: Sequence[str], headings: Sequence[Heading], metadata: dict[str, str]) -> Document:
    """Of a heading its text remains, without its marks."""
    shown: list[str] = []
    opening: dict[int, Heading] = {}
    end = 0
    for heading in headings:
        shown += lines[end : heading.first]
        opening[len(shown)] = heading
        shown.append(heading.text)
        end = heading.end
    shown += lines[end:]
    text = "\n".join(shown)
    offsets = [*accumulate((len(line) + 1 for line in shown), initial=0)]
    blocks: list[Block] = []
    sections: list[tuple[str, ...]] = [()]
    stack: list[Heading] = []
    for first, last in _runs(shown, opening):
        if first in opening:
            stack = [above for above in stack if above.level < opening[first].level] + [opening[first]]
            sections.append(tuple(carried(heading.words) for heading in stack))
        place = offsets[first], min(offsets[last], len(text)), len(sections) - 1
        blocks.append(Block(Kind.PROSE, *place, is_heading=first in opening))
    return Document(text, tuple(blocks), tuple(sections), (), metadata)


def _runs(lines: Sequence[str], alone: Container[int]) -> Iterator[tuple[int, int]]:
    """Where runs of lines that are not empty begin and end; some lines are `alone`."""
    begin: int | None = None
    for number, line in enumerate(lines):
        if begin is not None and (number in alone or begin in alone or not line.strip()):
            yield begin, number
            begin = None
        if begin is None and line.strip():
            begin = number
    if begin is not None:
        yield begin, len(lines)
