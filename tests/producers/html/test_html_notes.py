"""Links, pictures and ids of headings are told beside the words, each where its words stand."""

import pytest

from tests.producers.html.support import chunks, links, text

_FILLED = "word " * 400


def test_a_text_has_the_words_of_its_links_and_not_their_addresses() -> None:
    page = '<p>See <a href="https://ex.com/a?b=c" title="tip">the <b>guide</b></a>, <a href="/x">x</a>.</p>'
    (record,) = chunks(page)
    assert record["text"] == "See the **guide**, x."
    assert [(link["url"], link["link_type"]) for link in record["metadata"]["links"]] == [
        ("https://ex.com/a?b=c", "external"),
        ("/x", "document"),
    ]


def test_each_chunk_has_the_links_that_stand_in_it() -> None:
    page = f"<a href=a>a</a> {_FILLED}</p><p><a href=b>b</a> {_FILLED}<p><a href=c>c</a><h2><a href=d>d</a></h2>e"
    found = [[link["url"] for link in record["metadata"].get("links", [])] for record in chunks(f"<p>{page}")]
    assert [each for each in found if each] == [["a"], ["b"], ["c"], ["d"]]


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("a<img src=i alt=barn>b", "a barn b"),
        ("a<img src=i>b", "a b"),
        ("<a href=u><img src=i alt=Logo></a>Text", "Logo Text"),
        ("(<img src=i alt=barn>)", "(barn)"),
        ("<a href=u>One</a><a href=v>Two</a>", "One Two"),
        ("<a href=u>One</a>, <a href=v>Two</a>", "One, Two"),
        ("<a href=u>bus</a>es, un<a href=u>likely</a>", "buses, unlikely"),
        ("wo<a href=u></a>rd", "word"),
        ("<img src=i alt='# no heading'>", "\\# no heading"),
    ],
)
def test_pictures_and_links_side_by_side_part_words_and_a_link_in_a_word_does_not(page: str, shown: str) -> None:
    assert text(f"<p>{page}</p>") == shown


def test_an_address_that_a_link_shows_is_one_link() -> None:
    assert links("<p>At <a href='https://ex.com/a/'>https://ex.com/a…</a> and https://ex.com/b.") == [
        "https://ex.com/a/",
        "https://ex.com/b",
    ]


def test_a_link_without_words_stays_under_its_heading() -> None:
    page = "<h2>One</h2><p>Words.</p><a href=u><i class=icon></i></a><h2>Two</h2><p>More.</p>"
    found = {record["metadata"]["headings_path"][0]: record["metadata"].get("links") for record in chunks(page)}
    assert [link["url"] for link in found["One"] or []] == ["u"]
    assert found["Two"] is None


def test_a_quote_tells_its_source() -> None:
    page = "<blockquote cite='https://ex.com/q'><p>Quoted, see https://ex.com/r.</p></blockquote>"
    assert text(page) == "> Quoted, see https://ex.com/r."
    assert links(page) == ["https://ex.com/q", "https://ex.com/r"]


@pytest.mark.parametrize(
    "attributes",
    ["data-src=late.png", "src='data:image/gif;base64,AAAA' data-original=late.png", "srcset='late.png 1x, l2.png 2x'"],
)
def test_a_picture_that_is_loaded_late_has_the_address_that_it_will_have(attributes: str) -> None:
    assert links(f"<p>A <img {attributes} alt=barn>") == ["late.png"]


def test_titles_and_headings_have_no_notes() -> None:
    (record,) = chunks("<h1 id=top><a href=u>The <img src=i alt=red></a>barn</h1><p>stands")
    assert record["metadata"]["title"] == "The red barn"
    assert record["metadata"]["headings_path"] == ["The red barn"]
    assert record["metadata"]["anchor"] == "top"
    assert record["text"] == "# The red barn\n\nstands"


def test_a_table_tells_its_header_without_notes() -> None:
    rows = "".join(f"<tr><td><a href=r{row}>{_FILLED[:200]}</a></td><td>b</td></tr>" for row in range(40))
    records = chunks(f"<table><tr><th><a href=h>Head</a></th><th>B</th></tr>{rows}</table>")
    assert len(records) > 1
    assert records[1]["metadata"]["table_header"].split() == ["|", "Head", "|", "B", "|"]
    assert [link["url"] for record in records for link in record["metadata"]["links"]] == [
        "h",
        *(f"r{row}" for row in range(40)),
    ]


def test_however_many_have_no_words_all_are_told() -> None:
    page = "".join(f"<h2><a href=u{number}></a></h2>" for number in range(2_000))
    assert links(f"<p>Begin{page}") == [f"u{number}" for number in range(2_000)]
