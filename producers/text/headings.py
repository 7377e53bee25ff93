"""Headings of texts that are no Markdown: underlined ones, as in reStructuredText and many a README, and those of
AsciiDoc and Org. Whatever looks like one within an example is none.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from chunksink.producers.markdown.headings import MAX_CARRIED
from chunksink.producers.text.spans import ASCIIDOC, ORG, UNDERLINED, as_read

_DEEPEST = 12
"""Of levels: every chunk carries the headings that it stands under."""
_WORD = re.compile(r"[^\W_]")
# Three dots are an ellipsis, or end a document of YAML; three backticks a fence.
_RULE = re.compile(r"([!-/:-@\[-_{-~])(?<!\.)\1+|([.`])\2{3,}")
_ASCIIDOC = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
_ASCIIDOC_RULES = "=-~^+"
_ASCIIDOC_RULE = re.compile(r"([-=~^+])\1{2,}")
_ABOVE = re.compile(r"\Z|//|:!?[\w-]+!?:|\[.*\]\Z")  # a title may stand right below
_TARGET = re.compile(r"\.\. _[^:]*:|\[\[[^\[\]]*\]\]|\[#[^\[\]]*\]")
# Between two of the same stands what is shown as it is; backticks may name a language.
_FENCE = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,})(?:(?<=`)[\w+#.,-]*)?")
_ORG = re.compile(r"(\*+)[ \t]+(\S.*)")
_ORG_MARKS = re.compile(r"\A(?:(?:TODO|DONE)[ \t]+)?(?:\[#\w\][ \t]+)?|(?<=\S)[ \t]+:[\w@#%:]+:\Z")


class Heading(NamedTuple):
    """Lines `[first, end)` are only this: `text` without the marks of a heading, `words` without any. Level 1 is the
    highest."""

    first: int
    end: int
    level: int
    text: str
    words: str


def find_headings(lines: Sequence[str], uri: str) -> Iterator[Heading]:
    """Those of the markup that such a file mostly has."""
    find = _BY_SUFFIX.get(PurePosixPath(uri).suffix.lower())
    if find is None:
        return iter(())
    lines = [line.rstrip() for line in lines]
    found = (heading for heading in find(lines) if heading.level <= _DEEPEST and len(heading.words) <= MAX_CARRIED)
    return _with_targets(lines, found)


def _with_targets(lines: Sequence[str], headings: Iterable[Heading]) -> Iterator[Heading]:
    """What links to a heading lead to stands above it, and is one of its marks."""
    end = 0
    for heading in headings:
        first = number = heading.first
        while number > end and (not lines[number - 1] or _TARGET.fullmatch(lines[number - 1])):
            number -= 1
            first = number if lines[number] else first
        yield heading._replace(first=first)
        end = heading.end


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
        if above >= end and lines[above]:
            continue
        level = levels.setdefault((rule[0], is_framed), len(levels) + 1)
        end = number + 1
        yield Heading(above + 1, end, level, words.strip(), as_read(words.strip(), UNDERLINED))


def _asciidoc(lines: Sequence[str]) -> Iterator[Heading]:
    """With its marks before the words, or as old documents write it with a rule below them."""
    fence = ""
    end = 0  # of what cannot be part of a heading that follows
    for number, line in enumerate(lines):
        may_begin = number == end or _ABOVE.match(lines[number - 1]) is not None
        found = _ASCIIDOC.fullmatch(line) if may_begin and not fence else None
        opening = None if fence else _FENCE.fullmatch(line)
        if fence:
            fence = "" if line == fence else fence
        elif number > end and _is_title(lines[max(end, number - 2) : number], line):
            words = lines[number - 1]
            yield Heading(number - 1, number + 1, _ASCIIDOC_RULES.index(line[0]) + 1, words, as_read(words, ASCIIDOC))
        elif found:
            words = found[2].removesuffix(f" {found[1]}")
            yield Heading(number, number + 1, len(found[1]), words, as_read(words, ASCIIDOC))
        elif opening:
            fence = opening[1]
        else:
            continue
        end = number + 1


def _is_title(above: Sequence[str], rule: str) -> bool:
    """Of one or two lines above it the last: as long as the rule, or a sign more or less."""
    words = above[-1]
    is_rule = abs(len(rule) - len(words)) <= 1 and _ASCIIDOC_RULE.fullmatch(rule) is not None
    return is_rule and words[0].isalnum() and (len(above) == 1 or _ABOVE.match(above[0]) is not None)


def _org(lines: Sequence[str]) -> Iterator[Heading]:
    """Within blocks a star at the beginning of a line has a comma before it."""
    for number, line in enumerate(lines):
        if found := _ORG.fullmatch(line):
            yield Heading(number, number + 1, len(found[1]), found[2], as_read(_ORG_MARKS.sub("", found[2]), ORG))


_BY_SUFFIX: Mapping[str, Callable[[Sequence[str]], Iterator[Heading]]] = {
    **dict.fromkeys(("", ".txt", ".text", ".rst"), _underlined),
    **dict.fromkeys((".adoc", ".asciidoc"), _asciidoc),
    ".org": _org,
}
