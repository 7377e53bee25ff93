"""What stands in a heading as its reader sees it: without the marks of code, links and roles."""

import re
from collections.abc import Sequence

Spans = Sequence[tuple[re.Pattern[str], str]]

# ``code``, :role:`words <target>`, `words <address>`_ and \*
UNDERLINED: Spans = (
    (re.compile(r"``(\S|\S.*?\S)``(?!`)"), r"\1"),
    (re.compile(r"(?<![\w`:])(?::[A-Za-z][\w+.-]*)+:`[~!]?([^`<>]+?)(?:\s*<[^`<>]*>)?`(?![`\w])"), r"\1"),
    (re.compile(r"(?<![\w`])`([^`<>]+?)(?:\s*<[^`<>]*>)?`__?(?!\w)"), r"\1"),
    (re.compile(r"\\([*`|\\])"), r"\1"),
)
# `code`, `+code+`, xref:target[words] and <<target,words>>
ASCIIDOC: Spans = (
    (re.compile(r"(?<![\w`])`(\+?)([^\s`]|[^\s`][^`]*[^\s`])\1`(?![\w`])"), r"\2"),
    (re.compile(r"(?<![\w:])(?:(?:xref|link):|https?://)[^\s\[\]]+\[([^\[\]]+?)\^?\]"), r"\1"),
    (re.compile(r"<<[^<>,]+,\s*([^<>]+)>>"), r"\1"),
)
# =code=, ~code~, [[target][words]]
ORG: Spans = (
    (re.compile(r"(?<![^\s(\"'{-])([=~])(\S|\S.*?\S)\1(?![^\s)\"'}.,;:!?-])"), r"\2"),
    (re.compile(r"\[\[[^\[\]]+\]\[([^\[\]]+)\]\]"), r"\1"),
)


def as_read(words: str, spans: Spans) -> str:
    for mark, shown in spans:
        words = mark.sub(shown, words)
    return words
