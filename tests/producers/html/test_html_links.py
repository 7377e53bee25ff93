"""Addresses are those that the page writes and browsers go to; what only looks like a link is none."""

from html import escape

import pytest

from tests.producers.html.support import links, text


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("über uns.html", "über uns.html"),
        ("日本.html", "日本.html"),
        ("%C3%BCber.html", "%C3%BCber.html"),
        (" guide.html\n", "guide.html"),
        ("a\n\tb.html", "ab.html"),
        ("a(b).html", "a(b).html"),
        ("a?b=1&c=2", "a?b=1&c=2"),
    ],
)
def test_an_address_stays_as_it_is_written(written: str, address: str) -> None:
    assert links(f'<p><a href="{escape(written)}">x</a></p>') == [address]
    assert links(f'<p><img src="{escape(written)}" alt="x"></p>') == [address]
    assert links(f'<pre><a href="{escape(written)}">x</a></pre>') == [address]


@pytest.mark.parametrize(
    ("base", "written", "address"),
    [
        ("http://ex.com/other/", "index.html", "http://ex.com/other/index.html"),
        ("http://ex.com/other/", "/top.html", "http://ex.com/top.html"),
        ("http://ex.com/other/", "#place", "http://ex.com/other/#place"),
        ("http://ex.com/other/", "mailto:a@b.c", "mailto:a@b.c"),
        ("../", "x.html", "../x.html"),
        ("../index.html", "#place", "../index.html#place"),
        ("docs/index.html", "/x.html", "/x.html"),
        ("http://[", "x.html", "x.html"),
    ],
)
def test_the_base_of_a_page_is_where_its_links_begin(base: str, written: str, address: str) -> None:
    page = f'<head><base target="_top"><base href="{base}"></head>'
    assert links(f'{page}<p><a href="{written}">x</a></p>') == [address]
    if written[0] != "#":
        assert links(f'{page}<pre><a href="{written}">x</a></pre>') == [address]


def test_what_only_looks_like_a_link_is_text() -> None:
    shown = 'Write [text](url), ![a](b.png), <img src="x.png"> or <a href="y.html"> to http://ex.com/'
    page = f"<p>{escape(shown)} as in <a href=there.html>there</a></p>"
    assert text(page) == f"{shown} as in there"
    assert links(page) == ["http://ex.com/", "there.html"]


def test_data_is_what_says_that_it_is() -> None:
    assert text("<p>Returns Promise&lt;data:Foo&gt; of values.</p>") == "Returns Promise<data:Foo> of values."
    assert links("<p>Returns Promise&lt;data:Foo&gt; of values.</p>") == []


def test_areas_and_frames_are_links() -> None:
    areas = '<map><area href="x.html" alt="The barn"><area nohref alt="Nothing"></map>'
    assert (text(areas), links(areas)) == ("The barn Nothing", ["x.html"])
    frames = '<frameset><frame src="a.html" name="menu"><frame src="b.html"></frameset>'
    assert links(frames) == ["a.html", "b.html"]
    assert text(frames).startswith("menu")


def test_a_description_is_one_line() -> None:
    assert text('<p>A <img src="x.png" alt="two\n# lines"></p>') == "A two # lines"
