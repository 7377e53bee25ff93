"""The pictures of the documentation in a real browser: nothing overflows, every text is legible.

Fonts differ between machines, so the boxes must leave room. The test measures with the fonts of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.conftest import ROOT
from tests.support.contrast import READABLE, contrast

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Scheme = Literal["light", "dark"]
PICTURE = ROOT / "docs" / "flow.svg"
PAGE = {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}  # the background of a picture on GitHub

# Every text with its own rectangle, that of its box (none for a free label), and its colours.
MEASURE = """() => {
    const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
    return [...document.querySelectorAll('text')].map(text => {
        const rect = text.parentElement.querySelector(':scope > rect');
        const boxed = rect && text.parentElement.localName === 'g';
        return {
            words: text.textContent,
            at: box(text),
            box: boxed ? box(rect) : null,
            ink: getComputedStyle(text).fill,
            ground: boxed ? getComputedStyle(rect).fill : null,
        };
    });
}"""


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Scheme:
    chosen: Scheme = request.param
    return chosen


@pytest.fixture
def page(browser: Browser, scheme: Scheme) -> Iterator[Page]:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1000, "height": 400})
    page = context.new_page()
    page.goto(PICTURE.as_uri())
    yield page
    context.close()


def within(inner: list[float], outer: list[float], margin: float) -> bool:
    left, top, right, bottom = outer
    return (
        inner[0] >= left + margin
        and inner[1] >= top + margin
        and inner[2] <= right - margin
        and inner[3] <= bottom - margin
    )


def measured(page: Page) -> list[dict[str, Any]]:
    texts: list[dict[str, Any]] = page.evaluate(MEASURE)
    assert len(texts) > 10, "the picture has lost its words"
    return texts


def test_picture_texts_are_inside_the_picture_and_their_boxes(page: Page) -> None:
    frame = [0.0, 0.0, 960.0, 300.0]
    out = [
        text["words"]
        for text in measured(page)
        if not within(text["at"], frame, 2) or (text["box"] and not within(text["at"], text["box"], 2))
    ]
    assert out == []


def test_picture_texts_are_legible(page: Page, scheme: Scheme) -> None:
    faint = {
        text["words"]: round(ratio, 1)
        for text in measured(page)
        if (ratio := contrast(text["ink"], text["ground"] or PAGE[scheme])) < READABLE
    }
    assert faint == {}


def test_picture_has_no_script_and_fetches_nothing() -> None:
    """GitHub removes scripts and blocks requests. In other places a picture must be safe, too."""
    source = PICTURE.read_text(encoding="utf-8")
    assert not re.search(r"<script|\son\w+\s*=|javascript:|@import|<foreignObject|<image|href", source)
    assert set(re.findall(r"https?://[^\s\"']+", source)) == {"http://www.w3.org/2000/svg"}
