"""The links are those that all inline rules of the library find."""

from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it.token import Token

from chunksink.ingest.formats.markdown import parser
from chunksink.ingest.formats.markdown.parser import find_links, parse_blocks
from tests.conftest import examples, sampled
from tests.ingest.markdown.support import commonmark_examples, corpus

SIGNS = [
    *("[a](b.md)", "[a](<b c>)", "![i](p.png)", "[r]", "[a][r]", "<https://a.example/b>", "https://a.example/b", "[["),
    *("[`c`](d.md)", "[a]()", "`c`", "[a](b`c)", "<a@b.example>", '<a href="b.md">', '<img src="p.png">', "</a>", "`"),
    *("``", "*", "**", "_", "]", "[r][]", "![i][r]", "[`r`]", "<!-- c -->", "<https://a.example/&amp;>", "< ", "& "),
    *('[a](b.md "t")', "[a](b&amp;c)", "[&amp;]", "[https://a.example/b]", "\\_", "[^1]", "\\", "\\\n", "\n", " ", "a"),
    *("https://a.example/b_(c)", "https://a.example/b&amp;c", "  \n  ", "é", "!", "<", "](", "("),
]
DEFINED: dict[str, Any] = {"references": {"R": {"href": "r.md", "title": ""}}}

# With all inline rules, except those that cut bare addresses.
INLINE = parser._make_parser()
INLINE.disable(["emphasis", "balance_pairs", "fragments_join", "text_join"])


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.sampled_from(SIGNS), max_size=14).map("".join), st.booleans())
@example("!<https://a.example/b>", False)
def test_links_of_any_paragraph_are_the_librarys(content: str, is_defined: bool) -> None:
    check_links(content, DEFINED if is_defined else {})


def test_links_of_the_corpora_are_the_librarys(shared_data: Path) -> None:
    texts = [*commonmark_examples(shared_data), *(text for _, text in corpus(shared_data))]
    assert len(texts) > 700
    for text in sampled(texts, 3):
        tokens, definitions = parse_blocks(text)
        for token in tokens:
            if token.type == "inline":
                check_links(token.content, definitions)


def check_links(content: str, definitions: dict[str, Any]) -> None:
    tokens: list[Token] = []
    INLINE.inline.parse(content, INLINE, definitions, tokens)
    assert list(find_links(content, definitions)) == list(parser._links_of(tokens)), content
