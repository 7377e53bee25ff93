"""The page on a phone: its width, the size of tap targets, and the folded filters."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chunksink.search.page.app import make_app
from tests.conftest import sampled
from tests.search.page.support import LegAnswers, served, settle, site_over
from tests.search.support import family, legs_over

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PHONE = {"width": 320, "height": 740}

# Visible elements that extend beyond the right edge.
BEYOND = """edge => [...document.querySelectorAll('body *')]
    .filter(e => e.checkVisibility() && e.getBoundingClientRect().width > 0 && e.getBoundingClientRect().right > edge)
    .map(e => e.outerHTML.slice(0, 200))"""

# Visible links, buttons and boxes (with their labels) that are less than 40 pixels high.
SMALL_TARGETS = """() => [...document.querySelectorAll('a[href], button, summary, input, label')]
    .filter(e => e.checkVisibility() && !e.matches('.skip, .hidden, label input, label.hidden')
        && e.getBoundingClientRect().height > 0 && e.getBoundingClientRect().height < 39.5)
    .map(e => e.outerHTML.slice(0, 160))"""


@pytest.mark.parametrize(
    ("path", "script"),
    sampled(product(["/?q=cat+sleeps", "/", "/status", "/?q=hunts&mode=keyword"], [True, False]), 5),
)
def test_page_fits_a_phone(open_page: Any, path: str, script: bool) -> None:
    page = open_page(path, viewport=PHONE, java_script_enabled=script, is_mobile=True, has_touch=True)
    for summary in page.locator(".why > summary").all()[:2]:
        summary.click()
    width = page.locator("html").bounding_box()["width"]
    assert width <= PHONE["width"]
    assert page.locator(".brand span").bounding_box()["height"] < 30, "the name fits one line"
    assert page.evaluate(BEYOND, PHONE["width"] + 1) == []


@pytest.mark.parametrize("path", ["/?q=cat+sleeps", "/?q=%22no+such+phrase%22", "/?q=huntts", "/"])
def test_targets_on_a_phone_are_large_enough(open_page: Any, path: str) -> None:
    page = open_page(path, viewport=PHONE, is_mobile=True, has_touch=True)
    if page.locator("#facets > summary").is_visible():
        page.locator("#facets > summary").click()
    assert page.evaluate(SMALL_TARGETS) == []
    if page.locator(".hit .title").count():
        page.locator(".hit .title").first.click()
        page.wait_for_url("**/chunk?*")
        assert page.evaluate(SMALL_TARGETS) == []


def test_filters_on_a_phone_are_folded_and_stay_open_once_opened(open_page: Any) -> None:
    page = open_page("/?q=cat&mode=keyword", viewport=PHONE)
    assert not page.get_by_role("checkbox", name="txt").is_visible()
    page.locator("#facets > summary").click()
    page.get_by_role("checkbox", name="txt").check()
    settle(page, "/?q=cat&mode=keyword&filter=source_type%3Dtxt")
    assert page.get_by_role("checkbox", name="txt").is_visible()
    wide = open_page("/?q=cat&mode=keyword", viewport={"width": 1100, "height": 700})
    assert wide.get_by_role("checkbox", name="txt").is_visible()


def test_suggestion_on_a_phone_has_a_space_before_its_words(open_page: Any) -> None:
    page = open_page("/?q=huntts", viewport=PHONE, is_mobile=True, has_touch=True)
    assert page.locator(".notice a").inner_text() == "Search for hunts"


def test_long_title_on_a_phone_ends_after_two_lines(browser: Browser, tmp_path: Path) -> None:
    long = family("a.md", "a cat", metadata={"title": "The handbook of the care of cats " * 6})
    with legs_over(tmp_path, [long]) as legs, served(make_app(site_over(LegAnswers(legs)))) as address:
        context = browser.new_context(viewport={"width": 390, "height": 740}, is_mobile=True, has_touch=True)
        page = context.new_page()
        page.goto(f"{address}/?q=cat")
        height = page.locator(".hit .title").evaluate(
            "e => e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)"
        )
        context.close()
    assert height == pytest.approx(2, abs=0.05)
