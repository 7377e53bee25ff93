"""The page in Chromium: with and without scripts, by keyboard, and in both themes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chunksink.search.legs import Legs
from chunksink.search.page.app import make_app
from tests.conftest import sampled
from tests.search.page.support import Complaints, LegAnswers, served, settle, site_over, titles
from tests.search.support import family, legs_over

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Every visible text with its colour and its background.
COLOURS = """() => {
    const seen = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
        let below = element;
        while (below && getComputedStyle(below).backgroundColor === 'rgba(0, 0, 0, 0)') below = below.parentElement;
        const ground = below ? getComputedStyle(below).backgroundColor : 'rgb(255, 255, 255)';
        seen.push([walker.currentNode.textContent.trim(), getComputedStyle(element).color, ground]);
    }
    return seen;
}"""
READABLE = 4.5
"""The least contrast of text of usual size (level AA)."""


def test_typing_searches_and_back_returns_to_earlier_queries(open_page: Any) -> None:
    page = open_page("/")
    page.keyboard.type("sleeps", delay=20)  # the field has the focus
    settle(page, "/?q=sleeps")
    assert titles(page)[0] == "Cats"
    assert page.title().startswith("sleeps")
    assert "Sources 1 to 10" in page.locator("#outcome").inner_text()
    page.wait_for_timeout(1600)
    page.locator("#q").fill("number 7")
    settle(page, "/?q=number+7")
    page.get_by_role("radio", name="Words").check()
    settle(page, "/?q=number+7&mode=keyword")
    assert titles(page)[0] == "07.txt"
    page.go_back()
    settle(page, "/?q=number+7")
    assert page.locator("input[value=hybrid]").is_checked()
    page.go_back()
    settle(page, "/?q=sleeps")
    assert page.locator("#q").input_value() == "sleeps"
    page.go_back()
    settle(page, "/")
    assert page.locator("#q").input_value() == ""
    assert "What are you looking for?" in page.locator("#results").inner_text()


def test_back_returns_to_the_start_although_the_first_letter_was_never_answered(open_page: Any) -> None:
    page = open_page("/")
    page.route("**/?q=s", lambda route: None)
    with page.expect_request("**/?q=s"):
        page.keyboard.type("s")
    page.keyboard.type("leeps")
    settle(page, "/?q=sleeps")
    page.go_back()
    settle(page, "/")


def test_facets_conditions_and_paging_work_without_a_page_load(open_page: Any) -> None:
    page = open_page("/?q=cat&mode=keyword")
    page.evaluate("window.stayed = true")
    page.get_by_role("checkbox", name="txt").check()
    settle(page, "/?q=cat&mode=keyword&filter=source_type%3Dtxt")
    assert page.evaluate("document.activeElement.value") == "source_type=txt", "the focus stays"
    page.get_by_role("checkbox", name="md").check()
    settle(page, "/?q=cat&mode=keyword&filter=source_type%3Dtxt&filter=source_type%3Dmd")
    page.locator(".next").click()
    page.wait_for_function("() => location.search.includes('offset=10')")
    page.wait_for_selector("ol.hits[start='11']")
    page.get_by_label("Remove the filter source_type=txt").click()
    settle(page, "/?q=cat&mode=keyword&filter=source_type%3Dmd")
    assert titles(page) == ["Cats"]
    page.get_by_label("Condition").fill("chunk_index>=1")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.search.includes('chunk_index')")
    page.wait_for_selector(".chips li:nth-child(2)")
    assert page.locator(".chips a").all_text_contents() == ["source_type=md ×", "chunk_index>=1 ×"]
    page.get_by_label("Remove the filter chunk_index>=1").click()
    settle(page, "/?q=cat&mode=keyword&filter=source_type%3Dmd")
    page.locator("#q").fill("cats")
    settle(page, "/?q=cats&mode=keyword&filter=source_type%3Dmd")
    assert page.evaluate("window.stayed"), "the page was not loaded again"


def test_suggestion_replaces_the_query_in_the_form(open_page: Any) -> None:
    page = open_page("/?q=slleep&mode=keyword")
    page.locator(".notice a").click()
    settle(page, "/?q=sleep&mode=keyword")
    assert page.locator("#q").input_value() == "sleep"
    page.get_by_role("checkbox", name="Show every passage").check()
    settle(page, "/?q=sleep&mode=keyword&all=1")


def test_back_and_forward_restore_a_mode_that_is_not_always_offered(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/?q=cat&mode=engine")
    page.locator("input[name=mode][value=keyword]").check()
    settle(page, "/?q=cat&mode=keyword")
    page.go_back()
    settle(page, "/?q=cat&mode=engine")
    assert page.locator("input[name=mode]:checked").input_value() == "engine"
    page.go_forward()
    settle(page, "/?q=cat&mode=keyword")
    assert page.locator("input[name=mode]:checked").input_value() == "keyword"
    assert page.locator("#outcome .without").count() == 0
    page.close()


def test_wrong_condition_shows_an_error_and_can_be_removed(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/?q=cat")
    page.get_by_label("Condition").fill("color=red")
    page.keyboard.press("Enter")
    page.wait_for_selector(".notice.bad")
    assert "color" in page.locator(".notice.bad").inner_text()
    page.get_by_label("Remove the filter color=red").click()
    page.wait_for_selector(".hit")
    page.close()


def test_context_opens_and_closes_within_the_page(open_page: Any) -> None:
    page = open_page("/?q=hunts&mode=keyword")
    hit = page.locator(".hit").first
    hit.get_by_text("Show context").click()
    page.wait_for_selector(".hit .passages")
    assert [text.strip() for text in hit.locator(".passages li").all_text_contents()] == [
        "the cat sleeps on the mat",
        "a cat hunts at night",
        "the vet sees every cat once a year",
    ]
    assert hit.locator(".passages .chosen").inner_text() == "a cat hunts at night"
    assert hit.locator(".passages mark").all_text_contents() == ["hunts"]
    assert page.locator("#found").count() == 0, "several hits can be open"
    hit.get_by_text("Hide context").click()
    assert not hit.locator(".passages").is_visible()


def test_drawer_shows_the_contribution_of_each_leg(open_page: Any) -> None:
    page = open_page("/?q=cat+sleeps")
    hit = page.locator(".hit").first
    assert not hit.locator(".drawer").is_visible()
    hit.get_by_text("Why this result?").click()
    widths = page.evaluate(
        """() => [...document.querySelectorAll('.hit:first-child .bar')].map(bar =>
            [...bar.querySelectorAll('rect.fill')].map(r => r.getBoundingClientRect().width
                / bar.querySelector('rect.track').getBoundingClientRect().width))"""
    )
    (keyword,), (semantic,), both = widths
    answer = page.evaluate("fetch('/api/search?q=cat+sleeps&explain=1').then(a => a.json())")
    points = {share["leg"]: share["points"] for share in answer["hits"][0]["explain"]["shares"]}
    assert [keyword, semantic] == pytest.approx([points["keyword"], points["semantic"]], abs=0.005)
    assert both == pytest.approx([keyword, semantic], abs=0.005)


def test_keyboard_reaches_everything(open_page: Any, address: str) -> None:
    page = open_page("/?q=cat&mode=keyword")

    def at() -> str:
        found: str = page.evaluate("document.activeElement.id || document.activeElement.getAttribute('href') || ''")
        return found

    hrefs = [link.get_attribute("href") for link in page.locator(".title").all()]
    page.keyboard.press("j")
    assert at() == hrefs[0]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    assert at() == hrefs[2]
    page.keyboard.press("k")
    assert at() == hrefs[1]
    page.keyboard.press("c")
    page.wait_for_selector(".hit:nth-child(2) .passages")
    page.keyboard.press("e")
    assert page.locator(".hit:nth-child(2) .drawer").is_visible()
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    page.keyboard.press("/")
    assert at() == "q"
    page.keyboard.type("j")
    assert page.locator("#q").input_value() == "j", "shortcuts are off within the field"
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("hunts")
    settle(page, "/?q=hunts&mode=keyword")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}/chunk?*")
    assert page.locator("h1").inner_text() == "Cats"


@pytest.mark.parametrize(
    ("scheme", "path"),
    sampled(
        product(
            ["light", "dark"],
            ["/?q=cat+sleeps&filter=source_type%3Dmd", "/gone", "/", "/?q=zyzzyva&mode=keyword", "/status"],
        ),
        5,
    ),
)
def test_texts_have_enough_contrast(browser: Browser, address: str, scheme: Any, path: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(address + path)
    for drawer in page.locator(".why > summary").all():
        drawer.click()
    texts = page.evaluate(COLOURS)
    assert len(texts) > 5
    faint = [(text, round(contrast(ink, ground), 2)) for text, ink, ground in texts if contrast(ink, ground) < READABLE]
    assert faint == []
    page.close()


def contrast(one: str, other: str) -> float:
    """The contrast by WCAG 2 of two colours as a browser computes them, `rgb(r, g, b)`."""

    def luminance(colour: str) -> float:
        parts = [float(part) / 255 for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_theme_follows_the_system_until_one_is_chosen(open_page: Any, address: str) -> None:
    page = open_page("/", color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    assert dark != light
    page.locator("#theme").click()
    assert page.evaluate(ground) == dark
    page.goto(f"{address}/status")
    assert page.evaluate(ground) == dark, "the choice is saved"
    page.locator("#theme").click()
    assert page.evaluate(ground) == light


def test_passage_page_keeps_the_query_and_links_back(browser: Browser, address: str) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}/?q=hunts&mode=keyword&filter=source_type%3Dmd")
    page.locator(".hit .title").first.click()
    page.wait_for_url("**/chunk?*")
    assert page.locator("#q").input_value() == "hunts"
    page.get_by_role("button", name="Copy the text").click()
    page.wait_for_function("() => document.querySelector('#copied').textContent !== ''")
    assert page.evaluate("navigator.clipboard.readText()") == "a cat hunts at night"
    page.get_by_role("link", name="Back to the results").click()
    page.wait_for_url("**/?q=hunts&mode=keyword&filter=source_type%3Dmd")
    assert titles(page) == ["Cats"]
    context.close()


@pytest.mark.parametrize(("words", "width"), [("x" * 3000, 360), ("a title in many words " * 150, 1100)])
def test_very_long_title_takes_two_lines(browser: Browser, tmp_path: Path, words: str, width: int) -> None:
    giant = family("a.md", f"a cat {words}", metadata={"title": words, "headings": [words, f"more {words}"]})
    with legs_over(tmp_path, [giant]) as legs, served(make_app(site_over(LegAnswers(legs)))) as address:
        page = browser.new_page(viewport={"width": width, "height": 740})
        page.goto(f"{address}/?q=cat")
        title = page.locator(".hit .title")
        assert title.bounding_box()["height"] < 70  # type: ignore[index]
        assert title.get_attribute("title") == words.strip()
        assert page.locator(".hit .crumbs span").first.get_attribute("title") == f"more {words}".strip()
        assert page.locator(".hit").bounding_box()["height"] < 340  # type: ignore[index]
        title.click()
        page.wait_for_url("**/chunk?*")
        assert page.locator("h1").bounding_box()["height"] > 200  # type: ignore[index]
        page.close()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
def test_passage_page_opens_at_the_first_found_word(browser: Browser, tmp_path: Path, width: int, height: int) -> None:
    lines = "Wind, ice and tide.\n\n" * 60
    notes = family("a.md", lines, f"{lines}The walrus census.\n\n{lines}", lines, metadata={"title": "Notes"})
    short = family("b.md", "The narwhal is rare.", lines, metadata={"title": "Narwhals"})
    with legs_over(tmp_path, [notes, short]) as legs, served(make_app(site_over(LegAnswers(legs)))) as address:
        page = browser.new_page(viewport={"width": width, "height": height}, java_script_enabled=False)
        for query, title_is_visible in (("walrus", False), ("narwhal", True)):
            page.goto(f"{address}/?q={query}&mode=keyword")
            page.locator(".hit .title").click()
            page.wait_for_url("**/chunk?*")
            shown = page.locator(".chosen mark").bounding_box()
            assert 0 < shown["y"] < height / 2  # type: ignore[index]
            assert (page.locator("h1").bounding_box()["y"] > 0) == title_is_visible  # type: ignore[index]
        page.close()


def test_markup_is_shown_neither_in_snippets_nor_in_neighbours(browser: Browser, tmp_path: Path) -> None:
    texts = (
        "## A\n\n**See** [the cat](https://example.org/cat.html) and `cat *`.",
        "| a *cat* | sits |\n|---|---|\n| b | c |",
    )
    pets = family("a.md", *texts, metadata={"mime_type": "text/markdown"})
    with legs_over(tmp_path, [pets]) as legs, served(make_app(site_over(LegAnswers(legs)))) as address:
        page = browser.new_page()
        page.goto(f"{address}/?q=see+cat&mode=keyword")
        hit = page.locator(".hit").first
        snippet = hit.locator(".snippet")
        assert " ".join(snippet.inner_text().split()) == "A See the cat and cat *."
        assert snippet.locator("mark").all_text_contents() == ["See", "cat", "cat"]
        hit.get_by_text("Show context").click()
        page.wait_for_selector(".passages td mark, .passages th mark")
        assert page.locator(".passages mark").all_text_contents() == ["See", "cat", "cat", "cat"]
        assert page.locator(".passages a").get_attribute("href") == "https://example.org/cat.html"
        page.close()


def test_modes_are_hidden_if_there_is_only_one(browser: Browser, legs: Legs) -> None:
    keyword_only = replace(legs, semantic=None)
    with served(make_app(site_over(LegAnswers(keyword_only), default_mode="keyword"))) as address:
        page = browser.new_page()
        complaints = Complaints()
        complaints.listen(page)
        page.goto(f"{address}/?q=cat")
        assert page.locator("input[name=mode]").count() == 0
        page.locator(".next").click()
        page.wait_for_selector("ol.hits[start='11']")
        page.go_back()
        page.wait_for_selector("ol.hits[start='1']")
        page.locator("#q").fill("sleeps")
        settle(page, "/?q=sleeps")
        assert titles(page) == ["Cats"]
        assert (page.locator(".notice").count(), complaints) == (0, [])
        page.close()


def test_page_works_without_scripts(open_page: Any, address: str) -> None:
    page = open_page("/", java_script_enabled=False)
    assert not page.locator("#theme").is_visible(), "buttons that need a script are hidden"
    page.locator("#q").fill("cat")
    page.get_by_role("radio", name="Words").check()
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**/?q=cat&mode=keyword*")
    page.get_by_role("checkbox", name="txt").check()
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**filter=source_type%3Dtxt*")
    assert len(titles(page)) == 10
    page.locator(".next").click()
    page.wait_for_url("**offset=10*")
    page.locator(".why > summary").first.click()
    assert page.locator(".drawer").first.is_visible()
    page.get_by_text("Show context").first.click()
    page.wait_for_url(f"{address}/chunk?*")
    assert page.locator(".passages .chosen").is_visible()
    page.go_back()
    assert page.locator("#q").input_value() == "cat"


def test_unreachable_server_shows_an_error(browser: Browser, legs: Legs) -> None:
    page = browser.new_page()
    with served(make_app(site_over(LegAnswers(legs)))) as address:
        page.goto(f"{address}/?q=cat")
    page.locator("#q").fill("cats")
    page.wait_for_selector("#outcome .without")
    page.close()


def test_error_of_the_server_is_shown(browser: Browser, legs: Legs) -> None:
    answers = LegAnswers(legs)
    with served(make_app(site_over(answers))) as address:
        page = browser.new_page()
        page.goto(f"{address}/?q=cat")
        answers.before = lambda: {}["a bug"]
        page.locator("#q").fill("cats")
        page.wait_for_url("**/?q=cats")
        page.wait_for_function("() => !document.querySelector('#results')")
        assert "bug" in page.locator("body").inner_text()
        page.close()


def test_sign_in_leads_to_the_requested_search(browser: Browser, legs: Legs) -> None:
    with served(make_app(site_over(LegAnswers(legs), tokens={"the-token": "*"}))) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}/?q=sleeps")
        page.get_by_label("Token").fill("the-token")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")
        assert page.url == f"{address}/?q=sleeps"
        assert page.evaluate("document.cookie") == "", "scripts cannot read the cookie"
        page.locator("#q").fill("hunts")
        page.wait_for_function("() => document.title.startsWith('hunts')")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_selector("#token")
        context.close()
