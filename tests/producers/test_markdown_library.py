"""The parser's short cuts find the blocks, link definitions and links that the library finds with all its rules."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from producers.markdown import normalise
from producers.markdown.links import find_links, links_of
from producers.markdown.parser import MAX_NESTING, link_definition, parse_blocks
from tests.conftest import examples
from tests.producers.support import commonmark_examples, corpus
from tests.producers.test_markdown_properties import documents

# Lines that begin a block, interrupt a paragraph, make it a heading or a table, or almost do.
_LINES = [
    *("+", "+ a", "+a", "*", "* a", "*\ta", "*a", "-", "- a", "-a", "1. a", "1)", "1.", "2. a", "1.a", "12 a"),
    *("000000001. a", "1234567890. a", "___", "__", "***", "_ _ _", "* * *", "*_*", "- - -", "--", "---", "-- a"),
    *("=", "===", "= =", "==a", "**b** c", "_e_ f", "*e*", "```", "``` a`b", "``", "`c` d", "~~~", "~~", "# h", "#h"),
    *("#", "####### h", ">q", ">", "> q", "<div>", "<b>", "<b> c", "<!-- c", "-->", "</p>", "<a@b>", "<script>"),
    *(
        "[r]: /u",
        "[^1]: /u",
        "[r]:",
        "/u",
        "'t'",
        r"[a\]b]: /u",
        "[a",
        "b]: /u 't'",
        "[a][b]",
        "[x](y): z",
        "[ ]: /u",
        r"[a]\: /u",
    ),
    *(
        "a | b",
        "# a | b",
        "> a | b",
        "1. a | b",
        "<b>a | b",
        "[a | b",
        "-|-",
        ":-|-:",
        "|-|-|",
        "- | -",
        ":|",
        "| a | b",
    ),
    *(
        "",
        "text",
        "    code",
        "\tcode",
        "   text",
        "é",
        "\u00a0a",
        "中",
        r"\# a",
        '"q"',
        "(p)",
        "&c",
        "!",
        "^",
        "{",
        "$",
        "%",
    ),
]
_BEFORE = ["", "", "", " ", "   ", "    ", "\t", "> ", ">", "- ", "1. ", "  - ", "-  ", "> - "]
_heads = st.lists(
    st.builds("{}{}".format, st.sampled_from(_BEFORE), st.sampled_from(_LINES)), min_size=1, max_size=10
).map("\n".join)
_LINKS = [
    *("[a](b.md)", "[a](<b c>)", "![i](p.png)", "[r]", "[a][r]", "<https://a.example/b>", "https://a.example/b", "[["),
    *(
        "[`c`](d.md)",
        "[a]()",
        "`c`",
        "[a](b`c)",
        "[x `y](z)",
        "<a@b.example>",
        '<a href="b.md">',
        '<img src="p.png">',
        '<a id="x">',
        "</a>",
        "`",
        "``",
        "*",
        "**",
        "_",
        "]",
    ),
    *("https://a.example/b_(c)", "https://a.example/b&amp;c", "\\_", "[^1]"),
    *("\\", "\\\n", "\n", "  \n  ", " ", "a", "é", "&amp;", "&", "!", "<", ">", "(", ")", "](", "'t'", ":", "#", "~"),
]


@pytest.mark.parametrize("before", ["", "text\n", "- ", "> "])
def test_any_line_after_any_other(before: str) -> None:
    for first, second in product(_LINES, repeat=2):
        _check_blocks(f"{before}{first}\n{second}")


@settings(max_examples=examples(600), deadline=None)
@given(st.one_of(documents, _heads, _heads))
def test_any_document(text: str) -> None:
    _check_blocks(text)
    _check_blocks(normalise(text))


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.sampled_from(_LINKS), max_size=14).map("".join), st.booleans())
def test_links_of_any_paragraph(content: str, defined: bool) -> None:
    _check_links(content, {"references": {"R": {"href": "r.md", "title": ""}}} if defined else {})


def test_every_commonmark_example_and_document(shared_data: Path) -> None:
    texts = [*commonmark_examples(shared_data), *(text for _, text in corpus(shared_data))]
    assert len(texts) > 700
    for text in texts:
        _check_blocks(text)
        _check_blocks(normalise(text))
        tokens, definitions = parse_blocks(text)
        for token in tokens:
            if token.type == "inline":
                _check_links(token.content, definitions)


def _library() -> MarkdownIt:
    library = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table")
    library.block.ruler.at("reference", link_definition)
    library.normalizeLink = str  # type: ignore[method-assign]
    library.validateLink = lambda url: True  # type: ignore[method-assign]
    return library


_BLOCKS = _library()
_INLINE = _library().disable(["emphasis", "balance_pairs", "fragments_join", "text_join"])  # they cut bare addresses


def _check_blocks(text: str) -> None:
    definitions: dict[str, Any] = {}
    expected: list[Token] = []
    _BLOCKS.block.parse(text, _BLOCKS, definitions, expected)
    tokens, found = parse_blocks(text)
    assert [_shape(token) for token in tokens] == [_shape(token) for token in expected], text
    assert found == definitions, text


def _shape(token: Token) -> tuple[str, str, str, str, list[int] | None]:
    return token.type, token.tag, token.info, token.content, token.map


def _check_links(content: str, definitions: dict[str, Any]) -> None:
    tokens: list[Token] = []
    _INLINE.inline.parse(content, _INLINE, definitions, tokens)
    assert list(find_links(content, definitions)) == list(links_of(tokens)), content
