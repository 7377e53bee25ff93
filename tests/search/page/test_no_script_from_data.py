"""Data and parameters never become elements, event handlers or script addresses. A hundred payloads in every shown
field and in every parameter, checked in Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from chunksink.search.page.app import make_app
from tests.conftest import HEAVY
from tests.search.page.support import LegAnswers, served, site_over
from tests.search.support import family, legs_over

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CALLS = ["window.pwned=1", "window['pwned']=1", "top.pwned=1", "pwned=1", "self.pwned=1"]
FORMS = [
    "<script>{}</script>",
    "<ScRiPt>{}</sCrIpT>",
    "<script/x>{}</script>",
    "</script><script>{}</script>",
    "<img src=x onerror={}>",
    '"><img src=x onerror="{}">',
    "'><svg onload='{}'>",
    "<svg><script>{}</script></svg>",
    "</title></style></textarea><script>{}</script>",
    "<iframe srcdoc='<script>{}</script>'>",
    '" onmouseover="{}" autofocus onfocus="{}" x="',
    "' onclick='{}' x='",
    "javascript:{}",
    "JaVaScRiPt:{}//",
    "data:text/html,<script>{}</script>",
    "<a href='javascript:{}'>x</a>",
    "<mark>x</mark><b onclick={}>b</b>",
    "{{{{ 7*7 }}}}{{% {} %}}",
    "<!--><script>{}</script>-->",
    "<base href='https://evil.example/'><meta http-equiv=refresh content='0;javascript:{}'>",
]
PAYLOADS = [form.format(*[call] * form.count("{}")) for form in FORMS for call in CALLS]


def some(first: int, step: int) -> list[str]:
    """Every n-th payload; all of them in a soak."""
    return PAYLOADS if HEAVY else PAYLOADS[first::step]


# Traces of an attack: names of elements, handlers, styles, addresses.
TRACES = """() => ({
    pwned: window.pwned ?? null,
    names: [...new Set([...document.querySelectorAll('*')].map(e => e.localName))],
    scripts: [...document.scripts].map(s => s.getAttribute('src')),
    handlers: [...document.querySelectorAll('*')].flatMap(e =>
        e.getAttributeNames().filter(n => n.startsWith('on') || n === 'style' || n === 'srcdoc')),
    addresses: ['href', 'src', 'action', 'formaction', 'data', 'poster'].flatMap(name =>
        [...document.querySelectorAll(`[${name}]`)].map(e => new URL(e.getAttribute(name), location).href)),
    images: [...document.images].map(i => i.getAttribute('src')),
    text: document.body.textContent,
})"""
EXPECTED_ELEMENTS = re.findall(
    r"\w+",
    """html head meta title link script body a header img span form label input button fieldset legend nav svg circle
    path div details summary main p strong ul li ol article h1 h2 section mark small rect dl dt dd q code footer dialog
    kbd em del pre table thead tbody tr th td blockquote hr br h3 h4 h5 h6""",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One source for each payload, with the payload in every shown field."""
    families = [
        family(
            f"{payload} {number}",
            f"needle before {payload}",
            f"{payload} needle {payload}",
            source_type=payload,
            **({"source": {"mime_type": "text/markdown"}} if number % 2 else {}),
            metadata={
                "title": f"{payload} title",
                "headings": [payload, f"below {payload}"],
                "tags": [payload],
                "authors": [payload],
                "language": payload,
                "speaker": payload,
                "sheet_name": payload,
                "anchor": payload,
            },
        )
        for number, payload in enumerate(PAYLOADS)
    ]
    with (
        legs_over(tmp_path_factory.mktemp("payloads"), families) as legs,
        served(make_app(site_over(LegAnswers(legs), source_url="https://git.example.org/"))) as address,
    ):
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.on("dialog", lambda dialog: dialog.dismiss())
    yield page
    context.close()


def assert_harmless(page: Page, address: str) -> Any:
    traces = page.evaluate(TRACES)
    assert traces["pwned"] is None
    assert set(traces["names"]) <= set(EXPECTED_ELEMENTS)
    assert traces["scripts"] == ["/static/theme.js", "/static/page.js"]
    assert traces["handlers"] == []
    assert set(traces["images"]) == {"/static/icon.svg"}
    foreign = [
        a for a in traces["addresses"] if not a.startswith((f"{address}/", "https://git.example.org/", f"{address}#"))
    ]
    assert foreign == []
    return traces


def test_payloads_in_fields_are_shown_as_text(page: Page, address: str) -> None:
    assert len(set(PAYLOADS)) == 100
    shown = ""
    for mode in ("hybrid", "keyword"):
        page.goto(f"{address}/?q=needle&limit=100&all=1&mode={mode}")
        assert page.locator(".hit").count() == 100
        for name in ("details", "rest", "why"):
            page.evaluate(f"document.querySelectorAll('{name}, .{name}').forEach(e => e.open = true)")
        shown += assert_harmless(page, address)["text"]
    assert "<script>window.pwned=1</script>" in shown, "it is shown as text"
    page.locator(".title").first.hover()
    assert_harmless(page, address)


def test_payloads_in_opened_context_are_shown_as_text(page: Page, address: str) -> None:
    page.goto(f"{address}/?q=needle&limit=100&mode=keyword")
    for opened, link in enumerate(page.locator("a.context").all()[: 20 if HEAVY else 4], start=1):
        link.click()
        # One at a time, because opened context moves the links below it.
        page.wait_for_function("count => document.querySelectorAll('.hit .passages').length === count", arg=opened)
    assert_harmless(page, address)
    page.locator(".title").first.click()
    page.wait_for_selector("main.single")
    assert_harmless(page, address)


def test_payloads_in_the_address_are_shown_as_text(page: Page, address: str) -> None:
    for number, payload in enumerate(some(0, 14)):
        quoted = quote(payload, safe="")
        paths = (
            f"/?q={quoted}",
            f"/?q=needle&filter=tags%3D{quoted}&filter=language%3D{quoted}",
            f"/?q=needle&mode={quoted}",
            f"/?q=needle&tenant={quoted}&filter={quoted}",
            f"/chunk?id={quoted}&tenant={quoted}",
            f"/{quoted}",
            f"/?{quoted}={quoted}&q=x",
        )
        for path in paths if HEAVY else [paths[number % len(paths)]]:
            page.goto(address + path)
            assert_harmless(page, address)


def test_payloads_typed_as_query_are_shown_as_text(page: Page, address: str) -> None:
    page.goto(f"{address}/")
    for payload in some(1, 33):
        page.locator("#q").fill(payload)
        page.wait_for_function("q => new URLSearchParams(location.search).get('q') === q", arg=payload)
        page.wait_for_selector("#results:not([aria-busy])")
        assert_harmless(page, address)
        assert page.locator("#q").input_value() == payload


def test_payloads_in_the_sign_in_form_are_shown_as_text(page: Page, address: str, tmp_path: Any) -> None:
    with (
        legs_over(tmp_path, [family("a.md", "text")], vectors_too=False) as legs,
        served(make_app(site_over(LegAnswers(legs), tokens={"t": "*"}))) as guarded,
    ):
        for payload in some(6, 33):
            page.goto(f"{guarded}/?q={quote(payload, safe='')}")
            assert_harmless(page, guarded)
            page.get_by_label("Token").fill(payload)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_selector(".notice")
            assert_harmless(page, guarded)
