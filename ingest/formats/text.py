"""Plain text. It is not converted to Markdown, whose escapes would appear in the text."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from chunksink.ingest.codes import NUL_REMOVED
from chunksink.ingest.formats.document_format import (
    DocumentFormat,
    Places,
    build_document,
    parts_of_lines,
    with_metadata,
)
from chunksink.ingest.formats.markdown.document import Structure
from chunksink.ingest.formats.markdown.normalise import clean, decode
from chunksink.ingest.terminal import readable

_CONTROLS = re.compile("[\x1b\b]")  # colours of a log, and words of manual pages that are overwritten to be bold
# Three dots are an ellipsis or the end of a YAML document, and three backticks a fence: only four are an underline.
_UNDERLINE = re.compile(r"([!-/:-@\[-_{-~])(?<!\.)\1+|([.`])\2{3,}")


class TextFormat(DocumentFormat):
    """Text, and markup that is read as text."""

    name = "text"
    suffixes = (".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org")
    suffixes_if_asked = (".textile", ".wiki", ".tex", ".log", ".srt", ".vtt", "")
    source_type = "txt"
    rules = "7"

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        text = decode(data)
        notice_codes = frozenset({NUL_REMOVED} if "\0" in text else ())
        text = clean(readable(text) if _CONTROLS.search(text) else text)
        document, _ = build_document(parts_of_lines(*_find_headings(text.split("\n"))))
        heading = next((document.sections[1][0] for block in document.blocks[:1] if block.is_heading), "")
        return replace(with_metadata(document, {"title": heading}), notice_codes=notice_codes), {}


def _find_headings(lines: Sequence[str]) -> tuple[list[str], dict[int, int]]:
    """The lines without the underlines and overlines of headings, and the levels of the headings by line number."""
    shown: list[str] = []
    levels: dict[int, int] = {}
    kinds: dict[tuple[str, bool], int] = {}
    end = 0  # of the last heading
    for number in range(1, len(lines)):
        underline, words = lines[number].rstrip(), lines[number - 1].rstrip()
        if (
            not _UNDERLINE.fullmatch(underline)
            or len(underline) < len(words.strip())
            or not re.search(r"[^\W_]", words)
        ):
            continue
        is_framed = number - 2 >= end and lines[number - 2].rstrip() == underline
        first = number - 1 - is_framed
        is_below_text = first > end and lines[first - 1].strip()
        if is_below_text or (words[0].isspace() and not is_framed):
            continue
        shown += lines[end:first]
        levels[len(shown)] = kinds.setdefault((underline[0], is_framed), len(kinds) + 1)
        shown.append(words.strip())
        end = number + 1
    return [*shown, *lines[end:]], levels
