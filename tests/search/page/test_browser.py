"""The page in a real Chromium: with its script, without it, by keyboard, in both themes, on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chunksink.search.legs import Legs
from chunksink.search.page.app import make_app
from tests.conftest import sampled
from tests.search.page.support import Held, served, site_over
from tests.search.support import family, legs_over
from tests.support.contrast import READABLE, contrast

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = {"width": 320, "height": 740}

# Every visible text with its colour and the first ground below it that is not transparent.
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

# Visible elements that end to the right of a place.
BEYOND = """most => [...document.querySelectorAll('body *')]
    .filter(e => e.checkVisibility() && e.getBoundingClientRect().width > 0 && e.getBoundingClientRect().right > most)
    .map(e => e.outerHTML.slice(0, 200))"""


# Visible links, buttons and boxes that are lower than 40 pixels; a box counts with its label.
SMALL_TARGETS = """() => [...document.querySelectorAll('a[href], button, summary, input, label')]
    .filter(e => e.checkVisibility() && !e.matches('.skip, .hidden, label input, label.hidden')
        && e.getBoundingClientRect().height > 0 && e.getBoundingClientRect().height < 39.5)
    .map(e => e.outerHTML.slice(0, 160))"""


@pytest.fixture(scope="module")
def address(legs: Legs) -> Iterator[str]:
    with served(make_app(site_over(Held(legs)))) as address:
        yield address


class Complaints(list[str]):
    """What a page complained of: blocked by the policy, an exception of the script."""

    def listen(self, page: Page) -> None:
        page.on("console", lambda said: self.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.append(str(error)))


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Any]:
    contexts = []
    complaints = Complaints()

    def open_(path: str = "/", **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        complaints.listen(page)
        page.goto(address + path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def titles(page: Page) -> list[str]:
    return page.locator(".hit .title").all_text_contents()


def settle(page: Page, path: str) -> None:
    page.wait_for_function("path => location.pathname + location.search === path", arg=path)
    page.wait_for_selector("#results:not([aria-busy])")


def test_it_searches_as_one_types_and_goes_back(open_page: Any) -> None:
    page = open_page("/")
    page.keyboard.type("sleeps", delay=20)  # the field has the focus from the beginning
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


def test_facets_conditions_and_paging_in_place(open_page: Any) -> None:
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
    assert page.evaluate("window.stayed"), "no page was loaded anew"


def test_back_and_forward_from_a_mode_that_is_not_usually_offered(browser: Browser, address: str) -> None:
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
    assert "cannot be reached" not in page.locator("#outcome").inner_text()
    page.close()


def test_a_wrong_condition_is_told_in_place(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/?q=cat")
    page.get_by_label("Condition").fill("color=red")
    page.keyboard.press("Enter")
    page.wait_for_selector(".notice.bad")
    assert "'color' cannot be filtered. Fields to filter by: authors" in page.locator(".notice").inner_text()
    page.get_by_label("Remove the filter color=red").click()
    page.wait_for_selector(".hit")
    page.close()


def test_context_opens_in_place_and_closes(open_page: Any) -> None:
    page = open_page("/?q=hunts&mode=keyword")
    hit = page.locator(".hit").first
    hit.get_by_text("Show context").click()
    page.wait_for_selector(".hit .passages")
    assert hit.locator(".passages li").all_text_contents() == [
        "the cat sleeps on the mat",
        "a cat hunts at night",
        "the vet sees every cat once a year",
    ]
    assert hit.locator(".passages .chosen").inner_text() == "a cat hunts at night"
    assert hit.locator(".passages mark").all_text_contents() == ["hunts"]
    hit.get_by_text("Hide context").click()
    assert not hit.locator(".passages").is_visible()


def test_the_drawer_draws_what_each_leg_gave(open_page: Any) -> None:
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
    told = page.evaluate("fetch('/api/search?q=cat+sleeps&explain=1').then(a => a.json())")
    points = {share["leg"]: share["points"] for share in told["hits"][0]["explain"]["shares"]}
    assert [keyword, semantic] == pytest.approx([points["keyword"], points["semantic"]], abs=0.005)
    assert both == pytest.approx([keyword, semantic], abs=0.005)


def test_the_keyboard_alone_is_enough(open_page: Any, address: str) -> None:
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
    assert page.locator("#q").input_value() == "j", "in the field, letters are letters"
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("hunts")
    settle(page, "/?q=hunts&mode=keyword")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}/chunk?*")
    assert page.locator("h1").inner_text() == "Cats"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "path", sampled(["/", "/gone", "/?q=cat+sleeps&filter=source_type%3Dmd", "/?q=zyzzyva&mode=keyword", "/status"], 2)
)
def test_everything_can_be_read(browser: Browser, address: str, scheme: Any, path: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    page.goto(address + path)
    for drawer in page.locator(".why > summary").all():
        drawer.click()
    texts = page.evaluate(COLOURS)
    assert len(texts) > 5
    faint = [(text, round(contrast(ink, ground), 2)) for text, ink, ground in texts if contrast(ink, ground) < READABLE]
    assert faint == []
    page.close()


def test_the_theme_is_the_systems_until_one_is_chosen(open_page: Any, address: str) -> None:
    page = open_page("/", color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    assert dark != light
    page.locator("#theme").click()
    assert page.evaluate(ground) == dark
    page.goto(f"{address}/status")
    assert page.evaluate(ground) == dark, "it is remembered"
    page.locator("#theme").click()
    assert page.evaluate(ground) == light


@pytest.mark.parametrize("path", sampled(["/?q=cat+sleeps", "/", "/status", "/?q=hunts&mode=keyword"]))
@pytest.mark.parametrize("script", [True, False])
def test_on_a_phone_nothing_sticks_out(open_page: Any, path: str, script: bool) -> None:
    page = open_page(path, viewport=PHONE, java_script_enabled=script, is_mobile=True, has_touch=True)
    for summary in page.locator(".why > summary").all()[:2]:
        summary.click()
    width = page.locator("html").bounding_box()["width"]
    assert width <= PHONE["width"]
    assert page.locator(".brand span").bounding_box()["height"] < 30, "the name stays in one line"
    assert page.evaluate(BEYOND, PHONE["width"] + 1) == []


@pytest.mark.parametrize("path", ["/?q=cat+sleeps", "/?q=%22no+such+phrase%22", "/"])
def test_targets_on_a_phone_are_large_enough_for_a_finger(open_page: Any, path: str) -> None:
    page = open_page(path, viewport=PHONE, is_mobile=True, has_touch=True)
    if page.locator("#facets > summary").is_visible():
        page.locator("#facets > summary").click()
    assert page.evaluate(SMALL_TARGETS) == []
    if page.locator(".hit .title").count():
        page.locator(".hit .title").first.click()
        page.wait_for_url("**/chunk?*")
        assert page.evaluate(SMALL_TARGETS) == []


def test_a_passage_page_keeps_the_query_and_leads_back(browser: Browser, address: str) -> None:
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
def test_a_title_without_end_takes_two_lines(browser: Browser, tmp_path: Path, words: str, width: int) -> None:
    giant = family("a.md", f"a cat {words}", metadata={"title": words, "headings": [words, f"more {words}"]})
    with legs_over(tmp_path, [giant]) as legs, served(make_app(site_over(Held(legs)))) as address:
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


def test_one_way_to_search_needs_no_choice(browser: Browser, legs: Legs) -> None:
    words = replace(legs, semantic=None)
    with served(make_app(site_over(Held(words), usual_mode="keyword"))) as address:
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


def test_on_a_phone_the_filters_are_folded_and_stay_as_they_are(open_page: Any) -> None:
    page = open_page("/?q=cat&mode=keyword", viewport=PHONE)
    assert not page.get_by_role("checkbox", name="txt").is_visible()
    page.locator("#facets > summary").click()
    page.get_by_role("checkbox", name="txt").check()
    settle(page, "/?q=cat&mode=keyword&filter=source_type%3Dtxt")
    assert page.get_by_role("checkbox", name="txt").is_visible()
    wide = open_page("/?q=cat&mode=keyword", viewport={"width": 1100, "height": 700})
    assert wide.get_by_role("checkbox", name="txt").is_visible()


def test_without_a_script_everything_works(open_page: Any, address: str) -> None:
    page = open_page("/", java_script_enabled=False)
    assert not page.locator("#theme").is_visible(), "what would do nothing is not shown"
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


def test_when_the_server_has_gone_it_is_said(browser: Browser, legs: Legs) -> None:
    page = browser.new_page()
    with served(make_app(site_over(Held(legs)))) as address:
        page.goto(f"{address}/?q=cat")
    page.locator("#q").fill("cats")
    page.wait_for_selector("#outcome .without")
    page.close()


def test_signing_in_leads_to_what_was_asked(browser: Browser, legs: Legs) -> None:
    with served(make_app(site_over(Held(legs), tokens={"the-token": "*"}))) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}/?q=sleeps")
        page.get_by_label("Token").fill("the-token")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")
        assert page.url == f"{address}/?q=sleeps"
        assert page.evaluate("document.cookie") == "", "no script reads it"
        page.locator("#q").fill("hunts")
        page.wait_for_function("() => document.title.startsWith('hunts')")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_selector("#token")
        context.close()
