"""The parser's guards skip no rule that would match, and its links are those of all inline rules."""

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from chunksink.ingest.formats.markdown import parser
from chunksink.ingest.formats.markdown.parser import find_links, parse_blocks
from tests.conftest import examples, sampled
from tests.ingest.markdown.support import commonmark_examples, corpus, documents, normalise

# Lines that begin a block, interrupt a paragraph, make it a heading or a table, or almost do.
LINES = [
    *("", "+", "+ a", "+a", "*", "* a", "*\ta", "*a", "-", "- a", "-a", "1. a", "1)", "1.", "2. a", "1.a", "12 a"),
    *("000000001. a", "1234567890. a", "___", "__", "***", "_ _ _", "*_*", "- - -", "--", "---", "-- a", "=", "==="),
    *("= =", "**b** c", "_e_ f", "```", "``` a`b", "``", "`c` d", "~~~", "~~", "# h", "#h", "#", "####### h", ">q"),
    *(">", "> q", "<div>", "<b>", "<b> c", "<!-- c", "-->", "</p>", "<a@b>", "<script>", "[r]: /u", "[^1]: /u", "[r]:"),
    *("/u", "'t'", r"[a\]b]: /u", "[a", "b]: /u 't'", "[a][b]", "[ ]: /u", "a | b", "# a | b", "> a | b", "1. a | b"),
    *("-|-", "<b>a | b", ":-|-:", "|-|-|", "- | -", ":|", "| a", "text", "12", "    code", "\tcode", "   text", "é"),
    "\u00a0a",
]
INDENTATION = ["", "", "", " ", "   ", "    ", "\t", "> ", ">", "- ", "1. ", "  - ", "-  ", "> - "]
SIGNS = [
    *("[a](b.md)", "[a](<b c>)", "![i](p.png)", "[r]", "[a][r]", "<https://a.example/b>", "https://a.example/b", "[["),
    *("[`c`](d.md)", "[a]()", "`c`", "[a](b`c)", "<a@b.example>", '<a href="b.md">', '<img src="p.png">', "</a>", "`"),
    *("``", "*", "**", "_", "]", "[r][]", "![i][r]", "[`r`]", "<!-- c -->", "<https://a.example/&amp;>", "< ", "& "),
    *('[a](b.md "t")', "[a](b&amp;c)", "[&amp;]", "[https://a.example/b]", "\\_", "[^1]", "\\", "\\\n", "\n", " ", "a"),
    *("https://a.example/b_(c)", "https://a.example/b&amp;c", "  \n  ", "é", "!", "<", "](", "("),
]
DEFINED: dict[str, Any] = {"references": {"R": {"href": "r.md", "title": ""}}}

lines = st.lists(
    st.builds("{}{}".format, st.sampled_from(INDENTATION), st.sampled_from(LINES)), min_size=1, max_size=10
).map("\n".join)


class _Library(MarkdownIt):
    """The library without guards, which keeps addresses as they are written."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        return url

    def validateLink(self, url: str) -> bool:  # noqa: N802
        return True


def _library() -> MarkdownIt:
    library = _Library("commonmark", {"maxNesting": parser.MAX_NESTING}).enable("table")
    library.block.ruler.at("reference", parser._link_definition)
    return library


BLOCKS = _library()
MDX = _library().disable("code")
MDX.block.ruler.before("html_block", "component", parser._component)
INLINE = _library().disable(["emphasis", "balance_pairs", "fragments_join", "text_join"])  # they cut bare addresses


@pytest.mark.parametrize("before", ["", "text\n", "- ", "> "])
def test_blocks_of_any_line_after_any_other_are_the_librarys(before: str) -> None:
    # 82 lines: every third pair has each line first and second
    for first, second in sampled(product(LINES, repeat=2), 3):
        check_blocks(f"{before}{first}\n{second}")


@settings(max_examples=examples(600), deadline=None)
@given(st.one_of(documents, lines))
def test_blocks_of_any_document_are_the_librarys(text: str) -> None:
    check_blocks(text)


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.sampled_from(SIGNS), max_size=14).map("".join), st.booleans())
@example("!<https://a.example/b>", False)
def test_links_of_any_paragraph_are_the_librarys(content: str, is_defined: bool) -> None:
    check_links(content, DEFINED if is_defined else {})


def test_blocks_and_links_of_the_corpora_are_the_librarys(shared_data: Path) -> None:
    texts = [*commonmark_examples(shared_data), *(text for _, text in corpus(shared_data))]
    assert len(texts) > 700
    for text in sampled(texts, 3):
        check_blocks(text)
        check_blocks(normalise(text))
        tokens, definitions = parse_blocks(text)
        for token in tokens:
            if token.type == "inline":
                check_links(token.content, definitions)


def check_blocks(text: str) -> None:
    for library in (BLOCKS, MDX):
        definitions: dict[str, Any] = {}
        expected: list[Token] = []
        library.block.parse(text, library, definitions, expected)
        tokens, found = parse_blocks(text, is_mdx=library is MDX)
        assert list(_shapes(tokens)) == list(_shapes(expected)), text
        assert found == definitions, text


def _shapes(tokens: Iterable[Token]) -> Iterator[tuple[Any, ...]]:
    for token in tokens:
        yield token.type, token.tag, token.info, token.content, token.map, token.level


def check_links(content: str, definitions: dict[str, Any]) -> None:
    tokens: list[Token] = []
    INLINE.inline.parse(content, INLINE, definitions, tokens)
    assert list(find_links(content, definitions)) == list(parser._links_of(tokens)), content
