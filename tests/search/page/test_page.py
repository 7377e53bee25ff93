"""The HTML of the page: its content, and the targets of its links."""

import re
import shutil
import threading
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from starlette.testclient import TestClient

from chunksink.search.answer import Answer, Surrounded, hit_of
from chunksink.search.facets import IN_EVERY_DOCUMENT
from chunksink.search.fusion import Share
from chunksink.search.legs import Legs
from chunksink.search.page import pages, views
from chunksink.search.page.app import make_app
from chunksink.search.page.drawer import drawers
from chunksink.search.page.form import PARAMETERS, SearchForm, read
from chunksink.sinks.reader import FacetValue, Piece, Sort
from tests.search.page.support import LegAnswers, client_of, client_over, report, site_over
from tests.search.support import document, family


def links(html: str) -> list[str]:
    return [unescape(href) for href in re.findall(r'href="([^"]*)"', html)]


def test_hit_shows_title_place_and_legs(client: TestClient) -> None:
    page = client.get("/?q=sleeps").text
    assert '<a class="title" href="/chunk?id=' in page
    assert ">Cats</a>" in page
    assert "<mark>sleeps</mark>" in page
    crumbs = (
        r'class="crumbs">\s*<span dir="auto" lang="en">Sleep</span><span [^>]*> · </span>\s*'
        r'<span class="source" dir="auto">docs/'
    )
    assert re.search(crumbs, page)
    assert re.search(r'badge words">keyword 1</span>\s*<span class="badge meaning">semantic \d', page)
    assert "<strong>Sources 1 to 10 of 25</strong>" in page


def test_texts_have_the_language_of_their_source() -> None:
    named = [
        views.place_of(document(language=one), None).language for one in ("ja", "zh-Hant-TW", "Japanese", "", None)
    ]
    assert named == ["ja", "zh-Hant-TW", None, None, None]


def test_hit_and_passage_have_the_language_of_their_source(client: TestClient) -> None:
    page = client.get("/?q=sleeps").text
    assert re.search(r'<h2 [^>]*lang="en"', page)
    assert re.search(r'<p class="snippet"[^>]*lang="en"', page)
    passage = client.get(next(link for link in links(page) if link.startswith("/chunk"))).text
    assert '<ol class="passages" lang="en">' in passage
    web = client.get("/?q=boat").text
    assert re.search(r'<p class="snippet"[^>]*lang="de"', web)


def test_pages_do_not_change_if_the_installed_files_do(
    legs: Legs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = Path(shutil.copytree(pages.TEMPLATES, tmp_path / "templates"))
    monkeypatch.setattr(pages, "TEMPLATES", installed)
    with client_of(make_app(site_over(LegAnswers(legs)))) as client:
        for template in installed.iterdir():
            template.write_text("{{ of_another_version }}")
        for path, code in {"/?q=cat": 200, "/status": 200, "/nowhere": 404}.items():
            answer = client.get(path)
            assert (answer.status_code, "<html" in answer.text) == (code, True)


def test_passages_are_rendered_in_a_worker_and_long_ones_as_plain_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def noted(found: Surrounded) -> list[views.PassageView]:
        threads.append(threading.current_thread().name)
        return rendered(found)

    rendered = views.passages
    monkeypatch.setattr(views, "passages", noted)
    long = family("a.md", "cat *one*", "*two* " + "[" * 500_000)
    with client_over(tmp_path, [long]) as client:
        (address,) = {link for link in links(client.get("/?q=cat").text) if link.startswith("/chunk")}
        page = client.get(f"{address}&context=1").text
    assert ("<em>one</em>" in page, "*two* [[" in page) == (True, True)
    assert [name.partition("_")[0] for name in threads] == ["answers"]


def test_snippet_of_a_text_without_spaces_begins_before_the_match() -> None:
    hit = hit_of(document(), 1.0, ())
    before = "所有权是一组规则" * 20
    found = Piece("内存", match=True)
    assert views.pieces_of(replace(hit, snippet=(found,))) == (found,)
    with_snippet = replace(hit, snippet=(Piece(before), found))
    first, *_ = views.pieces_of(with_snippet)
    assert first.text.startswith("…")
    assert before.endswith(first.text[1:])
    assert len(first.text) > 50
    [only_text] = [hit_of(one, 1.0, ()) for one in family("a.md", "Rust " + before * 3).documents]
    (whole,) = views.pieces_of(only_text)
    assert len(whole.text) > 200
    assert views.pieces_of(hit_of(document(text=""), 1.0, ())) == (Piece(""),)


def test_only_sources_on_the_web_are_links(client: TestClient, legs: Legs) -> None:
    page = client.get("/?q=boat").text
    assert "https://example.org/boats" in links(page)
    assert "docs/cats.md" in client.get("/?q=sleeps").text
    assert not [link for link in links(client.get("/?q=sleeps").text) if "docs/cats.md" in link]
    with client_of(make_app(site_over(LegAnswers(legs), source_url="https://git.example.org/main/"))) as linked:
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
def test_href_is_set_only_for_web_addresses(source: str | None, href: str | None, with_prefix: str | None) -> None:
    one = document(source_uri=source)
    assert views.place_of(one, None).href == href
    assert views.place_of(one, "https://x.org/y/").href == with_prefix
    assert views.place_of(one, None).source == (source or "")


def test_title_falls_back_to_file_heading_or_id() -> None:
    assert views.place_of(document(source_uri="docs/a.md"), None).title == "a.md"
    assert views.place_of(document(headings=("One", "Two")), None).title == "One"
    assert views.place_of(document(), None).title == "c"
    assert views.place_of(document(section="/"), None).path == ()
    where = document(title="T", headings=("T", "H"), page_start=3, page_end=4, timestamp_start=3725.0, speaker="Ada")
    assert views.place_of(where, None).path == ("H", "pages 3 to 4", "1:02:05", "Ada")


def test_hit_lists_other_sources_with_the_same_text(tmp_path: Path) -> None:
    text = "a moored boat that lies in a harbour with many others until spring comes back again"
    versions = [family(f"https://example.org/v{n}/a", text, metadata={"title": f"In v{n}"}) for n in range(3)]
    twins = [family(f"{name}.md", "a painted cat") for name in ("<b>", "other")]
    with client_over(tmp_path, [*versions, *twins, family("one.md", "a lonely cat")]) as client:
        page = client.get("/?q=moored&mode=keyword").text
        shown = links(page)
        second = client.get("/?q=cat&mode=keyword").text
        pages = [client.get(f"/?q=cat&mode=keyword&limit=1&offset={offset}").text for offset in (0, 1)]
        every = client.get("/?q=moored&mode=keyword&all=1").text
    assert "<summary>Also in 2 other sources</summary>" in page
    assert {f"https://example.org/v{n}/a" for n in range(3)} <= set(shown)
    assert sum(link.startswith("/chunk?id=") for link in set(shown)) == 3, "each links to its own passage"
    assert "<strong>3 sources</strong>" in page
    assert [re.findall("<strong>(Source [12] of 3)<", each) for each in pages] == [["Source 1 of 3"], ["Source 2 of 3"]]
    assert second.count("Also in 1 other source</summary>") == 1
    assert "&lt;b&gt;.md" in second
    assert ("Also in" in every, every.count('class="title"')) == (False, 3)


def test_next_links_reach_all_hits_once(client: TestClient) -> None:
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


def test_facet_boxes_keep_the_other_parameters(client: TestClient) -> None:
    page = client.get("/?q=cat&filter=source_type%3Dmd&filter=chunk_index%3C%3D5&limit=20&fusion=ranks").text
    assert re.search(r'value="source_type=md" checked>', page)
    assert 'value="source_type=web">' in page, "a filter does not hide the other values of its field"
    assert '<input type="hidden" form="search" name="filter" value="chunk_index&lt;=5">' in page
    assert '<input type="hidden" form="search" name="fusion" value="ranks">' in page
    assert '<input type="hidden" form="search" name="limit" value="20">' in page
    assert "/?q=cat&limit=20&filter=chunk_index%3C%3D5&fusion=ranks" in links(page), "the filter can be removed"


@pytest.mark.parametrize(
    ("parameters", "offered"),
    [
        ("", ["hybrid checked", "keyword", "semantic"]),
        ("&mode=semantic", ["hybrid", "keyword", "semantic checked"]),
        ("&mode=engine", ["hybrid", "keyword", "semantic", "engine checked"]),
        ("&mode=foo", ["hybrid", "keyword", "semantic"]),
        ("&mode=", ["hybrid checked", "keyword", "semantic"]),
    ],
)
def test_modes_are_offered_if_they_exist(client: TestClient, parameters: str, offered: list[str]) -> None:
    page = client.get(f"/?q=cat{parameters}").text
    assert ["".join(mode) for mode in re.findall(r'name="mode" value="(\w+)"( checked)?>', page)] == offered


def test_empty_result_offers_other_searches(client: TestClient) -> None:
    page = client.get("/?q=zyzzyva&mode=keyword&filter=language%3Den").text
    assert "Nothing found" in page
    assert "Search without filters" in page
    assert {"/?q=zyzzyva&mode=keyword", "/?q=zyzzyva&filter=language%3Den"} <= set(links(page))


def test_page_after_the_last_one_links_to_the_first(client: TestClient) -> None:
    beyond = client.get("/?q=sleeps&mode=keyword&offset=9990").text
    assert "No more sources" in beyond
    assert "Nothing found" not in beyond
    assert "No document matches" not in beyond
    assert "/?q=sleeps&mode=keyword" in links(beyond), "the first page"


def test_index_without_vectors_offers_no_modes(legs: Legs) -> None:
    keyword_only = replace(legs, semantic=None)
    with client_of(make_app(site_over(LegAnswers(keyword_only), default_mode="keyword"))) as client:
        page = client.get("/?q=cat").text
        assert ('class="hit"' in page, 'name="mode"' in page, "by words only" in page) == (True, False, False)
        assert not [link for link in links(client.get("/?q=zyzzyva").text) if "mode=hybrid" in link]
        assert "Search by meaning too" not in client.get("/?q=zyzzyva").text
        assert "by words only" in client.get("/?q=cat&mode=hybrid").text, "a notice if the mode is requested"
        answer = client.get("/api/search?q=cat").json()
        assert (answer["mode"], answer["notice"]) == ("keyword", None)


def test_passage_page_shows_the_neighbours_and_marks_matches(client: TestClient) -> None:
    title = re.search(r'class="title" href="([^"]*)"', client.get("/?q=hunts&mode=keyword").text)
    assert title is not None
    assert title[1].endswith("#found")
    page = client.get(unescape(title[1])).text
    assert re.findall(r'<li class="([\w -]*)"[^>]*><p>(.*?)</p>\s*</li>', page) == [
        ("rendered", "the cat sleeps on the mat"),
        ("rendered chosen", 'a cat <mark id="found">hunts</mark> at night'),
        ("rendered", "the vet sees every cat once a year"),
    ]
    without_match = client.get(unescape(title[1]).replace("hunts", "zyzzyva")).text
    assert re.findall(r'id="found">(.*)\n', without_match) == ["<p>a cat hunts at night</p>"]
    assert client.get("/chunk?id=nowhere").status_code == 404


def test_passage_page_marks_the_words_that_replaced_misspelt_ones(client: TestClient) -> None:
    page = client.get("/?q=huntts&mode=keyword").text
    title = re.search(r'class="title" href="([^"]*)"', page)
    assert title is not None
    assert "<mark>hunts</mark>" in page
    assert '<mark id="found">hunts</mark>' in client.get(unescape(title[1])).text


@pytest.mark.parametrize(
    ("counts_all", "shown"), [(True, "Sources 1 to 2 of 85"), (False, "Sources 1 to 2 of at least 85")]
)
def test_total_is_exact_only_if_all_hits_were_counted(counts_all: bool, shown: str) -> None:
    facets = {IN_EVERY_DOCUMENT: [FacetValue("chunks.v1", 85)]}
    found = replace(answer("scores", (2.0, ()), (1.0, ())), more=True, facets=facets, counts_all=counts_all)
    assert views.outcome(found, SearchForm()) == shown


def test_status_page_shows_the_report(client: TestClient) -> None:
    page = client.get("/status").text
    assert "fts: &lt;b&gt;a&lt;/b&gt;.md" in page
    assert "run <code>chunksink sync</code>" in page
    assert '<p class="summary bad">Not up to date</p>' in page


def test_status_that_is_unknown_is_no_problem(legs: Legs) -> None:
    unknown = replace(report(), current=None, summary="Unknown")
    with client_of(make_app(site_over(LegAnswers(legs), report=lambda: unknown))) as client:
        assert '<p class="summary good">Unknown</p>' in client.get("/status").text


def answer(fusion: Any, *hits: tuple[float, tuple[Share, ...]], **more: Any) -> Answer:
    shown = tuple(hit_of(document(), score, shares) for score, shares in hits)
    return Answer("q", more.pop("mode", "hybrid"), fusion, shown, False, {}, 1.0, **more)


def test_bars_show_shares_of_the_best_possible_score() -> None:
    both = (Share("keyword", 1, 9.0, 0.5, 1.0), Share("semantic", 3, 0.4, 0.5, 0.25))
    (drawer,) = drawers(answer("scores", (0.625, both)))
    assert [(bar.leg, bar.start, bar.percent) for bar in drawer.bars] == [
        ("keyword", 0.0, 50.0),
        ("semantic", 50.0, 12.5),
    ]
    assert "0.5 × 0.2500 = 0.1250" in drawer.bars[1].meaning
    scaled = (Share("keyword", 1, 2.5e-6, 0.5, 0.5, 0.0, 5e-6),)
    (drawer,) = drawers(answer("scores", (0.25, scaled)))
    equal = (Share("keyword", 1, 3.0, 0.5, 1.0, 3.0, 3.0),)
    assert "0.5 × 1.0000 = 0.5000" in drawers(answer("scores", (0.5, equal)))[0].bars[0].meaning
    assert "5e-06" in drawer.bars[0].meaning
    assert "0.5 × 0.5000 = 0.2500" in drawer.bars[0].meaning
    ranks = (Share("keyword", 1, 9.0, 1.0, 1 / 61), Share("semantic", 1, 0.4, 1.0, 1 / 61))
    (drawer,) = drawers(answer("ranks", (2 / 61, ranks)))
    assert [(bar.start, bar.percent) for bar in drawer.bars] == [(0.0, 50.0), (50.0, 50.0)]
    one = (Share("keyword", 2, 3.0, 0.5, 0.5),)
    (drawer,) = drawers(answer("scores", (0.25, one)))
    assert [(bar.has_share, bar.percent) for bar in drawer.bars] == [(True, 25.0), (False, 0.0)]
    assert drawer.bars[1].meaning == "not among its best hits"


def test_bars_of_one_leg_are_relative_to_the_best_hit() -> None:
    first, second = (Share("keyword", 1, 8.0, 1.0, 8.0),), (Share("keyword", 2, 2.0, 1.0, 2.0),)
    found = drawers(answer("scores", (8.0, first), (2.0, second), unavailable={"semantic": "down"}))
    assert [[bar.percent for bar in drawer.bars] for drawer in found] == [[100.0, 0.0], [25.0, 0.0]]
    assert found[0].bars[1].meaning == "not available"
    below = drawers(answer("scores", (-0.2, (Share("semantic", 1, -0.2, 1.0, -0.2),)), mode="semantic"))
    assert [bar.percent for bar in below[0].bars] == [0.0], "negative scores have no bar"


def test_sorted_hits_have_no_score() -> None:
    share = Share("keyword", 2, 0.0, 1.0, 0.0)
    (drawer,) = drawers(answer("scores", (0.0, (share,)), mode="keyword", sort=Sort("fields.due")))
    (bar,) = drawer.bars
    assert (bar.has_share, bar.percent, bar.meaning, drawer.total) == (True, 0.0, "place 2", "none")
    assert "due" in drawer.how


def test_address_contains_all_parameters() -> None:
    filters = ("year>=2020", "tags=a&b")
    form = SearchForm("a b", "keyword", 20, 40, filters, ("tags",), True, 2, "ranks", "-year", True, "ac me")
    path, _, query = form.url().partition("?")
    assert path == "/"
    assert read(parse_qsl(query), strict=True) == form
    assert [parameter.name for parameter in PARAMETERS] == list(SearchForm.__dataclass_fields__)
    assert SearchForm().url() == "/"


@pytest.mark.parametrize("query", ["", "?q=cat", "?q=zyzzyva&mode=keyword", "?q=cat&offset=900", "?q=cat&filter=x"])
def test_search_page_has_one_h1_and_a_named_filter_region(client: TestClient, query: str) -> None:
    page = client.get(f"/{query}").text
    assert page.count("<h1") == 1
    assert page.count('id="facets" aria-label="Filters"') == 1


def test_suggestion_is_a_link(client: TestClient) -> None:
    page = client.get("/?q=a+Slleep+%3Cb%3E%26&mode=keyword&limit=5&offset=5&filter=language%3Den").text
    assert "Search for <q" in page
    assert ">a sleep &lt;b&gt;&amp;</q></a>" in page
    expected = SearchForm(q="a sleep <b>&", mode="keyword", limit=5, filter=("language=en",))
    assert expected.url() in links(page)
    assert "Search for <q" not in client.get("/?q=sleeps").text
    assert client.get("/api/search?q=Slleep").json()["suggestions"] == {"Slleep": "sleep"}
