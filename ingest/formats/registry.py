"""What a format is, and which there are.

A format reads one kind of file. Importing its module must be cheap: libraries are imported inside `read`. Formats of
other packages are found by the entry point group `chunksink.formats`, whose names are those of `--as`
(docs/writing-a-format.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import ClassVar

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.model import Item, Source

GROUP = "chunksink.formats"


class Match(IntEnum):
    """How sure a format is that a JSON record is one of its own; the surest format reads the file."""

    NO = 0
    POSSIBLE = 1
    """It has the fields, which many other records have too."""
    LIKELY = 2
    """It has fields that hardly any other record has."""
    DECLARED = 3
    """It names the schema."""


class Format(ABC):
    """Reads one kind of file into families of chunks. Instances are small and can be pickled."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    """Files of a folder that are read as this format, or are looked into where several formats share the suffix."""
    suffixes_if_asked: ClassVar[tuple[str, ...]] = ()
    """Also read in a folder where the format is named with `--as`; "" stands for files without a suffix."""
    mime_type: ClassVar[str] = "text/plain"
    """`metadata.mime_type` of the chunks of a file that is one document."""
    may_grow: ClassVar[bool] = False
    """Appending to a file while it is read does no harm: only the first `Source.size` bytes are read."""

    @property
    def source_type(self) -> str:
        """`source.source_type` of its chunks, unless a record names its own."""
        return self.name

    @property
    @abstractmethod
    def parser(self) -> tuple[str, str]:
        """Name and version of what parses the file."""

    @property
    @abstractmethod
    def canonicalizer(self) -> tuple[str, str]:
        """Name and version of how chunks are made, with every option that moves a boundary or a field.

        A file is read again where it differs from what made the file's chunks.
        """

    @abstractmethod
    def read(self, source: Source) -> Iterator[Item]:
        """The families of a file, in flat memory for files of many records. Raises SourceFailed."""

    def match(self, record: Record, *, is_alone: bool = False) -> Match:
        """Whether a JSON record is of this format; `is_alone`: it is the only value in its file."""
        return Match.NO


_BUILT_IN = {
    "markdown": "chunksink.ingest.formats.markdown:MarkdownFormat",
    "text": "chunksink.ingest.formats.text:TextFormat",
    "html": "chunksink.ingest.formats.html:HtmlFormat",
    "pdf": "chunksink.ingest.formats.pdf:PdfFormat",
    "docx": "chunksink.ingest.formats.office:DocxFormat",
    "pptx": "chunksink.ingest.formats.office:PptxFormat",
    "xlsx": "chunksink.ingest.formats.office:XlsxFormat",
    "epub": "chunksink.ingest.formats.office:EpubFormat",
    "chunks": "chunksink.ingest.formats.chunks:ChunksFormat",
    "ir": "chunksink.ingest.formats.ir:IrFormat",
    "parsed": "chunksink.ingest.formats.parsed:ParsedFormat",
    "recorder": "chunksink.ingest.formats.recorder:RecorderFormat",
    "rows": "chunksink.ingest.formats.rows:RowsFormat",
}
"""In the order in which formats are asked; of equally sure ones the first reads the file."""

NAMES = tuple(_BUILT_IN)


@cache
def all_formats() -> Mapping[str, Format]:
    """Every format by name: the built-in ones, then those of other packages."""
    formats: dict[str, Format] = {}
    for name, place in _BUILT_IN.items():
        module, _, attribute = place.partition(":")
        formats[name] = getattr(import_module(module), attribute)()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        formats.setdefault(entry.name, entry.load()())
    return formats
