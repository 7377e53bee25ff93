"""Excerpts: cut between words if possible, without markup."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.search.excerpt import beginning, ending, excerpt, without_markup
from chunksink.search.page.passage_text import as_html
from chunksink.sinks.document import Document
from chunksink.sinks.reader import Piece
from tests.search.support import family

[DOCUMENT] = family("a.md", "any", metadata={"headings": ["The Book", "Use `it` now"]}).documents
[MARKDOWN] = family("a.md", "any", metadata={"mime_type": "text/markdown"}).documents
[PLAIN] = family("a.md", "any", metadata={"mime_type": "text/plain"}).documents
CHINESE = "Rust 里的所有权是一组规则它管理程序如何使用内存"


def pieces(text: str) -> list[Piece]:
    """The text between ‹ and › is a match."""
    return [Piece(part, match=number % 2 == 1) for number, part in enumerate(re.split("[‹›]", text)) if part]


def displayed(text: str, document: Document = MARKDOWN) -> list[Piece]:
    """As a view shows a snippet."""
    return list(excerpt(without_markup(pieces(text), document), document))


def test_texts_are_cut_between_words() -> None:
    assert beginning("one two", 7) == ending("one two", 7) == "one two"
    assert beginning("one two three", 9) == "one two …"
    assert ending("one two three", 11) == "… two three"


def test_very_long_words_are_cut() -> None:
    assert beginning("a " + "x" * 10, 7) == "a xxxxx…"
    assert ending("x" * 10 + " a", 7) == "…xxxxx a"
    assert beginning(CHINESE, 12) == "Rust 里的所有权是一…"
    assert ending(f"{CHINESE} 和 b", 12) == "…程序如何使用内存 和 b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [the book](https://example.org/a_(b).html) there", "see the book there"),
        ('[a](b.html "What it is") and [c](#d)', "a and c"),
        ("![a cat](cat.png) [![badge](b.svg)](https://example.org/)", "a cat badge"),
        ("请使用[本专用流](https://example.org/x)。", "请使用本专用流。"),
        ("see [the book](https://example.org/a…", "see the book…"),
        ("a [big ‹cat›](c.html) and [its ‹mat›", "a big ‹cat› and [its ‹mat›"),
        ("[‹cat›](‹cat›.html)", "‹cat›"),
        ("## Use it { #use-it }\n\nfirst\n### Then {#then .new}", "Use it\n\nfirst\nThen"),
        ("…startup - shutdown { #startup-shutdown }\n\nWhen you", "…startup - shutdown\n\nWhen you"),
        ("as {#this} and { x }\n## A set { 1, 2 }", "as {#this} and { x }\nA set { 1, 2 }"),
        ("is **kept or dropped**, **both**.", "is kept or dropped, both."),
        ("**a ‹cat› sits** there", "a ‹cat› sits there"),
        ("Use it now\n\nfirst\nsecond", "first\nsecond"),
        ("The Book\nUse it now\n\nfirst", "first"),
        ("\n\nfirst", "first"),
        ("Use ‹it› now\n\na ‹cat› sits", "a ‹cat› sits"),
        ("See :rst:dir:`automodule:members`, :meth:`~app.Sphinx.add`.", "See automodule:members, app.Sphinx.add."),
        (":ref:`the book\n<a-target>`, :doc:`/usage/index`", "the book, /usage/index"),
    ],
)
def test_excerpt_shows_the_words_of_links_headings_bold_and_roles(text: str, shown: str) -> None:
    """Headings that are shown above the text are not repeated."""
    assert displayed(text, DOCUMENT) == pieces(shown)


@pytest.mark.parametrize(
    "text",
    [
        "[note] (an aside), list[0](x.y), f()[1](a/b), [this](auto x), [&](auto)",
        r"[a-z](.*) and [0-9](\.[0-9]+)? and [^/](a/b|c)",
        "[never closed](https://example.org/",
        "[" * 500 + "](" * 500,
        "‹list›[0](x.y) ‹list›**n + y** f(**x**‹n›",
        "[here](https://example.org/‹cat›.html)",
        "…said {#this} and more\nof {#it}",
        "f(**a, **b), 2**3 + 4**2, ** no **, **cut off",
        "a #tag, #5, C# and\n#no heading",
        "**" * 5000,
        "Use it now",
        "Use it now and then\n\nfirst",
        "first\nUse it now\nsecond",
        "a::`x`, `:ref:`, ``:ref:`x```, key:value:`x`, 10:30:`x`",
        ":ref:`the book <a-‹cat›>`",
    ],
)
def test_excerpt_keeps_what_is_no_markup_and_markup_with_matches(text: str) -> None:
    assert displayed(text, DOCUMENT) == pieces(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Set up\n======\n\na cat\n\nThen\n---\nsits", "Set up\n\na cat\n\nThen\nsits"),
        (":::warning\na cat\n:::\n::: tip A title\nsits", "a cat\n::: tip A title\nsits"),
        ("a cat\n```vue-html\nmeows\n```\n~~~\n", "a cat\nmeows\n"),
        ("| a | cat |\n|---|:---:|\n| sits | - |\n", "a cat\nsits -\n"),
        ("…b | ‹cat› |\n| sits\\|lies | …", "…b ‹cat›\nsits|lies …"),
        (
            "a *big* _‹cat›_ ~~sits~~ ***lies*** in snake_case_names, 2 * 3 * 4",
            "a big ‹cat› sits lies in snake_case_names, 2 * 3 * 4",
        ),
        ("**bold with `co_de_`** and [`‹cat›`](a/b) `` a`b ``", "bold with co_de_ and ‹cat›  a`b "),
        ("```sh\n# a **comment**\n‹cat› | [x](a/b)\n```\n*then*", "# a **comment**\n‹cat› | [x](a/b)\nthen"),
        (r"\*no\* `\*` \# 1", r"*no* \* # 1"),
        ("see [docs][a]\n\n[a]: https://example.org/x\n[a cat]: cat.html#a 'Cats'\n", "see [docs][a]\n\n"),
        ('a <dfn title="x"><strong>big</strong></dfn> cat<br>sits<br/>', "a big cat sits "),
        ("a `<b>` and ``<b>`` tag, `<i> cut off <b>…", "a <b> and <b> tag, <i> cut off <b>…"),
        ('…title="Cross-Origin Resource Sharing">CORS, check', "…CORS, check"),
        ('<p align="center"><img src="x.png"></p>\na cat\n</div>\n<Tabs.Item />\nsits', "a cat\nsits"),
    ],
)
def test_excerpt_of_markdown_removes_tags_and_lines_of_markup(text: str, shown: str) -> None:
    assert displayed(text, MARKDOWN) == pieces(shown)


@pytest.mark.parametrize("text", ["Set up\n======\n", "| a | cat |\n|---|---|\n", "a <b>cat</b>", "`a` _b_ \\*", "***"])
def test_excerpt_of_other_formats_keeps_lines_tags_tables_code_and_emphasis(text: str) -> None:
    assert displayed(text, DOCUMENT) == pieces(text)
    assert displayed(f"# {text} **a** [x](a/b)", PLAIN) == pieces(f"# {text} **a** [x](a/b)")


@pytest.mark.parametrize(
    "text",
    [
        "a == b\n-- dashes\n=> x\n--- and | - | --\n: no, :: no",
        "a[0]: x\n[never]:\n[no](x): y",
        "a dog\n```‹cat›\n",
        "a dog\n[dog]: https://example.org/‹cat›\n",
        "<p> and _cut off *here, __init__ and ** no **",
        "List<String>, a < b > c, <p>, <div class='x'>, <bold>, <Button>",
        "…where a > b and 'c' > 'd' holds",
        'a <dfn title="‹cat›">big',
    ],
)
def test_excerpt_of_markdown_keeps_what_is_no_markup_and_markup_with_matches(text: str) -> None:
    assert displayed(text, MARKDOWN) == pieces(text)


def test_excerpt_of_a_very_long_text_keeps_both_ends() -> None:
    assert [piece.match for piece in displayed(f"{'x' * 20_000}‹{'cat' * 5_000}› sits", DOCUMENT)] == [0, 1, 0]
    long = displayed("a" * 20_000 + " the fat ‹cat›", DOCUMENT)
    assert long[0].text.endswith("a the fat ")
    assert len(long[0].text) == 10_000


def test_excerpt_does_not_repeat_title_and_headings() -> None:
    text = "The Title\n## A\n\na **cat**"
    metadata = {"title": "The Title", "headings": ["A"], "mime_type": "text/markdown"}
    [document] = family("a.md", text, metadata=metadata).documents
    assert displayed(text, document) == pieces("a cat")


@pytest.mark.parametrize(
    ("before", "window", "after", "shown"),
    [
        ("```py\n# a\n", "…**b** ‹cat›\n# c…", "\n```\n", "…**b** ‹cat›\n# c…"),
        ("see [the ", "…big ‹cat›](https://example.org/x) sits…", " on", "…big ‹cat› sits…"),
        ("see [the](https://", "…example.org/x) ‹cat› [sits](https…", "://a.b/)", "… ‹cat› sits…"),
        ("see ", "…a ‹cat› [that…", " sits](a/b)", "…a ‹cat› that…"),
        ("see **the ", "…big** ‹cat› _in…", " it_", "…big ‹cat› in…"),
        ("the `big ", "…*fat*` ‹cat› `*a…", "*`", "…*fat* ‹cat› *a…"),
    ],
)
def test_snippet_that_begins_or_ends_within_markup_shows_no_rest_of_it(
    before: str, window: str, after: str, shown: str
) -> None:
    text = f"{before}{re.sub('[…‹›]', '', window)}{after}"
    [document] = family("a.md", text, metadata={"mime_type": "text/markdown"}).documents
    assert displayed(window, document) == pieces(shown)


WORDS = st.integers(1, 999).map("w{}".format)


def inline(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    marks = ("**{}**", "*{}*", "_{}_", "~~{}~~", "`{}`", "[{}](https://u/{{}}.html)", "![{}](u.png)", "<b>{}</b>", "{}")
    return st.builds(str.format, st.sampled_from(marks), inner)


SENTENCES = st.lists(inline(st.lists(WORDS, min_size=1, max_size=3).map(" ".join)), min_size=1, max_size=4).map(
    " ".join
)
BLOCKS = st.one_of(
    SENTENCES,
    SENTENCES.map("## {}".format),
    SENTENCES.map("- {}".format),
    SENTENCES.map("```py\n# {}\n```".format),
    st.lists(SENTENCES, min_size=2, max_size=2).map("| {0[0]} | {0[1]} |\n|---|---|\n| {0[1]} | {0[0]} |".format),
)


@given(st.lists(BLOCKS, min_size=1, max_size=5).map("\n\n".join), st.sets(st.integers(0, 60)))
def test_words_of_a_snippet_are_those_of_the_rendered_text(text: str, found: set[int]) -> None:
    """Whichever words are marked, as long as readers see them."""
    html = as_html(text, (), markdown=True)
    visible = re.findall(r"w\d+", re.sub(r"</?(?:\w+)[^>]*>", "", html))
    numbers = iter(range(1000))
    marked = re.sub(r"w\d+", lambda word: f"‹{word[0]}›" if next(numbers) in found else word[0], text)
    shown = displayed(marked)
    assert re.findall(r"w\d+", "".join(piece.text for piece in shown)) == visible
    assert [piece.text for piece in shown if piece.match] == re.findall("‹(.*?)›", marked)
    outside_code = re.sub("```.*?```|`.*?`", "", text, flags=re.DOTALL)
    if outside_code == text:
        assert not re.search(r"\]\(|[*_~`#|<]", "".join(piece.text for piece in shown))
