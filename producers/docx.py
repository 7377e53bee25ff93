"""DOCX: its styles become HTML (headings, lists, tables), and that becomes Markdown. Images are left out."""

from dataclasses import dataclass, field
from io import BytesIO

from chunkbus.chunk import Record
from producers.html import document_of, html_version
from producers.markdown.chunker import MarkdownChunker
from producers.markdown.records import Form, SourceVersion
from producers.pdf import require, unreadable

_MIME_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@dataclass(frozen=True)
class DocxChunker:
    """Cuts DOCX by the policy and tokenizer of the Markdown chunker."""

    markdown: MarkdownChunker = field(default_factory=MarkdownChunker)

    def __post_init__(self) -> None:
        require("mammoth", "docx", "DOCX")

    @property
    def parser(self) -> tuple[str, str]:
        from importlib.metadata import version

        return ("mammoth", f"{version('mammoth')}+{html_version()}")

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return self.markdown.canonicalizer

    def chunks(self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record) -> list[Record]:
        """The document's chunks, none where it has no text. Raises SourceFailed."""
        form = Form(self.parser, "docx", _MIME_TYPE)
        document = document_of(f"<html><body>{_html(data)}</body></html>")
        return self.markdown.cut(document, source, form, created_at=created_at, producer=producer)


def _html(data: bytes) -> str:
    import mammoth  # type: ignore[import-untyped]

    try:
        result = mammoth.convert_to_html(BytesIO(data), convert_image=lambda _image: [])
    except Exception as error:
        raise unreadable("DOCX", error) from error
    html: str = result.value
    return html
