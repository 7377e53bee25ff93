"""Plain text, reStructuredText, AsciiDoc and Org. They are not converted to Markdown, whose escapes would appear in the
text. Files with any other suffix, such as code, keep their lines as they are."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from chunksink.ingest.codes import NUL_REMOVED
from chunksink.ingest.formats.document_format import DocumentFormat, Places, build_document, parts_of_lines
from chunksink.ingest.formats.markdown.document import Kind, Structure
from chunksink.ingest.formats.markdown.normalise import clean, clean_markdown, decode, one_line
from chunksink.ingest.model import Item, Source
from chunksink.ingest.terminal import readable

_CONTROLS = re.compile("[\x1b\b]")  # colours of a log, and words of manual pages that are overwritten to be bold
# Three dots are an ellipsis or the end of a YAML document, and three backticks a fence: only four are an underline.
_UNDERLINE = re.compile(r"([!-/:-@\[-_{-~])(?<!\.)\1+|([.`])\2{3,}")
# Lines that may come before the title: fields, comments, labels and keywords.
_FIELD = r":[^:\s][^:]*:(?:\s.*)?"
_BEFORE_RST = re.compile(rf"{_FIELD}|\.\.(?:\s.*)?")
_BEFORE_ASCIIDOC = re.compile(rf"{_FIELD}|//.*|\[.*\]\s*")
_BEFORE_ORG = re.compile(rf"{_FIELD}|#.*")
_ORG_COMMENT = re.compile(rf"{_FIELD}|#(?:\s.*)?")
_ORG_KEYWORD = re.compile(r"#\+\w+:.*")
_ORG_TITLE = re.compile(r"#\+title:(.*)", re.IGNORECASE)
_ASCIIDOC_HEADING = re.compile(r"(={1,6})(?=[ \t].*[^\W_])[ \t]+(\S.*)")
_ORG_HEADING = re.compile(r"(\*+)(?=[ \t].*[^\W_])[ \t]+(\S.*)")


class TextFormat(DocumentFormat):
    """Text, and markup that is read as text except for its title and headings."""

    name = "text"
    suffixes = (".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org")
    suffixes_if_asked = (".textile", ".wiki", ".tex", ".log", ".srt", ".vtt", "")
    source_type = "txt"
    place_name = "anchor"
    rules = "10"

    def read(self, source: Source) -> Iterator[Item]:
        is_text = PurePosixPath(source.uri).suffix.lower() in (*self.suffixes, *self.suffixes_if_asked)
        yield from DocumentFormat.read(self if is_text else _Code(self.policy), source)

    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        original = decode(data)
        text = readable(original) if _CONTROLS.search(original) else original
        document = self._document(text)
        has_headings = len(document.sections) > 1
        places = {} if has_headings else dict(_numbers_of_lines(document.text, original))
        return replace(document, notice_codes=frozenset({NUL_REMOVED} if "\0" in original else ())), places

    def _document(self, text: str) -> Structure:
        lines, levels, title = _find_headings(clean(text).split("\n"))
        document, _ = build_document(parts_of_lines(lines, levels))
        return replace(document, metadata={"title": title} if title else {})


class _Code(TextFormat):
    """Files of other suffixes, such as code and configuration: the lines as they are, without headings."""

    def _document(self, text: str) -> Structure:
        # `clean` would make line breaks of form feeds, so that the numbers of later lines were wrong.
        parts = parts_of_lines(clean_markdown(text).split("\n"), {})
        return build_document(part._replace(kind=Kind.CODE) for part in parts)[0]


def _numbers_of_lines(text: str, original: str) -> Iterator[tuple[int, int | str]]:
    """For each line the offset where it begins, and its number as the anchor that viewers of code understand. Nothing
    if the original has other lines."""
    if _last_line(text) != _last_line(original):
        return
    offset = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if line:  # no chunk begins with an empty one
            yield offset, f"L{number}"
        offset += len(line) + 1


def _last_line(text: str) -> int:
    """The number of the last line with text, as editors count."""
    return text.rstrip().replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1


def _find_headings(lines: Sequence[str]) -> tuple[list[str], dict[int, int], str]:
    """The lines without heading markers, the levels of the headings by line number, and the title or ""."""
    if _ASCIIDOC_HEADING.fullmatch(_begin(lines, _BEFORE_ASCIIDOC)[1]):
        before, (shown, levels) = _BEFORE_ASCIIDOC, _find_marked(lines, _ASCIIDOC_HEADING)
    elif _ORG_KEYWORD.fullmatch(_begin(lines, _ORG_COMMENT)[1]):
        before, (shown, levels) = _BEFORE_ORG, _find_marked(lines, _ORG_HEADING)
    else:
        before, (shown, levels) = _BEFORE_RST, _find_underlined(lines)
    first = min(levels, default=len(shown))
    end, _ = _begin(shown[:first], before)
    titles = [found[1] for line in shown[:end] if (found := _ORG_TITLE.fullmatch(line))]
    titles += shown[first : first + 1] if end == first else []
    return shown, levels, next(filter(None, map(one_line, titles)), "")


def _begin(lines: Sequence[str], before: re.Pattern[str]) -> tuple[int, str]:
    """Number and text of the first line of the document itself. Skips blank lines, matches of `before`, lines indented
    below these, and block comments of AsciiDoc (`////`)."""
    is_below = is_comment = False
    for number, line in enumerate(lines):
        if before.fullmatch(line):
            is_below, is_comment = True, is_comment ^ line.startswith("////")
        elif line.strip() and not is_comment and not (is_below and line[0].isspace()):
            return number, line
    return len(lines), ""


def _find_marked(lines: Sequence[str], heading: re.Pattern[str]) -> tuple[list[str], dict[int, int]]:
    """The lines without heading markers, and the levels of the headings by line number."""
    found = {number: match for number, line in enumerate(lines) if (match := heading.fullmatch(line.rstrip()))}
    shown = {number: match[2].removesuffix(f" {match[1]}") for number, match in found.items()}
    return [shown.get(*line) for line in enumerate(lines)], {number: len(match[1]) for number, match in found.items()}


def _find_underlined(lines: Sequence[str]) -> tuple[list[str], dict[int, int]]:
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
