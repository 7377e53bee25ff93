"""Files that a DOCX brings in are its text where they stand."""

import zipfile
from io import BytesIO

import pytest

from chunksink.producers.errors import PARTS_LEFT_OUT, SourceFailed
from tests.producers.docx_files import chunks, docx, paragraph, read, relation, text, told

pytest.importorskip("mammoth")


@pytest.mark.parametrize(
    ("name", "data", "shown"),
    [
        (
            "a.html",
            "<html><head><title>t</title></head><body><h2>One</h2><p>Two &amp; ü</body></html>",
            "## One\n\nTwo & ü",
        ),
        ("a.txt", "one <a>\r\ntwo", "one <a>\n\ntwo"),
        (
            "a.mht",
            "MIME-Version: 1.0\nContent-Type: text/html; charset=iso-8859-1\n"
            "Content-Transfer-Encoding: quoted-printable\n\n<p>=FCber</p>",
            "über",
        ),
    ],
)
def test_a_file_that_is_brought_in_is_text_where_it_stands(name: str, data: str, shown: str) -> None:
    body = paragraph("Before.") + "<w:altChunk r:id='r9'/>" + paragraph("After.")
    for target in (f"/word/{name}", name):
        parts = relation("aFChunk", target) | {f"word/{name}": data}
        assert text(body, parts) == f"Before.\n\n{shown}\n\nAfter."
        for_editors = {part: data.replace("<Relationship ", "<!-- c --><Relationship ") for part, data in parts.items()}
        assert text(body, for_editors) == f"Before.\n\n{shown}\n\nAfter."


def with_import(data: bytes) -> bytes:
    out = BytesIO(docx("<w:altChunk r:id='r9'/>", relation("aFChunk", "a.docx")))
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("word/a.docx", data)
    return out.getvalue()


def test_a_document_may_bring_in_others() -> None:
    document = docx(paragraph("Inside."))
    assert [record["text"] for record in read(with_import(document))] == ["Inside."]
    for _ in range(9):
        document = with_import(document)
    with pytest.raises(SourceFailed, match="over 8 files bring in one another"):
        read(document)


def test_what_a_file_that_is_brought_in_says_beside_its_text_is_told_once() -> None:
    comment = {"word/comments.xml": "<root><t>Wrong!</t></root>"}
    assert told(with_import(docx(paragraph("Text.")))) == []
    assert told(with_import(docx(paragraph("Text."), comment))) == [PARTS_LEFT_OUT]
    both = with_import(with_import(docx(paragraph("Text."), comment)))
    assert told(both) == [PARTS_LEFT_OUT]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({}, "brings in a file that it lacks"),
        (relation("aFChunk", "http://ex.com/a.html", 'TargetMode="External"'), "brings in a file that it lacks"),
        (relation("aFChunk", "a.html"), "brings in word/a.html that it lacks"),
        (
            relation("aFChunk", "a.rtf") | {"word/a.rtf": "{\\rtf1 x}"},
            "word/a.rtf, which is neither HTML, text nor DOCX",
        ),
        (
            relation("aFChunk", "a.mht") | {"word/a.mht": "MIME-Version: 1.0\n\nx"},
            "neither HTML, text nor DOCX; open it",
        ),
    ],
)
def test_a_document_that_brings_in_what_cannot_be_read_is_refused(parts: dict[str, str], reason: str) -> None:
    with pytest.raises(SourceFailed, match=reason):
        chunks("<w:altChunk r:id='r9'/>", parts)
