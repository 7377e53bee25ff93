"""Addresses of links and pictures are metadata of the chunk that shows them, and no text; headings have their ids."""

from __future__ import annotations

from html import escape

import pytest

from tests.ingest.converters.support import page

FILLED = "word " * 400


def test_text_has_words_of_links_and_metadata_their_addresses() -> None:
    (record,) = page(
        '<p>See <a href="https://ex.com/a?b=c" title="tip">the <b>guide</b></a>, <a href="/x">x</a>.'
    ).records
    assert record["text"] == "See the **guide**, x."
    assert [(link["url"], link["link_type"]) for link in record["metadata"]["links"]] == [
        ("https://ex.com/a?b=c", "external"),
        ("/x", "document"),
    ]


def test_each_chunk_has_links_that_are_in_it() -> None:
    found = page(
        f"<p><a href=a>a</a> {FILLED}<p><a href=b>b</a> {FILLED}<h2><a href=c>c</a></h2>x"
        "<pre>W\n<a href=d>W</a></pre><table><tr><th><a href=e>H</a><th>I<tr><td>1<td>2</table>"
    )
    links = [[link["url"] for link in record["metadata"].get("links", [])] for record in found.records]
    assert [each for each in links if each] == [["a"], ["b"], ["c"], ["d"], ["e"]]


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<a href=u>One</a><a href=v>Two</a>", "One Two"),
        ("<a href=u>bus</a>es, un<a href=u>likely</a>", "buses, unlikely"),
        ("<a href=u>1. One</a> and", "1\\. One and"),
    ],
)
def test_link_within_word_does_not_split_it_and_links_side_by_side_are_separate(html: str, shown: str) -> None:
    assert page(f"<p>{html}</p>").text == shown


def test_link_around_blocks_leads_on_from_their_words() -> None:
    found = page("<p>Before.</p><h2>Above</h2><a href=u><h3>Card</h3><p>words</p></a>")
    assert found.records[-1]["metadata"]["headings_path"] == ["Above", "Card"]
    assert [link["url"] for link in found.records[-1]["metadata"]["links"]] == ["u"]


def test_only_written_addresses_are_links_besides() -> None:
    shown = 'Write [text](url), ![a](b.png), [[note]], <a href="y.html"> or http://ex.com/'
    found = page(f"<p>{escape(shown)} as in <a href='https://ex.com/'>https://ex.com/</a></p>")
    assert sorted(found.links) == ["http://ex.com/", "https://ex.com/"]
    assert found.text.replace("\\", "") == f"{shown} as in https://ex.com/"


@pytest.mark.parametrize(
    ("base", "written", "address"),
    [
        ("", " über uns.html\n", "über uns.html"),
        ("http://ex.com/other/", "index.html", "http://ex.com/other/index.html"),
        ("http://ex.com/other/", "#place", "http://ex.com/other/#place"),
    ],
)
def test_address_is_as_written_from_base_of_page(base: str, written: str, address: str) -> None:
    html = f'<head><base target="_top"><base href="{base}"></head><p><a href="{escape(written)}">x</a></p>'
    assert page(html).links == [address]


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ('<h2 id="Run-Steps">Run steps</h2>', "Run-Steps"),
        ('<section id="run"><h2>Run steps<a href="#run">¶</a></h2></section>', "run"),
        ('<p>before</p><a name="run"></a><h2>Run steps</h2>', "run"),
        ('<div id="main"><p>before</p><h2>Run steps</h2></div>', None),
    ],
)
def test_heading_has_id_that_links_lead_to(html: str, anchor: str | None) -> None:
    record = next(record for record in page(f"{html}<p>x").records if record["metadata"]["headings_path"])
    assert record["metadata"].get("anchor") == anchor
