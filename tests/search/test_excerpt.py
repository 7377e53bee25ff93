"""Parts of texts: whole words, and of a script without spaces as much as there is room for."""

from __future__ import annotations

import pytest

from chunksink.search.excerpt import beginning, ending, excerpt
from chunksink.sinks.reader import Piece
from tests.search.support import family

HEADINGS = ["The Book", "Use `it` now"]
[DOCUMENT] = family("a.md", "any", metadata={"headings": HEADINGS}).documents
[MARKDOWN] = family("a.md", "any", metadata={"mime_type": "text/markdown"}).documents
CHINESE = "Rust 里的所有权是一组规则它管理程序如何使用内存"


def test_what_fits_is_shown_whole() -> None:
    assert beginning("one two", 7) == ending("one two", 7) == "one two"


def test_words_stay_whole() -> None:
    assert beginning("one two three", 9) == "one two …"
    assert ending("one two three", 11) == "… two three"


def test_a_giant_is_cut_through() -> None:
    assert beginning("x" * 10, 7) == "xxxxxxx…"
    assert beginning("a " + "x" * 10, 7) == "a xxxxx…"
    assert ending("x" * 10 + " a", 7) == "…xxxxx a"


def test_a_script_without_spaces() -> None:
    assert beginning(CHINESE, 12) == "Rust 里的所有权是一…"
    assert ending(CHINESE, 12) == "…则它管理程序如何使用内存"
    assert ending(f"{CHINESE} 和 b", 12) == "…程序如何使用内存 和 b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [the book](https://example.org/a_(b).html) there", "see the book there"),
        ('[a](b.html "What it is") and [c](#d)', "a and c"),
        ("![a cat](cat.png) [![badge](b.svg)](https://example.org/)", "a cat badge"),
        ("[](x.html)", ""),
        ("请使用[本专用流](https://example.org/x)。", "请使用本专用流。"),
        ("see [the book](https://example.org/a…", "see the book…"),
        ("[note] (an aside), list[0](x.y), f()[1](a/b), [this](auto x), [&](auto)", ...),
        (r"[a-z](.*) and [0-9](\.[0-9]+)? and [^/](a/b|c)", ...),
        ("[never closed](https://example.org/", ...),
        ("[" * 500 + "](" * 500, ...),
    ],
)
def test_links_are_shown_as_their_words(text: str, shown: str) -> None:
    assert "".join(piece.text for piece in excerpt([Piece(text)], DOCUMENT)) == (text if shown is ... else shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("## Set up\n\nfirst\n### Then", "Set up\n\nfirst\nThen"),
        ("## Use it { #use-it }\n\nfirst\n### Then {#then .new}", "Use it\n\nfirst\nThen"),
        ("…startup - shutdown { #startup-shutdown }\n\nWhen you", "…startup - shutdown\n\nWhen you"),
        ("…said {#this} and more\nof {#it}", ...),
        ("as {#this} and { x }\n## A set { 1, 2 }", "as {#this} and { x }\nA set { 1, 2 }"),
        ("is **kept or dropped**, **both**.", "is kept or dropped, both."),
        ("f(**a, **b), 2**3 + 4**2, ** no **, **cut off", ...),
        ("a #tag, #5, C# and\n#no heading", ...),
        ("**" * 5000, ...),
    ],
)
def test_headings_and_what_is_bold_are_shown_without_their_marks(text: str, shown: str) -> None:
    assert "".join(piece.text for piece in excerpt([Piece(text)], DOCUMENT)) == (text if shown is ... else shown)
    bold = excerpt([Piece("**a "), Piece("cat", match=True), Piece(" sits** there")], DOCUMENT)
    assert bold == [Piece("a "), Piece("cat", match=True), Piece(" sits there")]
    for code in ("[0](x.y)", "**n + y**"):
        assert excerpt([Piece("list", match=True), Piece(code)], DOCUMENT) == [Piece("list", match=True), Piece(code)]
    assert excerpt([Piece("f(**x**"), Piece("n", match=True)], DOCUMENT) == [Piece("f(**x**"), Piece("n", match=True)]


def test_what_was_found_stays_marked() -> None:
    found = [Piece("a [big "), Piece("cat", match=True), Piece("](c.html) and [its "), Piece("mat", match=True)]
    in_address = [Piece(" [here](https://example.org/"), Piece("cat", match=True), Piece(".html)")]
    assert excerpt([*found, *in_address], DOCUMENT) == [
        Piece("a big "),
        Piece("cat", match=True),
        Piece(" and [its "),
        Piece("mat", match=True),
        *in_address,
    ]
    giant = [Piece("x" * 20_000), Piece("cat" * 5_000, match=True), Piece(" sits")]
    assert [piece.match for piece in excerpt(giant, DOCUMENT)] == [False, True, False]
    long = excerpt([Piece("a" * 20_000 + " the fat "), Piece("cat", match=True)], DOCUMENT)
    assert long[0].text.endswith("a the fat ")
    assert len(long[0].text) == 10_000
    in_both = [Piece("["), Piece("cat", match=True), Piece("]("), Piece("cat", match=True), Piece(".html)")]
    assert excerpt(in_both, DOCUMENT) == [Piece("cat", match=True)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Use it now\n\nfirst\nsecond", "first\nsecond"),
        ("The Book\nUse it now\n\nfirst", "first"),
        ("Use it now", ...),
        ("Use it now\n \n", ...),
        ("Use it now and then\n\nfirst", ...),
        ("first\nUse it now\nsecond", ...),
        ("\n\nfirst", "first"),
        ("", ...),
    ],
)
def test_headings_that_are_shown_above_are_not_repeated(text: str, shown: str) -> None:
    assert "".join(piece.text for piece in excerpt([Piece(text)], DOCUMENT)) == (text if shown is ... else shown)


def test_what_was_found_below_the_headings_stays_marked() -> None:
    found = [Piece("Use "), Piece("it", match=True), Piece(" now\n\na "), Piece("cat", match=True), Piece(" sits")]
    assert excerpt(found, DOCUMENT) == [Piece("a "), Piece("cat", match=True), Piece(" sits")]
    assert excerpt([Piece("Use it now\n"), Piece("cat", match=True)], DOCUMENT) == [Piece("cat", match=True)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Set up\n======\n\na cat\n\nThen\n---\nsits", "Set up\n\na cat\n\nThen\nsits"),
        ("a == b\n-- dashes\n=> x", ...),
        (":::warning\na cat\n:::\n::: tip A title\nsits", "a cat\n::: tip A title\nsits"),
        ("a cat\n```vue-html\nmeows\n```\n~~~\n", "a cat\nmeows\n"),
        ("| a | cat |\n|---|:---:|\n| sits | - |\n", "| a | cat |\n| sits | - |\n"),
        ("--- and | - | --\n: no, :: no", ...),
        (
            "see [the docs][docs]\n\n[docs]: https://example.org/x\n[a cat]: cat.html#a 'Cats'\n",
            "see [the docs][docs]\n\n",
        ),
        ("a[0]: x\n[never]:\n[no](x): y", ...),
    ],
)
def test_lines_that_are_marks_alone_are_not_shown(text: str, shown: str) -> None:
    assert "".join(piece.text for piece in excerpt([Piece(text)], MARKDOWN)) == (text if shown is ... else shown)
    assert excerpt([Piece(text)], DOCUMENT) == [Piece(text)], "in any other text they are content"


def test_marks_in_which_alone_something_was_found_are_shown() -> None:
    for mark in ("```", "[dog]: https://example.org/"):
        found = [Piece(f"a dog\n{mark}"), Piece("cat", match=True), Piece("\n")]
        assert excerpt(found, MARKDOWN) == found


def test_an_excerpt_stands_below_its_title_and_headings() -> None:
    text = "The Title\n## A\n\n```html\na **cat**"
    [document] = family(
        "a.md", text, metadata={"title": "The Title", "headings": ["A"], "mime_type": "text/markdown"}
    ).documents
    assert "".join(piece.text for piece in excerpt([Piece(text)], document)) == "a cat"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a <dfn title="x"><strong>big</strong></dfn> cat<br>sits<br/>', "a big cat sits "),
        ('<a href="x.html">the docs</a>, press <kbd>Ctrl</kbd>', "the docs, press Ctrl"),
        ("a `<b>` and ``<b>`` tag, `<i> cut off <b>", ...),
        ("List<String>, a < b > c, <p>, <div class='x'>, <bold>, <Button>", ...),
        ('…title="Cross-Origin Resource Sharing">CORS, check', "…CORS, check"),
        ("…where a > b and 'c' > 'd' holds", ...),
        ('<p align="center"><img src="x.png"></p>\na cat\n</div>\n<Tabs.Item />\nsits', "a cat\nsits"),
    ],
)
def test_tags_in_markdown_are_not_shown(text: str, shown: str) -> None:
    [document] = family("a.md", text, metadata={"mime_type": "text/markdown"}).documents
    assert "".join(piece.text for piece in excerpt([Piece(text)], document)) == (text if shown is ... else shown)
    assert excerpt([Piece(text)], DOCUMENT) == [Piece(text)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "See :rst:dir:`automodule:members` and :meth:`~app.Sphinx.add`.",
            "See automodule:members and app.Sphinx.add.",
        ),
        (":ref:`the book\n<a-target>`, :doc:`/usage/index`", "the book, /usage/index"),
        ("a::`x`, `:ref:`, ``:ref:`x```, key:value:`x`, 10:30:`x`", ...),
    ],
)
def test_roles_are_shown_as_their_words(text: str, shown: str) -> None:
    assert "".join(piece.text for piece in excerpt([Piece(text)], DOCUMENT)) == (text if shown is ... else shown)


@pytest.mark.parametrize("around", [('a <dfn title="', '">big</dfn>'), (":ref:`the book <a-", ">`")])
def test_a_tag_or_a_target_in_which_alone_something_was_found_is_shown(around: tuple[str, str]) -> None:
    before, after = around
    [document] = family("a.md", "any", metadata={"mime_type": "text/markdown"}).documents
    shown = excerpt([Piece(before), Piece("cat", match=True), Piece(after)], document)
    assert Piece("cat", match=True) in shown and shown[0] == Piece(before)
