"""Decodes a source, cleans its text, and normalises white space in lines."""

import codecs
import re

from chunksink.chunkbus.canonical import canonical_text
from chunksink.chunkbus.diagnosis import DATA_FILES
from chunksink.ingest.codes import CHUNKING_FAILED
from chunksink.ingest.errors import SourceFailed

_MAX_LINE_CHARACTERS = 20_000
"""Longer lines are not collapsed, because searching for the ends of code spans is quadratic."""
MAX_REPEATED = 1000
"""The most characters of a title, heading or language, which every chunk repeats."""

# What may come before the text of a line: indentation, quote marks, list markers, heading marks.
_PREFIX = re.compile(r"[ \t]*(?:(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])|#{1,6}(?=[ \t]))[ \t]*)*")
# A code span, which is kept, or a run of spaces between two words.
_RUN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|(?<=[^ \t])(?:[ \t]{2,}|\t)(?=[^ \t])")
# Line breaks in the chunk contract but not in Markdown, where a heading or a table row may contain them.
_LINE_SEPARATORS = "\x0b\x0c\x85\u2028\u2029"
_SEPARATOR = re.compile(rf"(?P<edge>^[{_LINE_SEPARATORS}]+|[{_LINE_SEPARATORS}]+$)|[{_LINE_SEPARATORS}]", re.MULTILINE)
_INVISIBLE = "\ufeff\u00ad\u2060"
_NEVER_IN_TEXT = bytes(code for code in range(32) if chr(code) not in "\b\t\n\v\f\r\x1b")
_KINDS = {
    b"\x89PNG": "PNG image",
    b"\xff\xd8\xff": "JPEG image",
    b"GIF8": "GIF image",
    b"PK\x03\x04": "ZIP archive or a document in one",
    b"\x1f\x8b": "gzip file",
    b"%PDF-": "PDF document",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "pre-2007 Office document (save it as DOCX, XLSX or PPTX) or Outlook message",
    **DATA_FILES,
}
"""Kinds of binary files by their first bytes."""
_MAIL = re.compile(
    rb"(?:From .*\n)?(?:[\w-]+:.*\n(?:[ \t]+\S.*\n)*){0,200}?(?:From|Subject|MIME-Version|Content-[\w-]+):",
    re.IGNORECASE,
)
_TRANSFER_ENCODING = re.compile(
    rb"^Content-Transfer-Encoding:\s*(?:quoted-printable|base64)\b", re.IGNORECASE | re.MULTILINE
)

TO_UTF8 = (
    "convert it to UTF-8 with iconv -f ENCODING -t UTF-8 OLD > NEW; "
    "ENCODING is often WINDOWS-1252 for Western European, WINDOWS-1251 for Cyrillic, CP932 for Japanese, "
    "GB18030 for Chinese and EUC-KR for Korean texts"
)


def decode(data: bytes) -> str:
    """The text of a source in UTF-8, or in UTF-16 with a byte order mark. Raises SourceFailed for other encodings, for
    binary data, and for emails and RTF, whose text is encoded."""
    _refuse_encoded(data)
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            data = data.decode("utf-16").encode()
        if b"\0" in data:
            refuse_binary(data)
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse_binary(data)
        line = data.count(b"\n", 0, error.start) + 1
        place = f"byte 0x{data[error.start]:02x} at offset {error.start}, line {line}"
        raise SourceFailed(CHUNKING_FAILED, f"not {error.encoding.upper()}: {place}; {TO_UTF8}") from error


def refuse_binary(data: bytes) -> None:
    """Raises SourceFailed for known kinds of binary data, and for data with more control characters than text has."""
    kind = next((kind for start, kind in _KINDS.items() if data.startswith(start)), None)
    if kind and not data.isascii():
        raise SourceFailed(CHUNKING_FAILED, f"it is a {kind}, not text; skip it with --exclude")
    strange = len(data) - len(data.translate(None, _NEVER_IN_TEXT))
    if strange > max(1, len(data) // 100):
        reason = f"{strange:,} of its {len(data):,} bytes are control characters; is it UTF-16 or binary?"
        remedy = "Convert UTF-16 (iconv -f UTF-16LE -t UTF-8 OLD > NEW), or skip the file with --exclude"
        raise SourceFailed(CHUNKING_FAILED, f"{reason} {remedy}")


def _refuse_encoded(data: bytes) -> None:
    if data.startswith(b"{\\rtf"):
        reason = "it is an RTF document, not text; save it as DOCX or plain text, or skip it with --exclude"
        raise SourceFailed(CHUNKING_FAILED, reason)
    if _MAIL.match(data) and _TRANSFER_ENCODING.search(data):
        remedy = "save the email as plain text or the page as HTML, or skip the file with --exclude"
        raise SourceFailed(CHUNKING_FAILED, f"it is an email or a saved web archive, whose text is encoded; {remedy}")


def clean(text: str) -> str:
    """Canonical text without invisible characters, but not stripped: indentation at the beginning may belong to code.

    Byte order marks inside a text (from joined files) would hide a heading. Soft hyphens and word joiners would keep a
    search from finding the word.
    """
    for character in _INVISIBLE:
        text = text.replace(character, "")
    return canonical_text(f"|{text}|")[1:-1]


def clean_markdown(text: str) -> str:
    """Like `clean`, but without form feeds and Unicode line separators, as they do not end a line in Markdown: within a
    line they become spaces."""
    if any(character in text for character in _LINE_SEPARATORS):
        text = _SEPARATOR.sub(lambda found: "" if found["edge"] else " ", text)
    return clean(text)


def collapse_line(line: str) -> str:
    """A line of prose with single spaces between its words."""
    if len(line) > _MAX_LINE_CHARACTERS:
        return line
    prefix = _PREFIX.match(line)
    start = prefix.end() if prefix else 0
    return line[:start] + _RUN.sub(lambda run: run[0] if run[1] else " ", line[start:])


def one_line(text: str) -> str:
    """The text on one line, with single spaces between its words."""
    return " ".join(text.split())


def shortened(text: str) -> str:
    """The text, cut after a word if it is longer than `MAX_REPEATED`."""
    if len(text) <= MAX_REPEATED:
        return text
    head = text[: MAX_REPEATED - 1]
    return (head.rpartition(" ")[0] or head) + "…"
