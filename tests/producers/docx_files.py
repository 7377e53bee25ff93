"""Small DOCX files, and what is read of them."""

import zipfile
from io import BytesIO

from chunksink.chunkbus.chunk import Record
from chunksink.producers.docx import DocxChunker
from chunksink.producers.markdown import SourceVersion
from tests.producers.support import CREATED_AT, PRODUCER

_NAMES = (
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)


def docx(body: str, parts: dict[str, str] | None = None) -> bytes:
    word = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        part = f'<Override PartName="/word/document.xml" ContentType="{main}"/>'
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{types}">{part}</Types>')
        link = f'<Relationship Id="r1" Type="{office}" Target="word/document.xml"/>'
        archive.writestr("_rels/.rels", f'<Relationships xmlns="{relations}">{link}</Relationships>')
        archive.writestr("word/document.xml", f"<w:document {word} {_NAMES}><w:body>{body}</w:body></w:document>")
        for name, content in (parts or {}).items():
            archive.writestr(name, content)
    return out.getvalue()


def read(data: bytes) -> list[Record]:
    return DocxChunker().chunks(data, SourceVersion.of("a", data), created_at=CREATED_AT, producer=PRODUCER)


def told(data: bytes) -> list[str]:
    """The codes that are told of a file that begins with `Text.`"""
    codes: list[str] = []
    version = SourceVersion.of("a", data)
    records = DocxChunker().chunks(data, version, created_at=CREATED_AT, producer=PRODUCER, tell=codes.append)
    assert records[0]["text"].startswith("Text.")
    return codes


def chunks(body: str, parts: dict[str, str] | None = None) -> list[Record]:
    return read(docx(body, parts))


def text(body: str, parts: dict[str, str] | None = None) -> str:
    return "\n\n".join(record["text"] for record in chunks(body, parts))


def paragraph(text: str, style: str = "Normal") -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'


def relation(kind: str, target: str, more: str = "") -> dict[str, str]:
    names = "http://schemas.openxmlformats.org/package/2006/relationships"
    of = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    link = f'<Relationship Id="r9" Type="{of}/{kind}" Target="{target}" {more}/>'
    return {"word/_rels/document.xml.rels": f'<Relationships xmlns="{names}">{link}</Relationships>'}
