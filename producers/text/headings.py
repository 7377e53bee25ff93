"""Headings of texts that are no Markdown: underlined ones, as in reStructuredText and many a README, and those of
AsciiDoc and Org. Whatever looks like one within an example is none.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from producers.markdown.headings import MAX_CARRIED

_WORD = re.compile(r"[^\W_]")
_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}")
_ASCIIDOC = re.compile(r"(={1,6})[ \t]+(\S.*)")
_ORG = re.compile(r"(\*+)[ \t]+(?:(?:TODO|DONE)[ \t]+)?(?:\[#\w\][ \t]+)?(\S.*)")
_ORG_TAGS = re.compile(r"(?<=\S)[ \t]+:[\w@#%:]+:\Z")
# Between two of the same stands what is shown as it is.
_FENCE = re.compile(r"-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}")
_ORG_BLOCK = re.compile(r"#\+(begin|end)_\w+", re.IGNORECASE)


class Heading(NamedTuple):
    """Lines `[first, end)` say only this. Level 1 is the highest."""

    first: int
    end: int
    level: int
    words: str


def find_headings(lines: Sequence[str], uri: str) -> Iterator[Heading]:
    """Those of the markup that such a file mostly has."""
    find = _BY_SUFFIX.get(PurePosixPath(uri).suffix.lower())
    if find is None:
        return iter(())
    return (heading for heading in find([line.rstrip() for line in lines]) if len(heading.words) <= MAX_CARRIED)


def _underlined(lines: Sequence[str]) -> Iterator[Heading]:
    """The first kind of rule is the highest level, and so on; one with a rule above as well is another kind."""
    levels: dict[tuple[str, bool], int] = {}
    end = 0
    for number in range(1, len(lines)):
        rule, words = lines[number], lines[number - 1]
        if not _RULE.fullmatch(rule) or len(rule) < len(words.strip()):
            continue
        above = number - 2
        is_framed = above >= end and lines[above] == rule
        if is_framed:
            above -= 1
        if not _WORD.search(words) or (words[0].isspace() and not is_framed):
            continue
        if above >= end and lines[above].strip():
            continue
        level = levels.setdefault((rule[0], is_framed), len(levels) + 1)
        end = number + 1
        yield Heading(above + 1, end, level, words.strip())


def _asciidoc(lines: Sequence[str]) -> Iterator[Heading]:
    fence = ""
    for number, line in enumerate(lines):
        if fence or _FENCE.fullmatch(line):
            fence = "" if line == fence else fence or line
        elif found := _ASCIIDOC.fullmatch(line):
            yield Heading(number, number + 1, len(found[1]), found[2].removesuffix(f" {found[1]}"))


def _org(lines: Sequence[str]) -> Iterator[Heading]:
    is_shown = False
    for number, line in enumerate(lines):
        if block := _ORG_BLOCK.match(line.lstrip()):
            is_shown = block[1].lower() == "begin"
        elif not is_shown and (found := _ORG.fullmatch(line)):
            yield Heading(number, number + 1, len(found[1]), _ORG_TAGS.sub("", found[2]))


_BY_SUFFIX: Mapping[str, Callable[[Sequence[str]], Iterator[Heading]]] = {
    **dict.fromkeys(("", ".txt", ".text", ".rst"), _underlined),
    **dict.fromkeys((".adoc", ".asciidoc"), _asciidoc),
    ".org": _org,
}
