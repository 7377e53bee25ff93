"""Passages as HTML: Markdown is rendered, found words are marked, and no text becomes markup."""

import pytest

from chunksink.search.page.passage_text import as_html


def test_markdown_is_rendered_below_the_heading_of_the_page() -> None:
    html = as_html("# Pets\n\n- *dogs*\n- `cats`\n\n| a |\n|--:|\n| b |\n", (), markdown=True)
    assert "<h2>Pets</h2>" in html
    assert "<li><em>dogs</em></li>" in html
    assert "<code>cats</code>" in html
    assert "<td>b</td>" in html


def test_found_words_are_marked_as_whole_words() -> None:
    assert as_html("cats and Cat, concat", ["cat"], markdown=False) == "cats and <mark>Cat</mark>, concat"
    assert "<code>a <mark>cat</mark></code>" in as_html("`a cat`", ["cat"], markdown=True)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "![x](https://example.org/tracker.png)",
        '[x](https://example.org "onmouseover=alert(1)")',
        "<img src=x onerror=alert(1)>",
        "```html\n</code></pre><script>alert(1)</script>\n```",
        "[a](../secret.md)",
    ],
)
def test_nothing_in_a_text_becomes_markup(text: str) -> None:
    html = as_html(text, ["alert"], markdown=True).lower()
    assert not any(tag in html for tag in ("<script", "<img", 'javascript:alert(1)"', 'href="data', 'href="..'))


def test_links_to_the_web_stay_links() -> None:
    html = as_html("[docs](https://example.org/a?b=1&c=2)", (), markdown=True)
    assert 'href="https://example.org/a?b=1&amp;c=2"' in html
    assert 'rel="noreferrer noopener"' in html


def test_front_matter_is_code() -> None:
    html = as_html("---\ntitle: Leave\ntags: [a]\n---\n\nThirty days.", ["leave"], markdown=True)
    assert "<pre><code>title: <mark>Leave</mark>\ntags: [a]\n</code></pre>" in html
    assert "<p>Thirty days.</p>" in html
    assert "<pre>" not in as_html("a\n\n---\n\nb\n\n---\n", (), markdown=True)


def test_vowel_signs_are_parts_of_found_words() -> None:
    assert as_html("दान दाना", ["दान"], markdown=False) == "<mark>दान</mark> दाना"


def test_found_words_are_marked_within_scripts_without_spaces() -> None:
    assert as_html("数据库事务的隔离", ["事务"], markdown=False) == "数据库<mark>事务</mark>的隔离"
    assert as_html("11507, 1150表示", ["1150"], markdown=False) == "11507, <mark>1150</mark>表示"
    assert as_html("０１０、１０秒", ["１０"], markdown=False) == "０１０、<mark>１０</mark>秒"
