"""Headings of plain text: underlined, of AsciiDoc and of Org; and what only looks like one."""

import time
from typing import Any

import pytest

from chunksink.producers.markdown import SourceVersion
from chunksink.producers.text import TextChunker
from chunksink.producers.text.headings import find_headings
from tests.producers.support import CREATED_AT, PRODUCER

REST = """.. _top:

========
The Tool
========

What it is for.

.. _use:
.. _usage:

Use
---
Call it::

    Heading
    -------

More
~~~~

Much more.

----

After a rule.

Set up
------
1. Begin
"""
ASCIIDOC = """// of the team
:toc:

= The Tool
Somebody <a@b.c>

What it is for.

== Use ==

----
== no heading
----

=== More

Much more.

== Set up
Begin.
"""
OLD_ASCIIDOC = """The Tool
========
Somebody <a@b.c>

What it is for.

[[use]]
Use
---

----
No heading
----------
----

```ruby
== no heading
```

More
~~~~
Much more.

## Set up
Begin.
"""
ORG = """#+TITLE: Said

* The Tool
What it is for.
** TODO [#A] Use :work:@home:
#+begin_src org
,* no heading
#+end_src
*** More
Much more. *bold* text
** Set up
Begin.
"""


def records(text: str, uri: str) -> list[Any]:
    data = text.encode()
    return TextChunker().chunks(data, SourceVersion.of(uri, data), created_at=CREATED_AT, producer=PRODUCER)


@pytest.mark.parametrize(
    ("uri", "text"), [("a.rst", REST), ("a.adoc", ASCIIDOC), ("b.adoc", OLD_ASCIIDOC), ("a.org", ORG), ("README", REST)]
)
def test_a_text_has_the_sections_of_its_headings(uri: str, text: str) -> None:
    chunks = [chunk for chunk in records(text, uri) if chunk["metadata"]["headings_path"]]
    assert [chunk["metadata"]["headings_path"] for chunk in chunks] == [
        ["The Tool"],
        ["The Tool", "Use"],
        ["The Tool", "Use", "More"],
        ["The Tool", "Set up"],
    ]
    assert {chunk["metadata"]["title"] for chunk in chunks} == {"Said" if uri == "a.org" else "The Tool"}
    assert chunks[2]["text"].startswith("More\n"), "its words alone are text"
    assert chunks[0]["text"].rstrip().endswith("What it is for."), "what leads to the next heading is its mark"
    assert ("Heading\n    -------" if uri in ("a.rst", "README") else "o heading") in chunks[1]["text"]


def test_levels_follow_the_order_in_which_rules_are_met() -> None:
    text = "One\n~~~\n\nTwo\n===\n\nThree\n~~~\n\n===\nOwn\n===\n\nText\n"
    found = [(heading.level, heading.words) for heading in find_headings(text.split("\n"), "a.txt")]
    assert found == [(1, "One"), (2, "Two"), (3, "Own")], "the rule below Three is shorter than it is"


@pytest.mark.parametrize(
    "text",
    [
        "two lines\nand a rule\n----------\n",
        "  set in\n--------\n",
        "A    B\n---  ---\n",
        "\n-----\n-----\n",
        "+--+\n|  |\n+--+\n----\n",
        "words\n--\n",
        "yes\n...\n",
        "```\nls\n```\n",
        "words that are longer\n-----\n",
        "x" * 2000 + "\n" + "-" * 2000,
    ],
)
def test_what_only_looks_like_a_heading_is_text(text: str) -> None:
    assert list(find_headings(text.split("\n"), "a.rst")) == []


def test_short_words_and_many_levels() -> None:
    assert [heading.words for heading in find_headings(["uv", "==", "", "x", "-"], "a.rst")] == ["uv"]
    stars = "\n".join("*" * level + f" level {level}" for level in range(1, 400))
    assert max(heading.level for heading in find_headings(stars.split("\n"), "a.org")) == 12


def test_a_heading_of_asciidoc_may_stand_right_below_an_attribute() -> None:
    for above in (":name: value", ":!name:", "// a comment", "[role]"):
        assert [heading.words for heading in find_headings([above, "== Use"], "a.adoc")] == ["Use"]


def test_other_texts_have_none() -> None:
    for uri in ("a.log", "a.py", "a.srt"):
        assert list(find_headings(REST.split("\n"), uri)) == []


def test_the_first_of_several_versions_is_no_title() -> None:
    assert (
        records("Version 2.0\n-----------\n\nText\n\nVersion 1.0\n-----------\n\nText", "CHANGES.rst")[0]["metadata"][
            "title"
        ]
        == "CHANGES"
    )
    assert records("Version 2.0\n-----------\n\nText", "CHANGES.rst")[0]["metadata"]["title"] == "Version 2.0"
    assert records("Text\n\nInstall\n-------\n\nText", "a.txt")[0]["metadata"]["title"] == "a", "it begins otherwise"


@pytest.mark.parametrize(
    "first", ['"Not so fast," he said.', "* a point", "[x] done", "    set in", "(1) one", "-- a dash"]
)
def test_a_heading_below_text_is_no_title(first: str) -> None:
    assert records(f"{first}\n\nInstall\n-------\n\nText", "h.txt")[0]["metadata"]["title"] == "h"


def test_comments_above_it_are_not_text() -> None:
    above = ".. a comment\n   that goes on\n\n   and on\n\n:orphan:\n\n.. _install:\n\n"
    assert records(f"{above}Install\n-------\n\nText", "h.rst")[0]["metadata"]["title"] == "Install"


def test_what_org_says_of_a_heading_is_found_in_its_text() -> None:
    (chunk,) = records("* TODO [#A] Use it :work:home:\nText", "a.org")
    assert chunk["metadata"]["headings_path"] == ["Use it"]
    assert chunk["text"] == "TODO [#A] Use it :work:home:\nText"


@pytest.mark.parametrize(
    "text",
    [
        "Some words that introduce it\n----\n== no heading\n----\n",
        "A paragraph\nof two lines\n------------\nx\n",
        "words\n== go on\n",
    ],
)
def test_what_only_looks_like_a_heading_in_asciidoc(text: str) -> None:
    assert list(find_headings(text.split("\n"), "a.adoc")) == []


def test_headings_are_found_in_time_in_proportion() -> None:
    started = time.process_time()
    for uri, text in (
        ("a.org", "* a" + " " * 200_000 + "b"),
        ("a.org", "* " + "a :b" * 100_000),
        ("a.adoc", "= " + "= " * 100_000),
        ("a.adoc", "x\n" + "[" * 200_000 + "\nTitle\n-----"),
        ("a.rst", "-" * 200_000 + "\n" + "a" * 200_000 + "\n" + "-" * 200_000),
        ("a.rst", "Title\n=====\n" * 20_000),
    ):
        list(find_headings(text.split("\n"), uri))
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (":mod:`sphinx.ext.autodoc` -- Documentation", "sphinx.ext.autodoc -- Documentation"),
        (":class:`~app.Sphinx`, ``conf.py`` and :ref:`the rest <rest>`", "app.Sphinx, conf.py and the rest"),
        ("The `book <https://example.org/>`_ and a `target`_", "The book and a target"),
        (r"Options \*args and \`x", "Options *args and `x"),
        ("At 10:30:`x`, ``a`` and ``b``, a::`b`", "At 10:30:`x`, a and b, a::`b`"),
    ],
)
def test_underlined_headings_are_carried_as_they_are_read(line: str, words: str) -> None:
    [heading] = find_headings([line, "=" * len(line)], "a.rst")
    assert (heading.text, heading.words) == (line, words)


@pytest.mark.parametrize(
    ("uri", "line", "words"),
    [
        ("a.adoc", "== Start with `require` and `+a+`", "Start with require and a"),
        ("a.adoc", "== See xref:b.adoc#c[the rest] or https://example.org/[that^]", "See the rest or that"),
        ("a.adoc", "== A <<b,word>>, a `b and c[d]", "A word, a `b and c[d]"),
        ("a.org", "* Set =x= and ~y z~, a=b=c", "Set x and y z, a=b=c"),
        ("a.org", "* TODO The [[https://example.org][book]]", "The book"),
    ],
)
def test_headings_are_carried_as_they_are_read(uri: str, line: str, words: str) -> None:
    assert [heading.words for heading in find_headings([line], uri)] == [words]


def test_marks_without_end_cost_little() -> None:
    started = time.process_time()
    for mark in (":a:`", "``", "`", "<<a,", "[[a][", "=a", "xref:"):
        list(find_headings([mark * 5000, "=" * 25_000], "a.rst"))
        for uri in ("a.adoc", "a.org"):
            list(find_headings([f"== {mark * 5000}", f"* {mark * 5000}"], uri))
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("header", "title"),
    [
        ("PEP: 8\nTitle: Style Guide\nAuthor: Guido,\n        Barry\n", "Style Guide"),
        ("\nFrom: a@b.org\nSubject: Re: the roof\nDate: Mon, 1 Jan 2024\n", "Re: the roof"),
        ("Subject: of the letter\nTitle: of the page\n", "of the page"),
        (":Author: Ann\n:Title: The long\n    name\n", "The long name"),
        ("Title:\n   Below\nStatus: Draft\n", "Below"),
        ("Title: alone\n", "h"),
        ("Title: of a play\nthat goes on: here\n", "h"),
        ("Name: x\nTitle:\n", "h"),
        ("Note: a\nTip: b\n", "h"),
    ],
)
def test_a_header_of_fields_says_the_title(header: str, title: str) -> None:
    chunk = records(f"{header}\nText", "h.rst")[0]
    assert chunk["metadata"]["title"] == title
    assert "Title" not in header or "Title" in chunk["text"], "all of it stays text"
