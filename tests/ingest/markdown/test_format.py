"""The format as a whole: a file in, a family and notices out."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

import pytest

from chunksink.chunkbus.identity import family_key, parent_id
from chunksink.ingest.codes import (
    CHUNKING_FAILED,
    FENCE_UNCLOSED,
    NUL_REMOVED,
    SOURCE_EMPTY,
)
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.markdown import MarkdownFormat
from chunksink.ingest.formats.markdown.structure import parse
from chunksink.ingest.model import Empty, Family, Item, Notice
from tests.ingest.markdown.support import chunks_of, codes_of, items_of, normalise, source_of, texts_of


def read(tmp_path: Path, data: bytes, read_bytes: int | None = None, tenant: str | None = None) -> list[Item]:
    path = tmp_path / "a.md"
    path.write_bytes(data)
    return list(MarkdownFormat().read(source_of(data[:read_bytes], "a.md", tenant, path)))


def test_read_yields_one_family_by_the_declared_versions(tmp_path: Path) -> None:
    (family,) = read(tmp_path, b"# A\n\nText.\n\n# B", tenant="acme")
    assert isinstance(family, Family) and not family.is_partial
    assert list(family.chunks) == chunks_of("# A\n\nText.\n\n# B", uri="a.md", tenant="acme")
    provenance = family.chunks[0]["provenance"]
    markdown = MarkdownFormat()
    assert tuple(provenance["parser"].values()) == markdown.parser
    assert tuple(provenance["canonicalizer"].values()) == markdown.canonicalizer


def test_read_takes_only_the_bytes_of_the_source(tmp_path: Path) -> None:
    family, *_ = read(tmp_path, b"# A\n\nText that was appended.", read_bytes=3)
    assert isinstance(family, Family)
    assert [chunk["text"] for chunk in family.chunks] == ["# A"]


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("data", [b"", b" \n", b"\xef\xbb\xbf", b"![](data:image/png;base64,AAAA)"])
def test_read_without_text_yields_the_key_of_the_empty_family(tmp_path: Path, data: bytes, tenant: str | None) -> None:
    notice, empty = read(tmp_path, data, tenant=tenant)
    assert isinstance(notice, Notice) and (notice.code, notice.is_failure) == (SOURCE_EMPTY, False)
    (chunk,) = chunks_of("Text", uri="a.md", tenant=tenant)
    assert empty == Empty(family_key(parent_id(chunk), tenant))


def test_notices_come_after_the_family_and_are_no_failures() -> None:
    text = "nul\0\n\n```\nx"
    family, *notices = items_of(parse(text), source_of(text.encode()))
    assert isinstance(family, Family)
    found = [(notice.code, notice.is_failure) for notice in notices if isinstance(notice, Notice)]
    assert found == [(FENCE_UNCLOSED, False), (NUL_REMOVED, False)]


UNCLOSED = [
    *("```\nx\n", "```\nx", "# A\n\n~~~ python\nx\n\n# no heading\n", "~~~\n```\nx\n```\n", "````\nx\n```\n", "```"),
    *("> ```\n> x\n\nText.", "- ```\n  x\n\nText.", "1. a\n\n   ```\n   x\n\n   y\n\nText.", "```\nx\n```\n\n```\ny\n"),
]
CLOSED = [
    *("```\nx\n```", "```\n```\n", "~~~\nx\n\n~~~", "> ```\n> x\n> ```", "> ```\n> ```", "- ```\n  x\n  ```\n\nText."),
    *("1. a\n\n   ```\n   x\n\n   ```\n\nText.", "    ```\n    x\n", "`` ` ``", "   ```\n   x\n  ````\n"),
]


@pytest.mark.parametrize(
    ("text", "codes"), [*((text, [FENCE_UNCLOSED]) for text in UNCLOSED), *((text, []) for text in CLOSED)]
)
def test_unclosed_fence_is_reported(text: str, codes: list[str]) -> None:
    assert codes_of(f"Words.\n\n{text}") == codes


# -- from bytes to normalised text: encodings, control characters, separators, white space


BINARY = r"control characters.*iconv.*--exclude"
KINDS = {
    b"\x89PNG\r\n\x1a\n": "PNG image",
    b"\xff\xd8\xff\xe0": "JPEG image",
    b"GIF89a": "GIF image",
    b"PK\x03\x04": "ZIP archive",
    b"\x1f\x8b\x08": "gzip file",
    b"%PDF-1.7\n": "PDF document",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "pre-2007 Office document .*DOCX",
    b"PAR1": r"Parquet file .*df\.to_json",
    b"\x80\x04\x95": "Python pickle .*JSON",
}
SEPARATORS = ["\x0b", "\x0c", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("sign", SEPARATORS)
def test_separator_separates_words_and_not_lines(sign: str) -> None:
    assert chunks_of(f"# One{sign}two\n\nText.")[-1]["metadata"]["headings_path"] == ["One two"]
    assert texts_of(f"Steps:{sign}# none") == ["Steps: # none"]
    assert texts_of(f"| a |\n|---|\n| x{sign}y |{sign}\n| z |") == ["| a |\n|---|\n| x y |\n| z |"]


@pytest.mark.parametrize("sign", SEPARATORS)
def test_separator_in_code_adds_no_line_and_no_indentation(sign: str) -> None:
    assert normalise(f"```\n{sign}def f():\n    a{sign}b\n{sign}\n```") == "```\ndef f():\n    a b\n\n```"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# Top\n\xff\n", r"0xff at offset 6, line 2"),
        ("Müller".encode("windows-1252"), r"byte 0xfc at offset 1, line 1.*iconv -f ENCODING"),
        *(("\ufeff你好".encode(f"utf-16-{order}") + b"\xd8", "not UTF-16") for order in ("le", "be")),
        *((bom + bytes(20), BINARY) for bom in (BOM_UTF16_LE, BOM_UTF16_BE)),
        *(("Привет мир".encode(f"utf-16-{order}"), BINARY) for order in ("le", "be")),
        *((text.encode("utf-16-le"), BINARY) for text in ("ok", "Plain words", "Words. " * 10_000)),
        (b"\x7fELF" + bytes(range(32)) + b"words " * 100, BINARY),
        *((start + bytes(range(256)), f"it is a {kind}") for start, kind in KINDS.items()),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj", "it is a PDF document"),
    ],
)
def test_decode_when_not_utf8_is_refused_with_the_remedy(data: bytes, reason: str) -> None:
    with pytest.raises(SourceFailed, match=reason) as failure:
        chunks_of(data)
    assert failure.value.code == CHUNKING_FAILED


MAIL = b"From: ada@ex.com\r\nReceived: here;\r\n  now\r\nSubject: Hi\r\n%s\r\n\r\nText.\r\n"
TRANSFER = b"Content-Transfer-Encoding: %s"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (MAIL % (TRANSFER % b"quoted-printable"), "an email"),
        (b"From MAILER-DAEMON Mon Nov 30\n" + MAIL % b"X: y" + MAIL % (TRANSFER.lower() % b"BASE64"), "an email"),
        (b"MIME-Version: 1.0\nContent-Type: multipart/related\n\n--x\n" + TRANSFER % b"base64\n", "saved web archive"),
        (b"{\\rtf1\\ansi Words}", "an RTF document"),
    ],
)
def test_mail_or_rtf_whose_words_are_encoded_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(SourceFailed, match=f"{reason}.*--exclude") as failure:
        chunks_of(data)
    assert failure.value.code == CHUNKING_FAILED


@pytest.mark.parametrize(
    "data",
    [
        MAIL % (TRANSFER % b"8bit"),
        b"Mails:\n\n    " + TRANSFER % b"base64\n",
        b"# Encodings\n\n" + TRANSFER % b"base64\n",
        b"Write {\\rtf1 first.",
    ],
)
def test_mail_in_plain_text_and_text_about_mails_are_read(data: bytes) -> None:
    assert chunks_of(data)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_byte_order_mark_is_text(codec: str) -> None:
    assert chunks_of("\ufeff# Größe\r\n\r\nWörter 🦓.".encode(codec))[0]["text"] == "# Größe\n\nWörter 🦓."


@pytest.mark.parametrize("data", [b"a\0b", b"\0\0" + b"x" * 198, b"\x01\x02\x1b[1mbold"])
def test_decode_allows_traces_of_control_characters(data: bytes) -> None:
    assert len(chunks_of(data)) == 1


def test_line_ends_and_invisible_characters_are_normalised() -> None:
    assert normalise("a\r\nb\rc\x00d\x0b") == "a\nb\ncd"
    assert normalise("data\u00adbase word\u2060joined \ufeffend\n") == "database wordjoined end\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two  words\tand   tabs", "two words and tabs"),
        (">  quoted   text", ">  quoted text"),
        ("code `a   b`  stays", "code `a   b` stays"),
        ("    indented   code", "    indented   code"),
        ("| a   b |\n|---|\n| c   d |", "| a   b |\n|---|\n| c   d |"),
        ("hard  \nbreak", "hard  \nbreak"),
    ],
)
def test_runs_of_spaces_collapse_in_prose_only(text: str, expected: str) -> None:
    assert normalise(text) == expected
