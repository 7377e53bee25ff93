"""What can be read, and what reads it: one table. Readers are made when a file needs them, for some are heavy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from chunksink.chunkbus.chunk import Record
from chunksink.producers.markdown.records import SourceVersion
from chunksink.producers.produced import RecordReader, Tell, untold

AUTO = "auto"
ROWS = "rows"


class Chunker(Protocol):
    """Cuts one source. Its parser and canonicaliser say what it does: while they are the same, so is its work."""

    @property
    def parser(self) -> tuple[str, str]:
        """Name and version."""

    @property
    def canonicalizer(self) -> tuple[str, str]:
        """Name and version, with every policy and option that moves a boundary."""

    def chunks(
        self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record, tell: Tell = untold
    ) -> list[Record]:
        """The source's chunks in order. Raises SourceFailed; tells what is odd of it."""


@dataclass(frozen=True)
class Kind:
    """One kind of files. A `chunker` makes one family of a file, `records` any number.

    Exactly one of the two is given. `may_grow`: what is appended to a file while it is read does no harm.
    `folders`: a folder of JSON files is one source, each of them a record or an array of some. `if_asked`: suffixes
    that are of this kind only where it is asked for; the empty one is of files without any.
    """

    name: str
    suffixes: tuple[str, ...]
    chunker: Callable[[], Chunker] | None = None
    records: Callable[[], RecordReader] | None = None
    may_grow: bool = False
    folders: bool = False
    if_asked: tuple[str, ...] = ()

    @property
    def source_type(self) -> str:
        """What its chunks say of their source; records may say otherwise."""
        return {"markdown": "md", "text": "txt"}.get(self.name, self.name)

    def make(self) -> Chunker | RecordReader:
        """Raises SourceFailed where what it needs is not installed."""
        make = self.chunker or self.records
        assert make is not None
        return make()


def _markdown() -> Chunker:
    from chunksink.producers.markdown import MarkdownChunker

    return MarkdownChunker()


def _text() -> Chunker:
    from chunksink.producers.text import TextChunker

    return TextChunker()


def _html() -> Chunker:
    from chunksink.producers.html import HtmlChunker

    return HtmlChunker()


def _pdf() -> Chunker:
    from chunksink.producers.pdf import PdfChunker

    return PdfChunker()


def _docx() -> Chunker:
    from chunksink.producers.docx import DocxChunker

    return DocxChunker()


def _parsed() -> RecordReader:
    from chunksink.producers.parsed import ParsedReader

    return ParsedReader()


def _recorder() -> RecordReader:
    from chunksink.producers.recorder import RecorderReader

    return RecorderReader()


def _ir() -> RecordReader:
    from chunksink.producers.ir import IrReader

    return IrReader()


def _rows() -> RecordReader:
    from chunksink.producers.rows.reader import RowReader

    return RowReader()


def _chunks() -> RecordReader:
    from chunksink.producers.bridges import BridgeReader

    return BridgeReader()


_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd")
_JSON = (".jsonl", ".ndjson", ".json")
_TEXTS = (".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org")
# Markup whose headings nobody knows here, and what programs write for people.
_TEXTS_IF_ASKED = (".textile", ".wiki", ".tex", ".log", ".srt", ".vtt", "")

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("markdown", _MARKDOWN, chunker=_markdown),
        Kind("text", _TEXTS, chunker=_text, if_asked=_TEXTS_IF_ASKED),
        Kind("html", (".html", ".htm", ".xhtml"), chunker=_html),
        Kind("pdf", (".pdf",), chunker=_pdf),
        Kind("docx", (".docx",), chunker=_docx),
        Kind("parsed", _JSON, records=_parsed, folders=True),
        Kind("recorder", (".jsonl", ".ndjson", ".cast"), records=_recorder, may_grow=True),
        Kind("ir", _JSON, records=_ir, folders=True),
        Kind("chunks", _JSON, records=_chunks, folders=True),
        Kind(ROWS, _JSON, records=_rows, folders=True, if_asked=(".csv", ".tsv")),
    )
}


def suffixes_of(name: str, kinds: Mapping[str, Kind] = KINDS) -> tuple[str, ...]:
    """Which files of a folder are read as this kind, or as any."""
    if name != AUTO:
        return kinds[name].suffixes + kinds[name].if_asked
    return tuple(dict.fromkeys(suffix for kind in kinds.values() for suffix in kind.suffixes))


def kinds_for(name: str, kinds: Mapping[str, Kind] = KINDS) -> list[Kind]:
    """The kinds whose suffix the file has."""
    return [kind for kind in kinds.values() if name.lower().endswith(kind.suffixes)]
