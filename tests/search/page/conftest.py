"""One small library, which most tests here search, and a browser that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from chunksink.search.legs import Legs
from chunksink.search.page.app import make_app
from chunksink.sinks.document import Family
from tests.search.page.support import Complaints, LegAnswers, client_of, served, site_over
from tests.search.support import family, legs_over

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TEXTS = ("the cat sleeps on the mat", "a cat hunts at night", "the vet sees every cat once a year")
FIELDS = {"metadata": {"title": "Cats", "language": "en", "tags": ["pets", "home"], "headings": ["Cats", "Sleep"]}}


def library() -> list[Family]:
    pets = family("docs/cats.md", *TEXTS, source_type="md", **FIELDS)
    web = family("https://example.org/boats", "a boat is no cat", source_type="web", metadata={"language": "de"})
    many = [family(f"notes/{n:02}.txt", f"cat number {n}", source_type="txt") for n in range(23)]
    return [pets, web, *many]


@pytest.fixture(scope="module")
def legs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    with legs_over(tmp_path_factory.mktemp("library"), library()) as legs:
        yield legs


@pytest.fixture(scope="module")
def client(legs: Legs) -> Iterator[TestClient]:
    with client_of(make_app(site_over(LegAnswers(legs)))) as client:
        yield client


@pytest.fixture(scope="module")
def address(legs: Legs) -> Iterator[str]:
    with served(make_app(site_over(LegAnswers(legs)))) as address:
        yield address


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
