"""Whatever a page is made of, its words stay, and what follows is what it is."""

import json
import re
from collections import Counter
from html import escape
from html.parser import HTMLParser
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.producers.html.support import FAQ, chunks, text
from tests.producers.support import own_parts
from tests.producers.test_converters import PAGE


class _Visible(HTMLParser):
    """The words of a page that somebody can read, by another parser than the one that is tested."""

    def __init__(self) -> None:
        super().__init__()
        self.words: Counter[str] = Counter()
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unread += tag in ("script", "style", "svg", "template", "title", "nav")

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in ("script", "style", "svg", "template", "title", "nav")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.words.update(re.findall(r"\w+", data))


def visible(page: str) -> Counter[str]:
    parser = _Visible()
    parser.feed(page)
    parser.close()
    return parser.words


def words(page: str) -> Counter[str]:
    """Without the addresses of links, and the language of code."""
    return Counter(re.findall(r"\w+", re.sub(r"\]\([^)]*\)|^```\w+", "", text(page), flags=re.MULTILINE)))


@pytest.mark.parametrize("page", [PAGE, FAQ])
def test_the_words_of_the_examples_are_those_of_their_chunks(page: str) -> None:
    assert words(page) == visible(page)


# Without those that may be of the site.
_TAGS = """
    p div section article b strong em i code kbd q mark del s span font u small a h1 h2 h3 pre blockquote ul ol li dl dt
    dd table tr td th tbody thead caption details summary figure figcaption button label fieldset legend center noscript
    address body html form br hr img var sub sup abbr rt menu my-el canvas object dialog textarea iframe
    video audio source wbr embed
"""
_ATTRIBUTES = [
    "",
    "",
    "",
    " hidden",
    ' style="display:none"',
    ' href="u.html"',
    ' href="#x" class=anchor',
    " colspan=2",
]
# Around the words, each of which stands once.
_LINES = (
    *("%",) * 9,
    *("# %", "``` %", "% ```", "~~~ %", "```\n%\n", "- %", "1. %", "<script> %", "<!-- %", "<?%", "<%", "<pre>%"),
    *("%\n---\n", "%\n===\n%", "%\n|---|\n", "|%|%|", "[%]: http://x", "[%](", "](%", "***%", "%*", "**%", "__%", "`%"),
    *("``%", "\\%", "> %", "&lt;%", "    %", "\t%", "~~%", "</p>%", "%\\\n", "+ %", "* * *", "\xa0# %", "\xa0``` %"),
)
_Tree = str | tuple[str, list["_Tree"], str]
_trees: st.SearchStrategy[_Tree] = st.recursive(
    st.sampled_from(_LINES),
    lambda inner: st.tuples(st.sampled_from(_TAGS.split()), st.lists(inner, max_size=4), st.sampled_from(_ATTRIBUTES)),
    max_leaves=16,
)


def _html(tree: _Tree, number: "count[int]") -> str:
    if isinstance(tree, str):
        return f" {escape(re.sub('%', lambda _: f' w{next(number)} ', tree))}\n "
    tag, inner, attributes = tree
    if tag in ("br", "hr", "img", "source", "wbr", "embed"):
        return f"<{tag}>"
    return f"<{tag}{attributes}>{''.join(_html(part, number) for part in inner)}</{tag}>"


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_trees, min_size=1, max_size=5))
def test_whatever_lies_in_whatever_every_word_stays_and_what_follows_is_what_it_is(trees: list[_Tree]) -> None:
    number = count()
    page = "".join(_html(tree, number) for tree in trees)
    records = chunks(f'<p>Begin{page}<h1>Last</h1><p>The <a href="end.html">end</a></p>')
    found = Counter(re.findall(r"\bw\d+\b", "\n".join(own_parts(records))))
    assert found == Counter(f"w{each}" for each in range(next(number)))
    assert not re.search("[\ufdd0-\ufdef]", json.dumps(records, ensure_ascii=False))
    assert records[-1]["metadata"]["headings_path"] == ["Last"]
    assert records[-1]["metadata"]["kind"] == "prose"
    assert [link["url"] for link in records[-1]["metadata"]["links"]] == ["end.html"]


_tokens = st.one_of(
    st.just("%"),
    st.builds(
        "<{}{}>".format, st.sampled_from(_TAGS.split()), st.sampled_from([*_ATTRIBUTES, "/", " {% if %}", " x y=1"])
    ),
    st.builds("</{}>".format, st.sampled_from(_TAGS.split())),
    st.sampled_from(
        ["<!-- c -->", "&amp;", "&lt;", "<", "<!x>", "&#1;", "\x01", "<?php ?>", "\r\n", "&nbsp;", "<p/>", "<a/>"]
    ),
).filter(lambda token: "textarea" not in token and "iframe" not in token)  # what is not closed there is text to its end


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_tokens, max_size=40))
def test_however_tags_are_mixed_up_every_word_stays(tokens: list[str]) -> None:
    number = count()
    page = "".join(f" w{next(number)} " if token == "%" else token for token in tokens)
    found = Counter(re.findall(r"\bw\d+\b", "\n".join(own_parts(chunks(page)))))
    assert found == Counter(f"w{each}" for each in range(next(number)))
