"""Blocks that a pattern can tell for what they are: most of every document, in a fraction of the library's time.

Only at the top level, only written in the plainest way, and only where nothing that follows can change what they are;
all else is the library's. What is found is what the library finds, token for token in all that is read of them: items,
rows and cells have none of their own.
"""

import re
from collections.abc import Callable
from itertools import accumulate
from operator import add
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import mdTrim, normalizeReference
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

Rule = Callable[[StateBlock, int, int, bool], bool]

# One for all: only their types are ever read.
_PARAGRAPH_CLOSE = Token("paragraph_close", "p", -1, block=True)
_LIST_CLOSES = {tag: Token(f"{name}_list_close", tag, -1) for name, tag in (("bullet", "ul"), ("ordered", "ol"))}
_TABLE_CLOSE = Token("table_close", "table", -1)
_QUOTE_CLOSE = Token("blockquote_close", "blockquote", -1)

# How a line may begin that can be nothing but text: with a character, or a mark with what makes it no mark.
_TEXT = (
    r"(?:[^\s#>\-+=~<|:*_0-9`\[]"
    r"|\*\*?[^\s*_]"
    r"|_[^\s*_]"
    r"|`{1,2}[^`\n]"
    r"|[0-9]{1,9}[^\s0-9.)|:\-]"
    r"|\[[^\[\]\\\n]+\](?!:)"
    r"|<https?://"
    r"|<(?:a|b|code|em|i|img|kbd|span|strong|sub|sup)\b(?:[^<>\"'\n]|\"[^\"<>\n]*\"|'[^'<>\n]*')*>[^\s])"
)
_LINES = rf"{_TEXT}[^\n]*(?:\n[ ]*(?:{_TEXT}|\[)[^\n]*)*+"
_ENDS = r"(?=\n\n|\n?\Z)"
_HEADING_BEGINS = r"\#{1,6}[ ]"
_BULLET = r"[-*+][ ]{1,4}"
_NUMBER = r"[0-9]{1,9}[.)][ ]{1,4}"
_ITEM = re.compile(rf"({_BULLET}|{_NUMBER})({_LINES})\n*")
_QUOTED = rf">[ ]{_TEXT}[^\n]*(?:\n>[ ](?:{_TEXT}|\[)[^\n]*)*+"
_PARAGRAPH_OF_QUOTE = re.compile(r"(?:> \S[^\n]*\n?)+")
_TAG_NAME = r"(?!(?:script|pre|style|textarea)\b)[a-z][a-z0-9-]*"
_ATTRIBUTE = r"[ ][a-z_:][a-z0-9_.:-]*=\"[^\"\n]*\""

# What nothing that follows can change; `_MAKERS` tells what becomes of each. Tags stand apart: MDX has its own rule.
_PLAIN = "|".join(
    (
        rf"(?P<paragraph>{_LINES})(?:{_ENDS}|(?=\n{_HEADING_BEGINS}|\n[-*+][ ]\S))",
        r"(?P<heading>(?P<level>\#{1,6})[ ]++(?P<words>[^\s#](?:[^\n]*[^\s#])?)[ \t]*)(?=\n(?![ \t]*[|:\-])|\Z)",
        r"(?P<fence>```(?P<info>[^`\n]*)\n(?P<code>(?:(?![ \t]*```)[^\n]*\n)*+)[ ]{0,3}```++[ \t]*)(?=\n|\Z)",
        rf"(?P<bullets>(?P<mark>[-*+])[ ]{{1,4}}{_LINES}(?:\n+(?P=mark)[ ]{{1,4}}{_LINES})*+)(?=\n\n+[^\s\-*+]|\n*\Z)",
        rf"(?P<numbers>[0-9]{{1,9}}(?P<sign>[.)])[ ]{{1,4}}{_LINES}(?:\n+[0-9]{{1,9}}(?P=sign)[ ]{{1,4}}{_LINES})*+)"
        r"(?=\n\n+[^\s0-9]|\n*\Z)",
        rf"(?P<table>(?P<head>\|[^\n\\]*\|)[ ]*\n(?P<rule>\|(?:[ ]*:?-+:?[ ]*\|)+)[ ]*(?:\n\|[^\n\\]*\|[ ]*)*+){_ENDS}",
        rf"(?P<quote>{_QUOTED}(?:(?:\n>[ ]*)++\n{_QUOTED})*+){_ENDS}",
        r"(?P<definition>\[(?P<name>(?!\^)[^\s\[\]\\][^\[\]\\\n]*)\]:[ ]+(?P<address>[^\s<>\\&()\x00-\x1f\x7f]+)[ ]*)"
        r"(?=\n\n|\n?\Z|\n\[)",
        r"(?P<comment><!--(?!-?>)[\s\S]*?-->[^\n]*)(?=\n|\Z)",
    )
)
_TAGS = rf"(?P<html>(?i:</{_TAG_NAME}>|<{_TAG_NAME}(?:{_ATTRIBUTE})*[ ]?/?>)[ \t]*(?:\n[ \t]*[^\s][^\n]*)*+){_ENDS}"


class PlainState(StateBlock):
    """The library's state; where lines begin and end is found for all of them at once."""

    def __init__(self, src: str, md: MarkdownIt, env: Any, tokens: list[Token]) -> None:
        super().__init__("", md, env, tokens)
        self.src = src
        lines = src.split("\n")
        if not lines[-1].strip(" \t"):
            del lines[-1]  # only white space and no line break: no line
        lengths = list(map(len, lines))
        self.bMarks = [*accumulate((length + 1 for length in lengths), initial=0)]
        self.eMarks = [*map(add, self.bMarks, lengths), len(src)]
        self.bMarks[-1] = len(src)
        self.tShift = [*(len(line) - len(line.lstrip(" \t")) for line in lines), 0]
        self.sCount = self.tShift.copy()
        if "\t" in src:
            for number, (line, shift) in enumerate(zip(lines, self.tShift, strict=False)):
                if shift:
                    self.sCount[number] = len(line[:shift].expandtabs(4))
        self.bsCount = [0] * len(self.bMarks)
        self.lineMax = len(lines)


def plain_blocks(*, html: bool) -> Rule:
    """The rule that finds as many such blocks as follow one another; tags only where `html` is as Markdown has it."""
    pattern = re.compile(f"{_PLAIN}|{_TAGS}" if html else _PLAIN)

    def rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if state.level:
            return False
        source = state.src
        line, at = start, state.bMarks[start]
        while block := pattern.match(source, at):
            kind = block.lastgroup or ""
            if kind == "table" and block["head"].count("|") != block["rule"].count("|"):
                break
            following = line + 1 + source.count("\n", at, block.end())
            at = block.end() + 1
            while source.startswith("\n", at):
                at += 1
            after = following + at - block.end() - 1
            _MAKERS[kind](state, block, line, after if kind in _ENDS_WITH_NEXT else following)
            line = after
        state.line = line
        return line > start

    return rule


def _paragraph(state: StateBlock, block: re.Match[str], start: int, end: int) -> None:
    push_paragraph(state.tokens, block[0], [start, end])


def push_paragraph(tokens: list[Token], content: str, lines: list[int]) -> None:
    tokens += (
        Token("paragraph_open", "p", 1, {}, lines),
        Token("inline", "", 0, {}, lines, content=mdTrim(content)),
        _PARAGRAPH_CLOSE,
    )


def _heading(state: StateBlock, block: re.Match[str], start: int, end: int) -> None:
    tag = f"h{len(block['level'])}"
    lines = [start, end]
    state.tokens += (
        Token("heading_open", tag, 1, {}, lines),
        Token("inline", "", 0, {}, lines, content=mdTrim(block["words"])),
        Token("heading_close", tag, -1),
    )


def _fence(state: StateBlock, block: re.Match[str], start: int, end: int) -> None:
    state.tokens.append(Token("fence", "code", 0, {}, [start, end], content=block["code"], info=block["info"]))


def _html(state: StateBlock, block: re.Match[str], start: int, end: int) -> None:
    content = state.src[block.start() : block.end() + 1]
    state.tokens.append(Token("html_block", "", 0, {}, [start, end], content=content))


def _list(state: StateBlock, block: re.Match[str], start: int, end: int) -> None:
    name, tag = ("bullet", "ul") if block.lastgroup == "bullets" else ("ordered", "ol")
    state.tokens.append(Token(f"{name}_list_open", tag, 1, {}, [start, end]))
    line = start
    for item in _ITEM.finditer(state.src, block.start(), block.end()):
        mark, content = item.groups()
        following = line + 1
        if "\n" in content:
            following += content.count("\n")
            content = re.sub(rf"\n[ ]{{1,{len(mark)}}}", "\n", content)
        push_paragraph(state.tokens, content, [line, following])
        line += item[0].count("\n")
    state.tokens.append(_LIST_CLOSES[tag])


def _table(state: StateBlock, block: re.Match[str], start: int, end: int) -> None:
    rows = block[0].split("\n")
    columns = rows[0].count("|") - 1
    state.tokens.append(Token("table_open", "table", 1, {}, [start, end]))
    for number, row in enumerate(rows):
        if number != 1:
            cells = [*map(mdTrim, row.rstrip(" ")[1:-1].split("|")), *[""] * columns]
            lines = [start + number, start + number + 1]
            state.tokens += (Token("inline", "", 0, {}, lines, content=cell) for cell in cells[:columns])
    state.tokens.append(_TABLE_CLOSE)


def _quote(state: StateBlock, block: re.Match[str], start: int, end: int) -> None:
    state.tokens.append(Token("blockquote_open", "blockquote", 1, {}, [start, end]))
    line, at = start, block.start()
    for paragraph in _PARAGRAPH_OF_QUOTE.finditer(state.src, at, block.end()):
        line, at = line + state.src.count("\n", at, paragraph.start()), paragraph.start()
        text = paragraph[0].rstrip("\n")
        lines = [line, line + 1 + text.count("\n")]
        push_paragraph(state.tokens, text[2:].replace("\n> ", "\n"), lines)
    state.tokens.append(_QUOTE_CLOSE)


def _definition(state: StateBlock, block: re.Match[str], start: int, end: int) -> None:
    name = normalizeReference(block["name"])
    definition = {"title": "", "href": block["address"], "map": [start, end]}
    if state.env.setdefault("references", {}).setdefault(name, definition) is not definition:
        state.env.setdefault("duplicate_refs", []).append({**definition, "label": name})


_MAKERS: dict[str, Callable[[StateBlock, re.Match[str], int, int], None]] = {
    "paragraph": _paragraph,
    "heading": _heading,
    "fence": _fence,
    "bullets": _list,
    "numbers": _list,
    "table": _table,
    "quote": _quote,
    "definition": _definition,
    "comment": _html,
    "html": _html,
}
_ENDS_WITH_NEXT = ("bullets", "numbers")  # the library counts the empty lines after a list to it
