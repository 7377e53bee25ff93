"""The page as the server makes it, without any script: what stands there, and where links lead."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from starlette.testclient import TestClient

from chunksink.search.answer import Answer, hit_of
from chunksink.search.fusion import Share
from chunksink.search.legs import Legs
from chunksink.search.page import views
from chunksink.search.page.app import make_app
from chunksink.search.page.drawer import drawers
from chunksink.search.page.form import PARAMETERS, SearchForm, read
from chunksink.sinks.reader import Piece
from tests.search.page.support import Held, asked, client_of, site_over
from tests.search.support import document, family


def links(html: str) -> list[str]:
    return [unescape(found) for found in re.findall(r'href="([^"]*)"', html)]


def test_hits_say_what_and_where_they_are(client: TestClient) -> None:
    page = client.get("/?q=sleeps").text
    assert '<a class="title" href="/chunk?id=' in page
    assert ">Cats</a>" in page
    assert "<mark>sleeps</mark>" in page
    crumbs = (
        r'class="crumbs">\s*<span dir="auto">Sleep</span><span [^>]*> · </span>\s*<span class="source" dir="auto">docs/'
    )
    assert re.search(crumbs, page)
    assert re.search(r'badge words">keyword 1</span>\s*<span class="badge meaning">semantic \d', page)
    assert "<strong>Sources 1 to 10 of 25</strong>" in page


def test_what_stands_before_a_word_that_was_found_is_shown_also_without_spaces() -> None:
    hit = hit_of(document(), 1.0, ())
    before = "所有权是一组规则" * 20
    found = replace(hit, snippet=(Piece(before), Piece("内存", match=True)))
    first, *_ = views.hit_view(1, found, SearchForm(), None).pieces
    assert first.text.startswith("…")
    assert before.endswith(first.text[1:])
    assert len(first.text) > 50
    only_text = replace(hit, text="Rust " + before * 3)
    (whole,) = views.hit_view(1, only_text, SearchForm(), None).pieces
    assert len(whole.text) > 200


def test_sources_on_the_web_are_linked_and_others_named(client: TestClient, legs: Legs) -> None:
    page = client.get("/?q=boat").text
    assert "https://example.org/boats" in links(page)
    assert "docs/cats.md" in client.get("/?q=sleeps").text
    assert not [link for link in links(client.get("/?q=sleeps").text) if "docs/cats.md" in link]
    with client_of(make_app(site_over(Held(legs), source_url="https://git.example.org/main/"))) as linked:
        assert "https://git.example.org/main/docs/cats.md#sleep" in links(linked.get("/?q=sleeps").text)


@pytest.mark.parametrize(
    ("source", "href", "with_prefix"),
    [
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("HTTP://example.org/a", "HTTP://example.org/a", "HTTP://example.org/a"),
        ("demo.cast#pane=0&part=1", None, "https://x.org/y/demo.cast#pane=0&part=1"),
        ("%2e%2e/%2e%2e/etc/passwd", None, "https://x.org/y/%252e%252e/%252e%252e/etc/passwd"),
        ("/docs/a b.md", None, "https://x.org/y/docs/a%20b.md"),
        ('docs/"onclick=".md', None, "https://x.org/y/docs/%22onclick%3D%22.md"),
        ("../../etc/passwd", None, None),
        ("docs\\..\\..\\a.md", None, None),
        ("file:///home/a.md", None, None),
        ("//evil.example/a", None, None),
        ("https:evil", None, None),
        ("javascript:alert(1)", None, None),
        ("http://[::1", None, None),
        (None, None, None),
    ],
)
def test_only_the_web_is_linked(source: str | None, href: str | None, with_prefix: str | None) -> None:
    one = document(source_uri=source)
    assert views.place_of(one, None).href == href
    assert views.place_of(one, "https://x.org/y/").href == with_prefix
    assert views.place_of(one, None).source == (source or "")


def test_a_hit_without_a_title_is_called_by_what_it_has() -> None:
    assert views.place_of(document(source_uri="docs/a.md"), None).title == "a.md"
    assert views.place_of(document(headings=("One", "Two")), None).title == "One"
    assert views.place_of(document(), None).title == "c"
    assert views.place_of(document(section="/"), None).path == ()
    where = document(title="T", headings=("T", "H"), page_start=3, page_end=4, timestamp_start=3725.0, speaker="Ada")
    assert views.place_of(where, None).path == ("H", "pages 3 to 4", "1:02:05", "Ada")


def test_what_stands_in_several_sources_says_where(tmp_path: Path) -> None:
    said = "a moored boat that lies in a harbour with many others until spring comes back again"
    versions = [family(f"https://example.org/v{n}/a", said, metadata={"title": f"In v{n}"}) for n in range(3)]
    twins = [family(f"{name}.md", "a painted cat") for name in ("<b>", "other")]
    with asked(tmp_path, [*versions, *twins, family("one.md", "a lonely cat")]) as client:
        page = client.get("/?q=moored&mode=keyword").text
        shown = links(page)
        second = client.get("/?q=cat&mode=keyword").text
        every = client.get("/?q=moored&mode=keyword&all=1").text
    assert "<summary>Also in 2 other sources</summary>" in page
    assert {f"https://example.org/v{n}/a" for n in range(3)} <= set(shown)
    assert sum(link.startswith("/chunk?id=") for link in set(shown)) == 3, "each leads to its own passage"
    assert "<strong>1 passage</strong>" in page
    assert second.count("Also in 1 other source</summary>") == 1
    assert "&lt;b&gt;.md" in second
    assert ("Also in" in every, every.count('class="title"')) == (False, 3)


def test_pages_follow_each_other_and_end(client: TestClient) -> None:
    seen: list[str] = []
    path: str | None = "/?q=cat&mode=keyword"
    pages = 0
    while path is not None:
        page = client.get(path).text
        seen += re.findall(r'class="title" href="([^"]*)"', page)
        following = re.search(r'rel="next" class="next" href="([^"]*)"', page)
        path = unescape(following[1]) if following else None
        pages += 1
    assert (pages, len(seen), len(set(seen))) == (3, 25, 25)
    assert 'rel="prev" href="/?q=cat&amp;mode=keyword&amp;offset=10"' in page


def test_facets_are_boxes_that_keep_what_else_was_asked(client: TestClient) -> None:
    page = client.get("/?q=cat&filter=source_type%3Dmd&filter=chunk_index%3C%3D5&limit=20&fusion=ranks").text
    assert re.search(r'value="source_type=md" checked>', page)
    assert 'value="source_type=web">' in page, "its own filter hides no value of a field"
    assert '<input type="hidden" form="search" name="filter" value="chunk_index&lt;=5">' in page
    assert '<input type="hidden" form="search" name="fusion" value="ranks">' in page
    assert '<input type="hidden" form="search" name="limit" value="20">' in page
    assert "/?q=cat&limit=20&filter=chunk_index%3C%3D5&fusion=ranks" in links(page), "the filter can be taken away"


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        ("", ["hybrid checked", "keyword", "semantic"]),
        ("&mode=semantic", ["hybrid", "keyword", "semantic checked"]),
        ("&mode=engine", ["hybrid", "keyword", "semantic", "engine checked"]),
        ("&mode=foo", ["hybrid", "keyword", "semantic"]),
        ("&mode=", ["hybrid checked", "keyword", "semantic"]),
    ],
)
def test_only_modes_that_there_are_have_a_tab(client: TestClient, asked: str, offered: list[str]) -> None:
    page = client.get(f"/?q=cat{asked}").text
    assert ["".join(found) for found in re.findall(r'name="mode" value="(\w+)"( checked)?>', page)] == offered


def test_what_was_not_found_comes_with_ways_on(client: TestClient) -> None:
    page = client.get("/?q=zyzzyva&mode=keyword&filter=language%3Den").text
    assert "Nothing found" in page
    assert "Search without filters" in page
    assert {"/?q=zyzzyva&mode=keyword", "/?q=zyzzyva&filter=language%3Den"} <= set(links(page))


def test_behind_the_last_page_nothing_is_said_not_to_be_found(client: TestClient) -> None:
    beyond = client.get("/?q=sleeps&mode=keyword&offset=9990").text
    assert "No more sources" in beyond
    assert "Nothing found" not in beyond
    assert "No document matches" not in beyond
    assert "/?q=sleeps&mode=keyword" in links(beyond), "the first page"


def test_where_words_are_the_only_way_no_other_is_offered(legs: Legs) -> None:
    words = replace(legs, semantic=None)
    with client_of(make_app(site_over(Held(words), usual_mode="keyword"))) as client:
        page = client.get("/?q=cat").text
        assert ('class="hit"' in page, 'name="mode"' in page, "by words only" in page) == (True, False, False)
        assert not [link for link in links(client.get("/?q=zyzzyva").text) if "mode=hybrid" in link]
        assert "Search by meaning too" not in client.get("/?q=zyzzyva").text
        assert "by words only" in client.get("/?q=cat&mode=hybrid").text, "asked for by name"
        told = client.get("/api/search?q=cat").json()
        assert (told["mode"], told["notice"]) == ("keyword", None)


def test_a_passage_in_its_place(client: TestClient) -> None:
    title = re.search(r'class="title" href="([^"]*)"', client.get("/?q=hunts&mode=keyword").text)
    assert title is not None
    page = client.get(unescape(title[1])).text
    assert re.findall(r'<li class="([\w -]*)"[^>]*>(.*?)</li>', page) == [
        ("plain-text", "the cat sleeps on the mat"),
        ("plain-text chosen", "a cat <mark>hunts</mark> at night"),
        ("plain-text", "the vet sees every cat once a year"),
    ]
    assert client.get("/chunk?id=nowhere").status_code == 404


def test_the_status_page_shows_what_it_is_given(client: TestClient) -> None:
    page = client.get("/status").text
    assert "fts: &lt;b&gt;a&lt;/b&gt;.md" in page
    assert "run <code>chunksink sync</code>" in page
    assert '<p class="summary bad">Not up to date</p>' in page


def answer(fusion: Any, *hits: tuple[float, tuple[Share, ...]], **more: Any) -> Answer:
    shown = tuple(hit_of(document(), score, shares) for score, shares in hits)
    return Answer("q", more.pop("mode", "hybrid"), fusion, shown, False, {}, 1.0, **more)


def test_bars_are_shares_of_the_best_that_could_be() -> None:
    both = (Share("keyword", 1, 9.0, 0.5, 1.0), Share("semantic", 3, 0.4, 0.5, 0.25))
    (drawer,) = drawers(answer("scores", (0.625, both)))
    assert [(bar.leg, bar.start, bar.percent) for bar in drawer.bars] == [
        ("keyword", 0.0, 50.0),
        ("semantic", 50.0, 12.5),
    ]
    assert drawer.bars[1].meaning == "place 3, score 0.4, adds 0.5 × 0.2500 = 0.1250"
    scaled = (Share("keyword", 1, 2.5e-6, 0.5, 0.5, 0.0, 5e-6),)
    (drawer,) = drawers(answer("scores", (0.25, scaled)))
    alike = (Share("keyword", 1, 3.0, 0.5, 1.0, 3.0, 3.0),)
    assert "score 3 (all scores are equal), adds" in drawers(answer("scores", (0.5, alike)))[0].bars[0].meaning
    assert drawer.bars[0].meaning == "place 1, score 2.5e-06 (0 counts as 0, 5e-06 as 1), adds 0.5 × 0.5000 = 0.2500"
    ranks = (Share("keyword", 1, 9.0, 1.0, 1 / 61), Share("semantic", 1, 0.4, 1.0, 1 / 61))
    (drawer,) = drawers(answer("ranks", (2 / 61, ranks)))
    assert [(bar.start, bar.percent) for bar in drawer.bars] == [(0.0, 50.0), (50.0, 50.0)]
    one = (Share("keyword", 2, 3.0, 0.5, 0.5),)
    (drawer,) = drawers(answer("scores", (0.25, one)))
    assert [(bar.found, bar.percent) for bar in drawer.bars] == [(True, 25.0), (False, 0.0)]
    assert drawer.bars[1].meaning == "not among its best hits"


def test_bars_of_one_leg_are_compared_with_the_best_hit() -> None:
    first, second = (Share("keyword", 1, 8.0, 1.0, 8.0),), (Share("keyword", 2, 2.0, 1.0, 2.0),)
    found = drawers(answer("scores", (8.0, first), (2.0, second), unavailable={"semantic": "gone"}))
    assert [[bar.percent for bar in drawer.bars] for drawer in found] == [[100.0, 0.0], [25.0, 0.0]]
    assert found[0].bars[1].meaning == "not available"
    below = drawers(answer("scores", (-0.2, (Share("semantic", 1, -0.2, 1.0, -0.2),)), mode="semantic"))
    assert [bar.percent for bar in below[0].bars] == [0.0], "nothing is drawn backwards"


def test_addresses_say_all_that_was_asked() -> None:
    asked = SearchForm("a b", "keyword", 20, 40, ("year>=2020", "tags=a&b"), ("tags",), True, 2, "ranks", True, "ac me")
    path, _, query = asked.url().partition("?")
    assert path == "/"
    assert read(parse_qsl(query), strict=True) == asked
    assert [parameter.name for parameter in PARAMETERS] == list(SearchForm.__dataclass_fields__)
    assert SearchForm().url() == "/"


@pytest.mark.parametrize("asked", ["", "?q=cat", "?q=zyzzyva&mode=keyword", "?q=cat&offset=900", "?q=cat&filter=x"])
def test_every_search_has_one_first_heading_and_a_named_filter_region(client: TestClient, asked: str) -> None:
    page = client.get(f"/{asked}").text
    assert page.count("<h1") == 1
    assert page.count('id="facets" aria-label="Filters"') == 1


def test_what_may_be_meant_is_a_link_that_asks_for_it(client: TestClient) -> None:
    page = client.get("/?q=a+Sleepps+%3Cb%3E%26&mode=keyword&limit=5&offset=5&filter=language%3Den").text
    assert "Search for <q" in page
    assert ">a sleep &lt;b&gt;&amp;</q></a>" in page
    wanted = SearchForm(q="a sleep <b>&", mode="keyword", limit=5, filter=("language=en",))
    assert wanted.url() in links(page)
    assert "Search for <q" not in client.get("/?q=sleeps").text
    assert client.get("/api/search?q=Sleepps").json()["suggestions"] == {"Sleepps": "sleep"}
