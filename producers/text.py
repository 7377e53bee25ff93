"""Plain text: paragraphs parted by empty lines, and nothing else.

It does not go through Markdown: the marks that would keep a hash or a star from meaning something there would stand
in what people search and read. Sizes, sentences, overlap and ids are the chunking specification's all the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chunkbus.chunk import Record
from producers.markdown.chunker import MarkdownChunker
from producers.markdown.document import Block, Document, Kind
from producers.markdown.normalise import clean, collapse_line, decode
from producers.markdown.records import Form, SourceVersion

TEXT = Form(("plain-text", "1"), "txt", "text/plain")


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

    def chunks(self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record) -> list[Record]:
        """The source's chunks, none where it has no text. Raises SourceFailed where it is not UTF-8."""
        document = paragraphs(decode(data))
        return self.markdown.cut(document, source, TEXT, created_at=created_at, producer=producer)


def paragraphs(text: str, metadata: dict[str, str] | None = None) -> Document:
    """A text whose only structure is its empty lines."""
    lines = [collapse_line(line) for line in clean(text).split("\n")]
    blocks = tuple(Block(Kind.PROSE, start, end, 0) for start, end in _runs(lines))
    return Document("\n".join(lines), blocks, ((),), (), metadata or {})


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where runs of lines that are not empty begin and end, as offsets into the text; line breaks go with the line."""
    begin: int | None = None
    offset = 0
    for line in lines:
        if line.strip():
            begin = offset if begin is None else begin
        elif begin is not None:
            yield begin, offset
            begin = None
        offset += len(line) + 1
    if begin is not None:
        yield begin, offset - 1
