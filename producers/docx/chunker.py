"""DOCX: its styles become HTML (headings, lists, tables), and that becomes Markdown. Images leave their description."""

import re
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from html import escape
from io import BytesIO

from lxml import etree

from chunksink.chunkbus.chunk import Record
from chunksink.producers.docx import imported, numbers
from chunksink.producers.docx.body import readable
from chunksink.producers.docx.unread import has_unread_parts
from chunksink.producers.docx.xml import read_xml
from chunksink.producers.errors import CHUNKING_FAILED, PARTS_LEFT_OUT, SourceFailed
from chunksink.producers.html import document_of, html_version
from chunksink.producers.markdown.chunker import MarkdownChunker
from chunksink.producers.markdown.records import Form, SourceVersion
from chunksink.producers.pdf import require, unreadable
from chunksink.producers.produced import Tell, untold

_MIME_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
# Raise it with any change in this package that the chunks show.
_RULES_VERSION = "4"
# By its name, which is the same in every language, else by its id. Not a heading: nothing would stand under it.
_STYLES = "p[style-name='Title'] => p.title:fresh\np.Title => p.title:fresh"
_TITLE = re.compile(r'<p class="title">(.+?)</p>')
_TAG = re.compile(r"<[^<>]*>")
_LINE_BREAK = re.compile(r"<br\s*/?>")
_MOST_IMPORTS = 8  # files in one another
_PROPERTIES = "docProps/core.xml"
_MOST_PROPERTIES = 1 << 20
_NAMES = "{http://purl.org/dc/elements/1.1/}"
_IGNORED = re.compile(r"An unrecognised element was ignored: (.+)")


@dataclass(frozen=True)
class DocxChunker:
    """Cuts DOCX by the policy and tokenizer of the Markdown chunker."""

    markdown: MarkdownChunker = field(default_factory=MarkdownChunker)

    def __post_init__(self) -> None:
        require("mammoth", "docx", "DOCX")

    @property
    def parser(self) -> tuple[str, str]:
        from importlib.metadata import version

        return ("mammoth", f"{version('mammoth')}+docx-{_RULES_VERSION}+{html_version()}")

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return self.markdown.canonicalizer

    def chunks(
        self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record, tell: Tell = untold
    ) -> list[Record]:
        """The document's chunks, none where it has no text. Raises SourceFailed."""
        form = Form(self.parser, "docx", _MIME_TYPE)
        unread: set[str] = set()
        body = _html(data, unread)
        title, author = _properties(data)
        title = escape(title) or _title_in(body)
        head = f'<title>{title}</title><meta name="author" content="{escape(author)}">'
        page = document_of(f"<html><head>{head}</head><body>{body}</body></html>")
        for code in unread:
            tell(code)
        document = replace(page, anchors={})  # no link into the file leads to its bookmarks
        return self.markdown.cut(document, source, form, created_at=created_at, producer=producer, tell=tell)


def _html(data: bytes, unread: set[str], depth: int = 1) -> str:
    """`unread` is given the codes of what is left out of it, and of the files that it brings in."""
    try:
        return _converted(data, unread, depth)
    except SourceFailed:
        raise
    except Exception as error:
        raise unreadable("DOCX", error) from error


def _converted(data: bytes, unread: set[str], depth: int) -> str:
    import mammoth

    whole = readable(data)
    if whole.imported and depth > _MOST_IMPORTS:
        raise SourceFailed(CHUNKING_FAILED, f"cannot be read whole: over {_MOST_IMPORTS} files bring in one another")
    if has_unread_parts(data):
        unread.add(PARTS_LEFT_OUT)
    described = mammoth.images.img_element(lambda _image: {"src": "data:,"})  # of which the text alone is taken
    result = mammoth.convert_to_html(BytesIO(whole.data), convert_image=described, style_map=_STYLES)
    found = (_IGNORED.fullmatch(message.message) for message in result.messages)
    lost = sorted({name[1] for name in found if name} & whole.holders)
    if lost:
        raise SourceFailed(CHUNKING_FAILED, f"cannot be read whole: {', '.join(lost)} holds text and is not known")
    return imported.put_back(
        numbers.put_back(result.value), whole.imported, lambda data: _html(data, unread, depth + 1)
    )


def _title_in(body: str) -> str:
    """Its paragraph of the style Title; without it the first heading will do."""
    found = _TITLE.search(body.partition("<h1")[0])
    return _TAG.sub("", _LINE_BREAK.sub(" ", found[1])) if found else ""


def _properties(data: bytes) -> tuple[str, str]:
    """Title and author, where the file has properties: files live without them, and some with broken ones."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive, archive.open(_PROPERTIES) as file:
            said = read_xml(file.read(_MOST_PROPERTIES))
    except (KeyError, OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, etree.LxmlError):
        return "", ""
    title, author = ((said.findtext(f"{_NAMES}{name}") or "").strip() for name in ("title", "creator"))
    return title, author
