"""Text, HTML, PDF and DOCX become the same kind of chunks as Markdown."""

import struct
import zlib
from importlib import util
from io import BytesIO
from typing import Any

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import CHUNKING_FAILED, CONVERTER_MISSING, PARTS_LEFT_OUT, SourceFailed
from chunksink.producers.html import HtmlChunker
from chunksink.producers.kinds import Chunker
from chunksink.producers.markdown import SourceVersion
from chunksink.producers.pdf import PdfChunker
from chunksink.producers.text import TextChunker
from tests.producers.bench import LATER, Bench
from tests.producers.docx_files import docx
from tests.producers.support import CREATED_AT, PRODUCER, without_space

PAGE = """<!DOCTYPE html><html lang="en"><head><title>The  page</title><style>p {}</style></head><body>
<nav>Menu</nav><h1>Title</h1><p>Some <b>bold</b> text in snake_case.</p><h2>List</h2><ul><li>one<li>two</ul>
<table><tr><th>A<th>B<tr><td>1<td>2</table><pre><code class="language-python">x = 1
  y</code></pre><p>See <a href="other.html">there</a>.</p><script>alert(1)</script></body></html>"""


def chunks(chunker: Chunker, data: bytes) -> list[Record]:
    return chunker.chunks(data, SourceVersion.of("a", data), created_at=CREATED_AT, producer=PRODUCER)


def told(chunker: Chunker, data: bytes) -> list[str]:
    codes: list[str] = []
    version = SourceVersion.of("a", data)
    chunker.chunks(data, version, created_at=CREATED_AT, producer=PRODUCER, tell=codes.append)
    return codes


def texts(chunker: Chunker, data: bytes) -> list[str]:
    return [record["text"] for record in chunks(chunker, data)]


def test_plain_text_keeps_its_marks_and_parts_at_empty_lines() -> None:
    text = "# no heading\n\n* no   list_item\n1. two\n\n\n" + "A sentence stands here. " * 300
    records = chunks(TextChunker(), text.encode())
    assert records[0]["text"].startswith("# no heading\n\n* no list_item\n1. two\n\n\nA sentence")
    assert all(record["metadata"]["headings_path"] == [] for record in records)
    assert all(record["metadata"]["token_count"] <= 520 for record in records)
    own = "".join(record["text"][record["metadata"]["overlap_chars"] :] for record in records)
    assert without_space(own) == without_space(text)
    assert records[0]["source"]["source_type"] == "txt"
    assert records[0]["metadata"]["title"] == "a", "as its file"
    assert texts(TextChunker(), b" \n \n") == []
    with pytest.raises(SourceFailed, match="not UTF-8"):
        chunks(TextChunker(), b"\xff")


def test_plain_text_of_a_terminal_is_what_a_person_reads() -> None:
    colours = b"\x1b[1;31mBold\x1b[0m quagga\n\x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b[2Kdone\n"
    assert texts(TextChunker(), colours) == ["Bold quagga\nlink done"]
    assert texts(TextChunker(), b"N\bNA\bAM\bME\bE\n   _\bl_\bs - list\n") == ["NAME\n   ls - list"]


def test_html_keeps_its_structure_and_loses_what_nobody_reads() -> None:
    records = chunks(HtmlChunker(), PAGE.encode())
    paths = [record["metadata"]["chunk_path"] for record in records]
    assert paths == ["/Title", "/Title/List/ul[1]", "/Title/List/table[1]", "/Title/List/code[1]", "/Title/List"]
    text = "\n".join(record["text"] for record in records)
    assert "Some **bold** text in snake_case." in text
    assert "```python\nx = 1\n  y\n```" in text
    assert "Menu" not in text
    assert "alert" not in text
    assert records[0]["metadata"]["title"] == "The page"
    assert records[0]["metadata"]["language"] == "en"
    assert records[-1]["metadata"]["links"] == [
        {"url": "other.html", "link_type": "document", "target_uri": "other.html"}
    ]
    assert records[0]["source"]["source_type"] == "html"
    assert records[0]["provenance"]["parser"]["parser_name"] == "html-to-markdown"


def test_html_that_cannot_be_read_whole_is_refused() -> None:
    page = "<p>before</p>" + "<div>" * 5000 + "deep" + "</div>" * 5000
    with pytest.raises(SourceFailed, match="cannot be read whole"):
        chunks(HtmlChunker(), page.encode())
    assert texts(HtmlChunker(), b"") == []


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page, as small as it can be."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        resources = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} /Contents {5 + 2 * number} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    start, size = len(out), len(objects) + 1
    head = f"xref\n0 {size}\n0000000000 65535 f \n"
    tail = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF"
    return out + (head + table + tail).encode()


def test_pdf_gives_the_text_of_its_pages_with_their_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pypdf")
    records = chunks(PdfChunker(), pdf("The first page.", "The second page."))
    assert [record["text"] for record in records] == ["The first page.\n\nThe second page."]
    assert records[0]["span"]["pages"] == {"page_start": 1, "page_end": 2}
    assert records[0]["metadata"]["title"] == "a", "as its file"
    many = chunks(PdfChunker(), pdf(*(f"Page {number}. " + "Words go on and on. " * 30 for number in range(1, 9))))
    pages = [tuple(record["span"]["pages"].values()) for record in many]
    assert pages[0][0] == 1
    assert pages[-1][1] == 8
    assert pages == sorted(pages)
    for bad in (b"", b"no pdf", pdf("x")[:60]):
        with pytest.raises(SourceFailed, match="cannot be read as PDF"):
            chunks(PdfChunker(), bad)
    assert capfd.readouterr() == ("", "")


def scan() -> bytes:
    """A page that shows a picture and nothing else."""
    from pypdf import PdfWriter
    from pypdf.generic import DictionaryObject, NameObject, NumberObject, StreamObject

    writer = PdfWriter()
    page = writer.add_blank_page(200, 200)
    picture = StreamObject()
    picture.set_data(b"\0" * 4)
    picture[NameObject("/Subtype")] = NameObject("/Image")
    picture[NameObject("/Width")] = picture[NameObject("/Height")] = NumberObject(2)
    drawn = DictionaryObject({NameObject("/Im0"): writer._add_object(picture)})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/XObject"): drawn})
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_scan_is_told_as_one_and_a_file_of_no_bytes_is_empty_whatever_its_form(bench: Bench) -> None:
    pytest.importorskip("pypdf")
    bench.write("scan.pdf", scan())
    bench.write("blank.pdf", pdf(""))
    for name in ("none.pdf", "none.docx", "none.html"):
        bench.write(name, "")
    for _ in range(2):  # the second finds it in the ledger
        report = bench.ingest(kind="auto")
        assert (report.failures, report.empty, report.left_out) == ((), 5, {"SOURCE_EMPTY": 4, "SCAN_WITHOUT_TEXT": 1})
    assert [row["error_type"] for row in bench.attempts(source="scan.pdf")] == ["SCAN_WITHOUT_TEXT"]


def test_a_word_that_a_soft_hyphen_parts_is_one() -> None:
    pytest.importorskip("pypdf")
    assert texts(PdfChunker(), pdf(r"The data\255) Tj 0 -14 Td (base of all.")) == ["The database of all."]
    assert texts(HtmlChunker(), b"<p>The data&shy;base, word&#x2060;joined.</p>") == ["The database, wordjoined."]


def test_what_is_filled_into_a_pdf_follows_the_text_of_its_page() -> None:
    generic = pytest.importorskip("pypdf.generic")
    from pypdf import PdfReader, PdfWriter

    def note(kind: str, **said: Any) -> Any:
        values = {generic.NameObject(f"/{name}"): value for name, value in said.items()}
        return generic.DictionaryObject({generic.NameObject("/Subtype"): generic.NameObject(kind), **values})

    def field(kind: str, name: str, **said: Any) -> Any:
        return note("/Widget", FT=generic.NameObject(kind), T=generic.TextStringObject(name), **said)

    words, sign, number, many = (
        generic.TextStringObject,
        generic.NameObject,
        generic.NumberObject,
        generic.ArrayObject,
    )
    group = field("/Btn", "Answer", Ff=number(1 << 15), V=sign("/yes"))
    notes = [
        field("/Tx", "n1", TU=words("Full name"), V=words("Maria Mustermann")),
        field("/Tx", "Nothing"),
        field("/Tx", "Password", V=words("secret"), Ff=number(1 << 13)),
        field("/Tx", "Hidden", V=words("unseen"), F=number(2)),
        field("/Ch", "Country", V=words("DE"), Opt=many([many([words("DE"), words("Germany")]), words("AT")])),
        field("/Ch", "Colours", V=many([words("red"), words("blue")])),
        field("/Btn", "Consent", AS=sign("/Yes")),
        field("/Btn", "News", AS=sign("/Off"), V=sign("/Yes")),
        field("/Btn", "Old", V=sign("/Yes")),
        note("/Widget", Parent=group, AS=sign("/yes")),
        note("/Widget", Parent=group, AS=sign("/Off")),
        field("/Btn", "Send", Ff=number(1 << 16)),
        note("/FreeText", Contents=words("Seen by me")),
        note("/Text", Contents=words("a comment")),
        generic.NullObject(),
    ]
    writer = PdfWriter(PdfReader(BytesIO(pdf("Please fill in.", "Page two."))))
    writer.pages[0][sign("/Annots")] = writer._add_object(many(writer._add_object(entry) for entry in notes))
    out = BytesIO()
    writer.write(out)
    said = "Full name: Maria Mustermann\nCountry: Germany\nColours: red, blue\nConsent: ☒\nNews: ☐\nOld: ☒\nAnswer: yes"
    assert texts(PdfChunker(), out.getvalue()) == [f"Please fill in.\n\n{said}\nSeen by me\n\nPage two."]
    assert told(PdfChunker(), out.getvalue()) == [PARTS_LEFT_OUT], "of the comment"
    writer.pages[0][sign("/Annots")] = writer._add_object(many(map(writer._add_object, notes[:-2])))
    out = BytesIO()
    writer.write(out)
    assert told(PdfChunker(), out.getvalue()) == []


def encrypted(data: bytes, password: str = "") -> bytes:
    """With AES; an empty password have those files that everybody may read and nobody may change."""
    from pypdf import PdfReader, PdfWriter

    out = BytesIO()
    writer = PdfWriter(PdfReader(BytesIO(data)))
    writer.encrypt(password, "owner", algorithm="AES-256")
    writer.write(out)
    return out.getvalue()


def test_an_encrypted_pdf_without_a_password_is_read_or_names_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pypdf")
    fallback = pytest.importorskip("pypdf._crypt_providers._fallback")
    secret = encrypted(pdf("Not so secret."))
    assert texts(PdfChunker(), secret) == ["Not so secret."]
    for name in ("aes_cbc_decrypt", "aes_ecb_decrypt", "CryptAES"):
        monkeypatch.setattr(f"pypdf._encryption.{name}", getattr(fallback, name))
    with pytest.raises(SourceFailed, match=r"cryptography.* is required .*pip install 'chunksink\[pdf\]'") as refused:
        chunks(PdfChunker(), secret)
    assert refused.value.code == CONVERTER_MISSING


def test_a_pdf_that_asks_for_a_password_says_so_and_what_to_do() -> None:
    pytest.importorskip("pypdf")
    with pytest.raises(SourceFailed, match="asks for a password; write a copy without one") as refused:
        chunks(PdfChunker(), encrypted(pdf("Secret."), "user"))
    assert refused.value.code == CHUNKING_FAILED


@pytest.mark.parametrize("error", [NotImplementedError, MemoryError, zlib.error, struct.error])
def test_whatever_a_parser_stumbles_over_ends_one_source_and_not_the_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("pypdf.PdfReader", stumble)
    monkeypatch.setattr("mammoth.convert_to_html", stumble)
    monkeypatch.setattr("html_to_markdown.convert", stumble)
    bench.write("a.pdf", pdf("text"))
    bench.write("b.docx", docx(""))
    bench.write("c.html", "text")
    bench.write("c.md", "# C")
    report = bench.ingest(kind="auto")
    assert [(failure.code, failure.reason) for failure in report.failures] == [
        ("CHUNKING_FAILED", f"cannot be read as {form}: {error.__name__}") for form in ("PDF", "DOCX", "HTML")
    ]
    assert bench.texts("c.md") == ["# C"]


def test_an_extra_that_is_not_installed_is_named_and_the_rest_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", "# A")
    bench.write("b.pdf", pdf("text"))
    real = util.find_spec
    monkeypatch.setattr("chunksink.producers.pdf.find_spec", lambda name: None if name == "pypdf" else real(name))
    report = bench.ingest(kind="auto")
    assert [(failure.source_uri, failure.code) for failure in report.failures] == [("b.pdf", "CONVERTER_MISSING")]
    assert "pip install 'chunksink[pdf]'" in report.failures[0].reason
    assert bench.texts("a.md") == ["# A"]
    assert bench.attempts(source="b.pdf")[0]["error_type"] == "CONVERTER_MISSING"


def test_a_folder_of_all_kinds(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.write("b.html", PAGE)
    bench.write("c.txt", "plain")
    bench.write("d.pdf", pdf("portable"))
    report = bench.ingest(kind="auto", to="by-type")
    bench.assert_valid()
    assert report.failures == ()
    assert bench.root.partition_keys() == ["html", "md", "pdf", "txt"]
    assert not bench.ingest(kind="auto", to="by-type", now=LATER).written


def test_pages_and_lines_of_plain_text_end_where_their_separators_stand() -> None:
    assert texts(TextChunker(), "one\x0ctwo\u2028three".encode()) == ["one\ntwo\nthree"]
