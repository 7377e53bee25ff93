"""Nothing in the data or in an address becomes an element, a handler or an address with a scheme: a hundred payloads,
in every field that is shown and in every parameter, looked at in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from chunksink.search.page.app import make_app
from tests.conftest import HEAVY
from tests.search.page.support import Held, served, site_over
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
    """One of so many; all in a soak."""
    return PAYLOADS if HEAVY else PAYLOADS[first::step]


# All elements with what an attack would leave: names, handlers, styles, addresses.
LOOK = """() => ({
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
OURS = re.findall(
    r"\w+",
    """html head meta title link script body a header img span form label input button fieldset legend nav svg circle
    path div details summary main p strong ul li ol article h1 h2 section mark small rect dl dt dd q code footer dialog
    kbd em del pre table thead tbody tr th td blockquote hr br h3 h4 h5 h6""",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A source for each payload, which stands in all that is shown of it."""
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
        served(make_app(site_over(Held(legs), source_url="https://git.example.org/"))) as address,
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


def looked_at(page: Page, address: str) -> Any:
    seen = page.evaluate(LOOK)
    assert seen["pwned"] is None
    assert set(seen["names"]) <= set(OURS)
    assert seen["scripts"] == ["/static/theme.js", "/static/page.js"]
    assert seen["handlers"] == []
    assert set(seen["images"]) == {"/static/icon.svg"}
    foreign = [
        a for a in seen["addresses"] if not a.startswith((f"{address}/", "https://git.example.org/", f"{address}#"))
    ]
    assert foreign == []
    return seen


def test_payloads_in_every_field(page: Page, address: str) -> None:
    assert len(set(PAYLOADS)) == 100
    shown = ""
    for mode in ("hybrid", "keyword"):
        page.goto(f"{address}/?q=needle&limit=100&all=1&mode={mode}")
        assert page.locator(".hit").count() == 100
        for name in ("details", "rest", "why"):
            page.evaluate(f"document.querySelectorAll('{name}, .{name}').forEach(e => e.open = true)")
        shown += looked_at(page, address)["text"]
    assert "<script>window.pwned=1</script>" in shown, "it is shown as it is"
    page.locator(".title").first.hover()
    looked_at(page, address)


def test_payloads_in_what_opens_in_place(page: Page, address: str) -> None:
    page.goto(f"{address}/?q=needle&limit=100&mode=keyword")
    for opened, link in enumerate(page.locator("a.context").all()[:20], start=1):
        link.click()
        # One at a time: what opens moves the links below it away from under the next click.
        page.wait_for_function("count => document.querySelectorAll('.hit .passages').length === count", arg=opened)
    looked_at(page, address)
    page.locator(".title").first.click()
    page.wait_for_selector("main.single")
    looked_at(page, address)


def test_payloads_in_the_address(page: Page, address: str) -> None:
    for number, payload in enumerate(some(0, 5)):
        given = quote(payload, safe="")
        paths = (
            f"/?q={given}",
            f"/?q=needle&filter=tags%3D{given}&filter=language%3D{given}",
            f"/?q=needle&mode={given}",
            f"/?q=needle&tenant={given}&filter={given}",
            f"/chunk?id={given}&tenant={given}",
            f"/{given}",
            f"/?{given}={given}&q=x",
        )
        for path in paths if HEAVY else [paths[number % len(paths)]]:
            page.goto(address + path)
            looked_at(page, address)


def test_payloads_as_one_types(page: Page, address: str) -> None:
    page.goto(f"{address}/")
    for payload in some(1, 11):
        page.locator("#q").fill(payload)
        page.wait_for_function("q => new URLSearchParams(location.search).get('q') === q", arg=payload)
        page.wait_for_selector("#results:not([aria-busy])")
        looked_at(page, address)
        assert page.locator("#q").input_value() == payload


def test_payloads_in_the_sign_in_form(page: Page, address: str, tmp_path: Any) -> None:
    with (
        legs_over(tmp_path, [family("a.md", "text")], vectors_too=False) as legs,
        served(make_app(site_over(Held(legs), tokens={"t": "*"}))) as guarded,
    ):
        for payload in some(6, 11):
            page.goto(f"{guarded}/?q={quote(payload, safe='')}")
            looked_at(page, guarded)
            page.get_by_label("Token").fill(payload)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_selector(".notice")
            looked_at(page, guarded)
