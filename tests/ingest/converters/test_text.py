"""Plain text keeps its marks; underlined headings become sections, and one that begins the text is its title."""

import re
from statistics import mean
from textwrap import dedent

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.markdown.policy import POLICIES, Policy
from chunksink.ingest.formats.text import TextFormat
from tests.conftest import examples
from tests.ingest.converters.support import Reading, read

REST = """========
The Tool
========

What it is for.

Use
---
Call it::

    Heading
    -------

More
~~~~
Much more.
"""


def plain(text: str, name: str = "a.txt") -> Reading:
    return read(TextFormat(), text.encode(), name)


def test_text_keeps_its_marks_and_blank_lines() -> None:
    text = "# no heading\n\n* no   list_item\n1. two\n\n\n" + "A sentence is here. " * 300
    found = plain(text)
    assert found.records[0]["text"].startswith("# no heading\n\n* no list_item\n1. two\n\n\nA sentence")
    assert found.headings == []
    assert "".join(found.text.split()) == "".join(text.split())
    assert (found.metadata["title"], found.metadata["mime_type"]) == ("a", "text/plain")
    assert plain(" \n \n").is_empty
    assert plain("").codes == ["SOURCE_EMPTY"]
    assert plain("a\0b").codes == ["NUL_REMOVED"]
    with pytest.raises(SourceFailed, match="not UTF-8"):
        read(TextFormat(), b"caf\xe9")


def test_text_of_terminal_is_what_a_person_reads() -> None:
    assert plain("\x1b[1;31mBold\x1b[0m quagga\n\x1b[2Kdone\n").text == "Bold quagga\ndone"
    assert plain("N\bNA\bAM\bME\bE\n   _\bl_\bs - list\n").text == "NAME\n   ls - list"


def test_code_has_its_file_name_as_title_and_line_numbers_as_anchors() -> None:
    lines = [f"def f{number}(a, b):\n    return a  +  b\n" for number in range(200)]
    found = plain("\ufeff\r\n" + "\n".join(lines).replace("\n", "\r\n"), "src/index.py")
    assert found.metadata["title"] == "index.py"
    assert len(found.records) > 2
    for record in found.records:
        line = int(record["locator"]["anchor"].removeprefix("L"))
        expected = ["", *"\n".join(lines).split("\n")][line - 1]
        assert record["text"].split("\n")[0] == expected, line


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_code_keeps_its_lines_except_for_a_common_indentation(policy: Policy) -> None:
    method = (
        '    def sail{0}(self):\n        """Go.  Always."""\n\n        return {{\t"a  b": {0},\n            1:  2}}\n'
    )
    function = "def row(boat):\n    if boat:\n\n        boat.row()\n\n    return  boat\n"
    code = "class Boat:\n" + "\n".join(map(method.format, range(60))) + "\n\n" + "\n\n".join([function] * 60)
    records = read(TextFormat(policy), code.encode(), "boat.py").records
    begins_deeper = 0
    for record in records:
        first = int(record["locator"]["anchor"].removeprefix("L")) - 1
        lines = code.split("\n")[first : first + record["text"].count("\n") + 1]
        assert record["text"] == dedent("\n".join(lines))
        assert record["metadata"]["kind"] == "code"
        begins_deeper += record["text"].startswith(" ")
    assert begins_deeper > 0
    assert mean(record["metadata"]["token_count"] for record in records) > policy.target * 0.8


@pytest.mark.parametrize(
    "code",
    ['"""Rows.\n\nBoats\n=====\n"""\n', "Boats\n-----\n", "= Boats\n\ntext\n", "#########\n# Boats #\n#########\n"],
)
def test_only_text_has_headings(code: str) -> None:
    found = plain(code, "src/boat.py")
    assert (found.text, found.metadata["title"], found.headings) == (code.rstrip(), "boat.py", [])
    assert found.records[0]["locator"] == {"anchor": "L1"}


@pytest.mark.parametrize("separator", ["\f", "\n\f\n", "\v", "\x85", "\u2028", "\r", "\r\r\n"])
def test_code_has_the_line_numbers_of_editors(separator: str) -> None:
    code = f"a{separator}b\n\n" + "\n\n".join(f"def f{number}():\n    pass" for number in range(200))
    lines = re.split("\r\n|[\r\n]", code)
    for record in plain(code, "a.py").records[1:]:
        line = int(record["locator"]["anchor"].removeprefix("L"))
        assert record["text"].split("\n")[0] == lines[line - 1]


def test_text_in_which_lines_were_added_has_no_line_numbers() -> None:
    assert plain("Page 1\n\fPage 2\n").text == "Page 1\n\nPage 2"
    assert "locator" not in plain("Page 1\n\fPage 2\n").records[0]
    assert plain("Page 1\n\nPage 2\n\f").records[0]["locator"] == {"anchor": "L1"}


def test_underlined_lines_are_headings() -> None:
    found = plain(REST)
    assert found.headings == [["The Tool"], ["The Tool", "Use"], ["The Tool", "Use", "More"]]
    assert found.metadata["title"] == "The Tool"
    assert "locator" not in found.records[0]
    assert "Heading\n    -------" in found.text
    assert found.records[2]["text"].startswith("More\n"), "its words alone are text"


@pytest.mark.parametrize(
    "text",
    [
        *("two lines\nand\n-----\n", "A    B\n---  ---\n", "```\nls\n```\n", "* a\n* b\n", "= = =\ntext\n"),
        *("text\n\n= later sign\n", "# no keyword\n\n* a\n"),
    ],
)
def test_line_that_resembles_a_heading_is_text(text: str) -> None:
    assert plain(text).headings == []
    assert plain(text).text.split() == text.split()


ASCIIDOC = """////
License
////
// comment
:toc: left

[#tool]
= The Tool
Ada

Usage
-----

== Use ==
=== More
"""
ORG = """# -*- mode: org -*-
#+AUTHOR: Ada
#+title:  The Tool

What it is for.
-----
* Use
** TODO More
*bold* words
"""


@pytest.mark.parametrize(
    ("text", "title", "headings"),
    [
        (ASCIIDOC, "The Tool", [["The Tool"], ["The Tool", "Use"], ["The Tool", "Use", "More"]]),
        ("== Use\n\n= Top\n", "Use", [["Use"], ["Top"]]),
        (ORG, "The Tool", [["Use"], ["Use", "TODO More"]]),
        ("#+AUTHOR: Ada\n* Use\n", "Use", [["Use"]]),
        ("#+AUTHOR: Ada\nWords.\n* Use\n", "a", [["Use"]]),
        (":PROPERTIES:\n:ID: 1\n:END:\n#+TITLE: Tool\n", "Tool", []),
    ],
)
def test_headings_of_asciidoc_and_org(text: str, title: str, headings: list[list[str]]) -> None:
    found = plain(text)
    assert (found.metadata["title"], found.headings) == (title, headings)


def test_text_of_asciidoc_and_org_stays() -> None:
    assert plain(ASCIIDOC).text.endswith("[#tool]\n\nThe Tool\nAda\n\nUsage\n-----\n\nUse\n\nMore")
    assert plain(ORG).text.endswith("What it is for.\n-----\n\nUse\n\nTODO More\n*bold* words")


@pytest.mark.parametrize(
    ("before", "title"),
    [
        (".. _tool:\n\n", "The Tool"),
        (".. comment\n   of two lines\n\n..\n   another\n\n:orphan:\n:author: Ada\n\n", "The Tool"),
        ("Words.\n\n", "a"),
        ("   Words.\n\n", "a"),
        (".. comment\n\nWords.\n\n", "a"),
    ],
)
def test_title_may_come_below_labels_comments_and_fields(before: str, title: str) -> None:
    assert plain(before + REST).metadata["title"] == title


@settings(max_examples=examples(300), deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf"]), max_size=200))
@example("\u00a0 a\n  \u00a0b")
def test_all_text_arrives(text: str) -> None:
    kept = "".join(character for character in text if character.isalnum())
    for name in ("a.txt", "a.py"):
        assert "".join(character for character in plain(text, name).text if character.isalnum()) == kept
