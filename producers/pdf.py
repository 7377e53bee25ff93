"""PDF: the text of its pages, each chunk with the pages that it comes from. A scan without text is empty."""

import logging
from bisect import bisect_right
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import BytesIO
from itertools import accumulate

from chunkbus.chunk import Record
from producers.errors import CHUNKING_FAILED, CONVERTER_MISSING, SourceFailed
from producers.markdown.chunker import MarkdownChunker
from producers.markdown.records import Form, SourceVersion
from producers.text import paragraphs

_PAGE_BREAK = "\n\n"
_HYPHENATED = "\u00ad\n"
"""A word that goes on in the next line."""


@dataclass(frozen=True)
class PdfChunker:
    """Cuts PDF by the policy and tokenizer of the Markdown chunker."""

    markdown: MarkdownChunker = field(default_factory=MarkdownChunker)

    def __post_init__(self) -> None:
        require("pypdf", "pdf", "PDF")

    @property
    def parser(self) -> tuple[str, str]:
        from pypdf import __version__

        return ("pypdf", __version__)

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return self.markdown.canonicalizer

    def chunks(self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record) -> list[Record]:
        """The document's chunks, none where it has no text. Raises SourceFailed."""
        pages, metadata = _read(data)
        texts = [paragraphs(page.replace(_HYPHENATED, "")).text.strip() for page in pages]
        starts = list(accumulate((len(text) + len(_PAGE_BREAK) for text in texts), initial=0))
        document = paragraphs(_PAGE_BREAK.join(texts), metadata)
        form = Form(self.parser, "pdf", "application/pdf")
        records = self.markdown.cut(document, source, form, created_at=created_at, producer=producer)
        return [_with_pages(record, starts) for record in records]


def require(module: str, extra: str, what: str) -> None:
    """Raises SourceFailed where what reads this kind of source is not installed."""
    if find_spec(module) is None:
        raise SourceFailed(CONVERTER_MISSING, f"{what} needs {module}: pip install 'chunksink[{extra}]'")


def unreadable(what: str, error: Exception) -> SourceFailed:
    """Parsers meet broken files with any kind of error; whatever it is, this file cannot be read, and others can."""
    return SourceFailed(CHUNKING_FAILED, f"cannot be read as {what}: {str(error) or type(error).__name__}")


def _read(data: bytes) -> tuple[list[str], dict[str, str]]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # else Python prints what it says
    try:
        reader = PdfReader(BytesIO(data))
        pages = [page.extract_text() for page in reader.pages]
        said = reader.metadata
        about = {"title": said.title, "author": said.author} if said else {}
    except DependencyError as error:
        remedy = "pip install 'chunksink[pdf]' brings what encrypted files need"
        raise SourceFailed(CONVERTER_MISSING, f"{error}; {remedy}") from error
    except FileNotDecryptedError as error:
        remedy = "write a copy without one (qpdf --decrypt --password=PASSWORD IN.pdf OUT.pdf) and ingest that"
        raise SourceFailed(CHUNKING_FAILED, f"the PDF is encrypted and asks for a password; {remedy}") from error
    except Exception as error:
        raise unreadable("PDF", error) from error
    return pages, {name: str(value) for name, value in about.items() if value}


def _with_pages(record: Record, starts: list[int]) -> Record:
    from chunkbus.canonical import chunk_object_hash

    place = record["span"]["char_range"]
    first, last = (bisect_right(starts, at) for at in (place["char_start"], place["char_end"] - 1))
    record["span"]["pages"] = {"page_start": first, "page_end": last}
    record["hashes"]["chunk_object_hash"] = chunk_object_hash(record)
    return record
