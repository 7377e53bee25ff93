"""Broken, encrypted and oversized files and missing libraries are failures of their file; nothing is printed."""

from importlib import metadata
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunksink.ingest.codes import CHUNKING_FAILED, CONVERTER_MISSING
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats import document_format
from chunksink.ingest.formats.html import HtmlFormat
from chunksink.ingest.formats.markdown import MarkdownFormat
from chunksink.ingest.formats.office import DocxFormat, EpubFormat, PptxFormat, XlsxFormat
from chunksink.ingest.formats.pdf import PdfFormat
from chunksink.ingest.formats.registry import Format
from tests.conftest import examples
from tests.ingest.converters.files import archive, docx, epub, lines, paragraph, pdf, pptx, shape
from tests.ingest.converters.support import read

for library in ("mammoth", "pypdfium2", "openpyxl"):
    pytest.importorskip(library)
OFFICE = (DocxFormat, PptxFormat, XlsxFormat, EpubFormat)
GOOD: dict[type[Format], bytes] = {
    DocxFormat: docx(paragraph("Text.")),
    PptxFormat: pptx(shape("Text.")),
    EpubFormat: epub({"a.xhtml": "<p>Text.</p>"}),
    PdfFormat: pdf(lines("Text.")),
}


@pytest.mark.parametrize("format_", [*OFFICE, PdfFormat])
@pytest.mark.parametrize(
    "data", [b"no such file", b"PK\x03\x04broken", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", archive({"a": "b"})]
)
def test_broken_or_encrypted_file_fails_and_file_of_no_bytes_is_empty(
    format_: type[Format], data: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SourceFailed) as failed:
        read(format_(), data)
    assert failed.value.code == CHUNKING_FAILED
    assert capfd.readouterr() == ("", "")
    assert read(format_(), b"").codes == ["SOURCE_EMPTY"]


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(list(GOOD)), st.data())
def test_cut_or_damaged_file_is_read_or_fails(format_: type[Format], data: st.DataObject) -> None:
    damaged = bytearray(GOOD[format_])
    for place in data.draw(st.lists(st.integers(0, len(damaged) - 1), max_size=20)):
        damaged[place] ^= data.draw(st.integers(1, 255))
    try:
        read(format_(), bytes(damaged[: data.draw(st.integers(1, len(damaged)))]))
    except SourceFailed as failed:
        assert failed.code == CHUNKING_FAILED


@pytest.mark.parametrize("format_", OFFICE)
def test_archive_that_unpacks_to_too_much_fails_unread(format_: type[Format]) -> None:
    with pytest.raises(SourceFailed, match="unpacks to more than"):
        read(format_(), archive({"word/document.xml": bytes(70 << 20)}))


def test_file_that_is_too_large_or_deep_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceFailed, match="nested too deeply"):
        read(HtmlFormat(), b"<p>before" + b"<div>" * 5000 + b"deep")
    monkeypatch.setattr(document_format, "_MAX_FILE_BYTES", 100)
    with pytest.raises(SourceFailed, match="larger than"):
        read(HtmlFormat(), b"x" * 101)
    with pytest.raises(SourceFailed, match="larger than"):
        read(MarkdownFormat(), b"x" * 101)


@pytest.mark.parametrize(
    ("format_", "data", "text"),
    [
        (HtmlFormat, b"<p>a" + b"<pre-x></pre-x>" * 10_000, "a"),
        (HtmlFormat, b"<p>a" + b" " * 200_000 + b"b", "a b"),
        (HtmlFormat, b"<p>a<a href='#b'>" + b" " * 100_000 + b"b</a>", "a b"),
        (HtmlFormat, b"<p>a" + b"<meta " * 10_000 + b"\xff", "a"),
        (DocxFormat, docx(paragraph("a"), {"word/comments1.xml": "<" * 300_000}), "a"),
    ],
    ids=["tags", "spaces", "link", "charset", "comments"],
)
def test_long_odd_file_is_read_quickly(format_: type[Format], data: bytes, text: str) -> None:
    """In under a second. If the time were quadratic, it would be five seconds or more."""
    begun = process_time()
    assert read(format_(), data).text == text
    assert process_time() - begun < 3


@pytest.mark.parametrize(
    ("format_", "library", "extra"),
    [(PdfFormat, "pypdfium2", "pdf"), (DocxFormat, "mammoth", "docx"), (XlsxFormat, "openpyxl", "office")],
)
def test_missing_library_is_named_with_its_extra(
    format_: type[Format], library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == library:
            raise metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(document_format, "version", version)
    with pytest.raises(SourceFailed):
        read(format_(), b"x")
    with pytest.raises(SourceFailed) as failed:
        _ = format_().parser
    assert failed.value.code == CONVERTER_MISSING
    assert {library, f"`{extra}`"} <= {word.strip(":,") for word in failed.value.reason.split()}
