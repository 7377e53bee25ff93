"""Blocks that a pattern can tell for what they are: most of every document, in a fraction of the library's time.

Only at the top level, only written in the plainest way, and only where nothing that follows can change what they are;
all else is the library's. What is found is what the library finds, in all that is read of its tokens: a paragraph or a
heading is one token with its words; items, rows and cells have none of their own.
"""

import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from itertools import accumulate
from operator import add
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.html_blocks import block_names
from markdown_it.common.utils import mdTrim, normalizeReference
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from chunksink.chunkbus.patterns import for_good


@dataclass(slots=True)
class Plain:
    """What is read of a token, and nothing that is not: there are so many that it counts how long one takes to make.

    A paragraph or a heading has its words in itself: no `inline` follows it, and nothing closes it.
    """

    type: str
    map: list[int] | None
    content: str = ""
    tag: str = ""
    info: str = ""


BlockToken = Token | Plain
HOLD_WORDS = ("paragraph_open", "inline", "heading_open")
"""Tokens whose content is inline Markdown; it is empty in those of the library that an `inline` follows."""

# How a line may begin that can be nothing but text: with a character, or a mark with what makes it no mark.
_TEXT = (
    r"(?:[^\s#>\-+=~<|:*_0-9`\[]"
    r"|\*\*?[^\s*_]"
    r"|_[^\s*_]"
    r"|`{1,2}[^`\n]"
    r"|[0-9]{1,9}(?:[^0-9.)\n]|[.)][^\s])"
    r"|\[[^\[\]\\\n]+\](?!:)"
    r"|\[\^[^\[\]\\\n]+\]:"
    r"|<https?://"
    r"|<(?:a|b|code|em|i|img|kbd|span|strong|sub|sup)\b(?:[^<>\"'\n]|\"[^\"<>\n]*\"|'[^'<>\n]*')*>[^\s]"
    r"|--?[^\s\-|:]"
    r"|\+[^\s])"
)
_LINE = r"[^\n]*+"
_LINES = rf"{_TEXT}{_LINE}" + for_good(rf"\n[ ]*+(?:{_TEXT}|\[){_LINE}")
# No number but 1 begins a list within a paragraph; what stands in an item is followed by the next.
_PARAGRAPH = rf"{_TEXT}{_LINE}" + for_good(rf"\n[ ]*+(?:{_TEXT}|\[|(?!0*1[.)])[0-9]){_LINE}")
_ENDS = r"(?=\n\n|\n?\Z)"
_HEADING_BEGINS = r"\#{1,6}[ ]"
_BULLET = r"[-*+][ ]{1,4}"
_NUMBER = r"[0-9]{1,9}[.)][ ]{1,4}"
_ITEM = re.compile(rf"({_BULLET}|{_NUMBER})({_LINES})\n*")
_MORE_BULLETS = for_good(rf"\n++(?P=mark)[ ]{{1,4}}{_LINES}")
_MORE_NUMBERS = for_good(rf"\n++[0-9]{{1,9}}(?P=sign)[ ]{{1,4}}{_LINES}")
# What has no other ``` is nearly all; else each line is asked whether it ends the code.
_CODE = r"[^`]*+(?<=\n)|" + for_good(rf"(?![ \t]*```){_LINE}\n")
_ROWS = for_good(r"\n\|[^\n\\]*\|[ ]*+")
# No quote within, which would be read in the same way without an end, and no tab, which counts from the mark.
_QUOTED = r">(?:[ ](?!>)[^\n\t]*+)?"
_MORE_QUOTED = for_good(rf"\n{_QUOTED}")
_QUOTE_MARK = re.compile(r"^>(?:[ ]+$|[ ]?)", re.MULTILINE)
_TAG_NAME = r"(?!(?:script|pre|style|textarea)\b)[a-z][a-z0-9-]*"
_ATTRIBUTES = for_good(r"[ ]+[a-z_:][a-z0-9_.:-]*=(?:\"[^\"\n]*\"|'[^'\n]*')")

# What nothing that follows can change. Tags stand apart: MDX has its own rule.
_PLAIN = "|".join(
    (
        rf"(?P<paragraph>{_PARAGRAPH})(?:{_ENDS}|(?=\n{_HEADING_BEGINS}|\n[-*+][ ]\S))",
        r"(?P<heading>(?P<level>\#{1,6})[ ]++(?P<words>[^\s#](?:[^\n]*[^\s#])?)[ \t]*)(?=\n(?![ \t]*[|:\-])|\Z)",
        rf"(?P<fence>```(?P<info>[^`\n]*)\n(?P<code>{_CODE})[ ]{{0,3}}```++[ \t]*)(?=\n|\Z)",
        rf"(?P<bullets>(?P<mark>[-*+])[ ]{{1,4}}{_LINES}{_MORE_BULLETS})(?=\n\n+[^\s\-*+]|\n*\Z)",
        rf"(?P<numbers>[0-9]{{1,9}}(?P<sign>[.)])[ ]{{1,4}}{_LINES}{_MORE_NUMBERS})(?=\n\n+[^\s0-9]|\n*\Z)",
        rf"(?P<table>(?P<head>\|[^\n\\]*\|)[ ]*\n(?P<rule>\|(?:[ ]*:?-+:?[ ]*\|)+)[ ]*{_ROWS}){_ENDS}",
        rf"(?P<quote>{_QUOTED}{_MORE_QUOTED}){_ENDS}",
        r"(?P<definition>\[(?P<name>(?!\^)[^\s\[\]\\][^\[\]\\\n]*)\]:[ ]+(?P<address>[^\s<>\\&()\x00-\x1f\x7f]+)[ ]*)"
        r"(?=\n\n|\n?\Z|\n\[)",
        r"(?P<comment><!--(?!-?>)[\s\S]*?-->[^\n]*)(?=\n|\Z)",
    )
)
_TAG_OF_BLOCK = rf"</?(?:{'|'.join(block_names)})(?=[ >]|/>){_LINE}"
_TAG = rf"(?:</{_TAG_NAME}>|<{_TAG_NAME}{_ATTRIBUTES}[ ]?/?>)[ \t]*+"
# The line after a table's first would make it one, whatever stands in that.
_TAGS = rf"(?P<html>(?ai:{_TAG_OF_BLOCK}|{_TAG})(?!\n[ \t]*[|:\-])" + for_good(rf"\n[ \t]*+[^\s]{_LINE}") + rf"){_ENDS}"


class PlainState(StateBlock):
    """The library's state; where lines begin and end is found for all of them at once."""

    def __init__(self, src: str, md: MarkdownIt, env: Any, tokens: list[Any]) -> None:
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


class PlainBlocks:
    """Reads as many such blocks as follow one another; tags only where `html` is as Markdown has it."""

    def __init__(self, *, html: bool) -> None:
        self._pattern = re.compile(f"{_PLAIN}|{_TAGS}" if html else _PLAIN)

    def read(
        self, text: str, line: int, at: int, tokens: list[BlockToken], definitions: MutableMapping[str, Any]
    ) -> tuple[int, int]:
        """The line and the character after the last of them and its empty lines; the first that is not empty where
        there is none."""
        while text.startswith("\n", at):
            line, at = line + 1, at + 1
        match = self._pattern.match
        while block := match(text, at):
            kind = block.lastgroup or ""
            if kind == "table" and block["head"].count("|") != block["rule"].count("|"):
                break
            if kind == "quote" and not self._quote(tokens, block, line):
                break
            end = block.end()
            following = line + 1 + text.count("\n", at, end)
            at = end + 1
            while text.startswith("\n", at):
                at += 1
            after = following + at - end - 1
            if kind == "paragraph":
                words = block[0]
                if words[-1].isspace():
                    words = mdTrim(words)
                tokens.append(Plain("paragraph_open", [line, following], words, "p"))
            elif kind == "definition":
                _define(definitions, block, line, following)
            elif kind != "quote":
                _MAKERS[kind](tokens, block, line, after if kind in _ENDS_WITH_NEXT else following)
            line = after
        return line, at

    def _quote(self, tokens: list[BlockToken], block: re.Match[str], line: int) -> bool:
        """What stands in a quote is read like any text; false where not all of it can be."""
        if not block[0].rpartition("\n")[2].strip("> "):
            return False  # it ends with an empty line, which may count to what stands before
        end = block.end()
        text = _QUOTE_MARK.sub("", block[0]) + block.string[end : end + 1]
        within: list[BlockToken] = []
        definitions: dict[str, Any] = {}
        _, at = self.read(text, 0, 0, within, definitions)
        if at < len(text) or definitions:
            return False
        tokens.append(Plain("blockquote_open", [line, line + 1 + block[0].count("\n")], tag="blockquote"))
        for token in within:
            if token.map:
                token.map = [line + token.map[0], line + token.map[1]]
            tokens.append(token)
        tokens.append(Plain("blockquote_close", None, tag="blockquote"))
        return True

    def rule(self, state: StateBlock, start: int, end: int, silent: bool) -> bool:
        """The same as a rule of the library."""
        if state.level:
            return False
        tokens: list[Any] = state.tokens  # the library looks at those of its own lists and quotes only
        state.line, _ = self.read(state.src, start, state.bMarks[start], tokens, state.env)
        return state.line > start


def _heading(tokens: list[BlockToken], block: re.Match[str], start: int, end: int) -> None:
    tokens.append(Plain("heading_open", [start, end], mdTrim(block["words"]), f"h{len(block['level'])}"))


def _fence(tokens: list[BlockToken], block: re.Match[str], start: int, end: int) -> None:
    tokens.append(Plain("fence", [start, end], block["code"], "code", block["info"]))


def _html(tokens: list[BlockToken], block: re.Match[str], start: int, end: int) -> None:
    tokens.append(Plain("html_block", [start, end], block.string[block.start() : block.end() + 1]))


def _list(tokens: list[BlockToken], block: re.Match[str], start: int, end: int) -> None:
    name, tag = ("bullet", "ul") if block.lastgroup == "bullets" else ("ordered", "ol")
    tokens.append(Plain(f"{name}_list_open", [start, end], tag=tag))
    line = start
    for item in _ITEM.finditer(block.string, block.start(), block.end()):
        mark, content = item.groups()
        following = line + 1
        if "\n" in content:
            following += content.count("\n")
            content = re.sub(rf"\n[ ]{{1,{len(mark)}}}", "\n", content)
        tokens.append(Plain("paragraph_open", [line, following], mdTrim(content), "p"))
        line += item[0].count("\n")
    tokens.append(Plain(f"{name}_list_close", None, tag=tag))


def _table(tokens: list[BlockToken], block: re.Match[str], start: int, end: int) -> None:
    rows = block[0].split("\n")
    columns = rows[0].count("|") - 1
    tokens.append(Plain("table_open", [start, end], tag="table"))
    for number, row in enumerate(rows):
        if number != 1:
            cells = [*map(mdTrim, row.rstrip(" ")[1:-1].split("|")), *[""] * columns]
            lines = [start + number, start + number + 1]
            tokens += (Plain("inline", lines, cell) for cell in cells[:columns])
    tokens.append(Plain("table_close", None, tag="table"))


def _define(definitions: MutableMapping[str, Any], block: re.Match[str], start: int, end: int) -> None:
    name = normalizeReference(block["name"])
    definition = {"title": "", "href": block["address"], "map": [start, end]}
    if definitions.setdefault("references", {}).setdefault(name, definition) is not definition:
        definitions.setdefault("duplicate_refs", []).append({**definition, "label": name})


_MAKERS: dict[str, Callable[[list[BlockToken], re.Match[str], int, int], None]] = {
    "heading": _heading,
    "fence": _fence,
    "bullets": _list,
    "numbers": _list,
    "table": _table,
    "comment": _html,
    "html": _html,
}
_ENDS_WITH_NEXT = ("bullets", "numbers")  # the library counts the empty lines after a list to it
