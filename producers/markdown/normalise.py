"""From the bytes of a source to clean text, and from clean lines to normalised lines.

Line breaks and control characters follow the chunk contract. Runs of spaces inside lines of prose collapse; lines
of code and tables, indentation and list markers stay as they are, because there white space is structure.
"""

import codecs
import re

from chunksink.chunkbus.canonical import canonical_text
from chunksink.producers.errors import CHUNKING_FAILED, SourceFailed

# What may stand before the text of a line and gives it its place: quote marks, list markers, heading marks.
_PREFIX = re.compile(r"[ \t]*(?:(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])|#{1,6}(?=[ \t]))[ \t]*)*")
# They end a line for the contract and none for Markdown, where they may stand in a heading or in a row of a table.
_SIGNS = "\x0b\x0c\x85\u2028\u2029"
_SEPARATORS = f"[{_SIGNS}]"
_SEPARATOR = re.compile(rf"(?P<edge>^{_SEPARATORS}+|{_SEPARATORS}+$)|{_SEPARATORS}", re.MULTILINE)
_UNSEEN = "\ufeff\u00ad\u2060"
# Looking for the end of code spans that have none is quadratic.
MAX_LINE_CHARACTERS = 20_000
# The longer marks first: one begins as that of UTF-16 does.
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
# But backspaces, white space and the escapes of terminals.
_IN_NO_TEXT = bytes(code for code in range(32) if chr(code) not in "\b\t\n\v\f\r\x1b")
# A code span on the line, left as it is, or a run of spaces between two words.
_RUN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|(?<=[^ \t])(?:[ \t]{2,}|\t)(?=[^ \t])")


def decode(data: bytes) -> str:
    """The text of a source; refuses what is not UTF-8, and UTF-16 and binary data that could be."""
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            remedy = f"convert it: iconv -f {name} -t UTF-8 OLD > NEW"
            raise SourceFailed(CHUNKING_FAILED, f"it is {name}, and only UTF-8 is read; {remedy}")
    if b"\0" in data:
        _refuse_binary(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse_binary(data)
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceFailed(
            CHUNKING_FAILED,
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}, line {line}; convert it to UTF-8, "
            "if it comes from Windows with: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW",
        ) from error


def _refuse_binary(data: bytes) -> None:
    """Where there are more than traces of what stands in no text."""
    strange = len(data) - len(data.translate(None, _IN_NO_TEXT))
    if strange > max(1, len(data) // 100):
        raise SourceFailed(
            CHUNKING_FAILED,
            f"looks like UTF-16 or like no text: {strange:,} of its {len(data):,} bytes are control characters; "
            "if it is UTF-16, convert it (iconv -f UTF-16LE -t UTF-8 OLD > NEW), else leave it out with --exclude",
        )


def clean(text: str) -> str:
    """The contract's line breaks, without the control characters it forbids; the ends are not stripped.

    A text that begins with four spaces begins with code, so the contract's strip has to wait until it is cut.
    Byte order marks go wherever they stand: joined files have them inside, where they would hide a heading. So do soft
    hyphens and word joiners: nobody sees or types them, and no word with one within is found.
    """
    for sign in _UNSEEN:
        if sign in text:
            text = text.replace(sign, "")
    return canonical_text(f"|{text}|")[1:-1]


def clean_markdown(text: str) -> str:
    """The same of Markdown, where separators of lines and pages part words, but no lines: where lines begin and end
    decides what they are."""
    if any(sign in text for sign in _SIGNS):
        text = _SEPARATOR.sub(lambda sign: "" if sign["edge"] else " ", text)
    return clean(text)


def collapse_line(line: str) -> str:
    """A line of prose with single spaces between its words. Lines that no one wrote by hand stay as they are."""
    if len(line) > MAX_LINE_CHARACTERS:
        return line
    prefix = _PREFIX.match(line)
    start = prefix.end() if prefix else 0
    return line[:start] + _RUN.sub(_keep_code, line[start:])


def _keep_code(match: re.Match[str]) -> str:
    return match.group() if match.group(1) else " "
