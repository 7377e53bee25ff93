"""The parser's short cuts find the blocks, link definitions and links that the library finds with all its rules."""

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from chunksink.producers.markdown import normalise
from chunksink.producers.markdown.links import find_links, links_of
from chunksink.producers.markdown.parser import (
    MAX_NESTING,
    component,
    link_definition,
    parse_blocks,
    parse_inline,
    plain_text,
    text_of,
)
from chunksink.producers.markdown.plain import HOLD_WORDS, BlockToken
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
        "12",
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
# Whole blocks as people write them, and what almost is one; what joins them decides whether it is.
_BLOCKS_OF_LINES = [
    *(
        "- a\n- [b](c) d\n  e\n- `f`",
        "* a\n\n* b",
        "- a\n+ b",
        "- a\n  - b",
        "1. a\n2. b\nc",
        "1) a\n\n2) b",
        "1. a\n1) b",
        "-   a\n    b",
    ),
    *("- a\n\n  b", "- [x]: y", "- # a", "1. 1. a", "- a\n1. b", "- -", "-     a", "- a\n---", "* * *", "- [ ] a"),
    *("| a | b |\n|---|---|", "| a |\n|:-:|\n| c | d |\n||\n|", "|a|b|\n|-|\n|c|", "| a\\| b |\n|---|", "|a|\n|-|\nb"),
    *(
        "> a\n> b",
        "> a\nb",
        "> [!NOTE]\n> a",
        "> [r]: /u",
        ">  a\n> - b",
        "> `a`\n>\n> b",
        "> a\n>  \n>\n> [b](c)\n> d",
        "> a\n> \n",
        "> a\n>\n> - b",
        "> a\n>   \n> b",
        "> ```\n> \ta\n> ```",
    ),
    *(
        "```py\na\n\n# b\n```",
        "```\n  ```",
        "```\na\n    ```\n```",
        "````\n```\n````",
        "```a`b\nc\n```",
        "~~~\n```\n~~~",
        "```\n`a\n\t```\nb\n```",
    ),
    *(
        "# a",
        "## a ##",
        "# a #b",
        "# a {#b}",
        "# a#",
        "# C# #",
        "#  a  ",
        "# #",
        "#",
        "####### a",
        "# a\n| - |\n",
        "# a | b\n-|-",
        "a | b\n- | -",
    ),
    *(
        "<div>\n*a*\n</div>",
        '<p class="a">',
        "</p>",
        "<br/>",
        "<pre>\n\na</pre>",
        "<b>a</b>",
        "<b>",
        "</b >",
        "<a b='c>d'>e",
        "<i\n>",
    ),
    *(
        "<!-- a -->",
        "<!-- a\n\nb --> c",
        "<!-->",
        "<!--->a-->",
        "<!-- a",
        "<script>\n\n</script>",
        "<?a?>",
        "<https://a.example>",
    ),
    *(
        "[r]: /u\n[s]: /v",
        "[R]: <u>",
        "[r]: /u 't'",
        "[r]: /u\n't'",
        "[r]: /u\na",
        "[^1]: a",
        "[r]: a(b",
        "[ ]: /u",
        "[r]:/u",
        "[\u00a0]: /u",
    ),
    *(
        "a\n  [b]: c",
        "a\n===",
        "a\n- b",
        "a\n- ",
        "a\n- -",
        "a | b\n- | -",
        "a\n-",
        "a\n# b",
        "a\n1. b",
        "a\n2. b",
        "**a** b",
        "2 a",
        "a  \nb",
        "[a\nb]: /u",
        "a\n5-1 b\n--> c\n--d\n+e",
        "a\n01. b",
        "a\n10. b",
        "<p>a</p>",
        "<divx>a",
        "<ſx>\na",
        "<p>|\n:-",
        "<x a='|'>\n-|-",
        "<td>a</td> | b\n---|---\nc | d",
        "</p-x> a",
        "<Li  x='y'>",
        "[^1]: [a](b)",
        "a\n<b>\nc",
    ),
]
_joined = st.lists(
    st.builds(
        "{}{}".format,
        st.sampled_from(_BLOCKS_OF_LINES),
        st.sampled_from(["\n\n", "\n\n", "\n\n\n", "\n", "\n \n", "\n\t\n"]),
    ),
    max_size=8,
).map("".join)


def _quoted(text: str) -> str:
    return "".join(f"> {line}".rstrip(" ") + "\n" for line in text.split("\n"))


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
    *(
        "[r][]",
        "![i][r]",
        "[a][x]",
        "[`r`]",
        "[a `c` d]",
        "<!-- c -->",
        "<!-- -- -->",
        "<https://a.example/&amp;>",
        "< ",
        "& ",
    ),
    *(
        '[a](b.md "t")',
        "[a & b](c.md?d&e)",
        "[a](b&amp;c)",
        "[&amp;]",
        '<a href="b.md">c</a>',
        '<i class="`">',
        "<br/>",
        "<!--\nc -->",
    ),
    *("[https://a.example/b]", "[x http://a.example] y"),
    *("https://a.example/b_(c)", "https://a.example/b&amp;c", "\\_", "[^1]"),
    *("\\", "\\\n", "\n", "  \n  ", " ", "a", "é", "&amp;", "&", "!", "<", ">", "(", ")", "](", "'t'", ":", "#", "~"),
]


@pytest.mark.parametrize("before", ["", "text\n", "- ", "> "])
def test_any_line_after_any_other(before: str) -> None:
    for first, second in product(_LINES, repeat=2):
        _check_blocks(f"{before}{first}\n{second}")


@settings(max_examples=examples(600), deadline=None)
@given(
    st.one_of(documents, _heads, _heads, _joined, _joined, st.builds("{}\n{}".format, _joined.map(_quoted), _joined))
)
def test_any_document(text: str) -> None:
    _check_blocks(text)
    _check_blocks(normalise(text))


def test_any_block_after_any_other() -> None:
    for first, second in product(_BLOCKS_OF_LINES, repeat=2):
        for between in ("\n", "\n\n"):
            _check_blocks(f"{first}{between}{second}")
            _check_blocks(_quoted(f"{first}{between}{second}") + between + second)


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.sampled_from(_LINKS), max_size=14).map("".join), st.booleans())
@example("!<https://a.example/b>", False)
def test_links_of_any_paragraph(content: str, defined: bool) -> None:
    _check_links(content, {"references": {"R": {"href": "r.md", "title": ""}}} if defined else {})


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.sampled_from([*_LINKS, "`a  b`", "`&lt;`", "`a_b`", "_a_", "a_b"]), max_size=8).map("".join))
def test_plain_text_of_any_heading(content: str) -> None:
    tokens = parse_inline(content, {})
    assert plain_text(content, {}) == " ".join(text_of(tokens).split())


def test_every_commonmark_example_and_document(shared_data: Path) -> None:
    texts = [*commonmark_examples(shared_data), *(text for _, text in corpus(shared_data))]
    assert len(texts) > 700
    for text in texts:
        _check_blocks(text)
        _check_blocks(normalise(text))
        tokens, definitions = parse_blocks(text)
        for token in tokens:
            if token.type in HOLD_WORDS:
                _check_links(token.content, definitions)


def _library() -> MarkdownIt:
    library = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table")
    library.block.ruler.at("reference", link_definition)
    library.normalizeLink = str  # type: ignore[method-assign]
    library.validateLink = lambda url: True  # type: ignore[method-assign]
    return library


_ENDS = ("paragraph_close", "heading_close")
_BLOCKS = _library()
_MDX = _library().disable("code")
_MDX.block.ruler.before("html_block", "component", component)
_INLINE = _library().disable(["emphasis", "balance_pairs", "fragments_join", "text_join"])  # they cut bare addresses


def _check_blocks(text: str) -> None:
    for library in (_BLOCKS, _MDX):
        definitions: dict[str, Any] = {}
        expected: list[Token] = []
        library.block.parse(text, library, definitions, expected)
        tokens, found = parse_blocks(text, is_mdx=library is _MDX)
        assert [*_shapes(tokens)] == [*_shapes(expected)], text
        assert found == definitions, text


def _shapes(tokens: Iterable[BlockToken]) -> Iterator[tuple[str, str, str, str, list[int] | None]]:
    """All that is read of tokens. A paragraph or a heading has its words in itself or in the token that follows; nobody
    asks for its end, nor for items, rows and cells, but for what stands in them."""
    following = iter(tokens)
    for token in following:
        if token.type.startswith(("list_item", "thead", "tbody", "tr_", "th_", "td_")) or token.type in _ENDS:
            continue
        content = token.content
        if token.type in ("paragraph_open", "heading_open") and isinstance(token, Token):
            words = next(following)
            assert words.type == "inline"
            content = words.content
        yield token.type, token.tag, token.info, content, token.map


def _check_links(content: str, definitions: dict[str, Any]) -> None:
    tokens: list[Token] = []
    _INLINE.inline.parse(content, _INLINE, definitions, tokens)
    assert list(find_links(content, definitions)) == list(links_of(tokens)), content
