"""Custom fields on the page and in the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from chunksink.search.legs import Legs
from chunksink.search.page.app import make_app
from chunksink.settings.fields import FieldOptions
from chunksink.sinks.custom_fields import FieldSet
from tests.search.page.support import Complaints, LegAnswers, client_of, served, settle, site_over, titles
from tests.search.support import family, legs_over

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FIELDS = FieldSet.of(
    {
        "project": FieldOptions(facet=True, sort=True),
        "due": FieldOptions(type="datetime", facet=True),
        "priority": FieldOptions(type="number", sort=True),
        "open": FieldOptions(type="boolean", facet=True),
        "hidden": FieldOptions(facet=True, filter=False),
    }
)
NAMES = ("apollo", 'x" onclick="alert(1)', "<b>gemini</b>", "=b & c")


@pytest.fixture(scope="module")
def legs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    tickets = [
        family(
            f"{number}.md",
            f"a cat number {number}",
            custom=FIELDS,
            metadata={
                "project": name,
                "due": f"2026-0{number + 1}-01",
                "priority": number,
                "open": number == 0,
                "hidden": str(number),
                "note": f"kept {number}",
            },
        )
        for number, name in enumerate(NAMES)
    ]
    plain = family("plain.md", "a cat without any", custom=FIELDS)
    with legs_over(tmp_path_factory.mktemp("tickets"), [*tickets, plain]) as legs:
        yield replace(legs, fields=FIELDS)


@pytest.fixture(scope="module")
def client(legs: Legs) -> Iterator[TestClient]:
    with client_of(make_app(site_over(LegAnswers(legs), fields=FIELDS))) as client:
        yield client


def asked(client: TestClient, **params: Any) -> Any:
    answer = client.get("/api/search", params={"q": "cat", **params})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_openapi_lists_the_names_of_custom_fields(client: TestClient) -> None:
    parameters = client.get("/api/openapi.json").json()["paths"]["/api/search"]["get"]["parameters"]
    meaning = {one["name"]: one["description"] for one in parameters}
    assert "priority" in meaning["filter"]
    assert "hidden" not in meaning["filter"]
    assert ("hidden" in meaning["facet"], "priority" in meaning["facet"]) == (True, False)


def test_every_choice_of_the_page_leads_to_as_many_hits_as_it_counts(client: TestClient) -> None:
    page = client.get("/?q=cat&mode=keyword").text
    choices = re.findall(r'name="filter" value="([^"]*)"><span dir="auto">[^<]*</span> <small>(\d+)</small>', page)
    assert "project= =b & c" in [unescape(condition) for condition, _ in choices]
    assert {condition.partition("=")[0] for condition, _ in choices} >= {"project", "due", "open"}
    for condition, number in choices:
        assert len(asked(client, mode="keyword", filter=unescape(condition))["hits"]) == int(number)


def test_page_answers_while_the_index_lacks_the_fields(legs: Legs) -> None:
    """After a change of the configuration, until the sync."""
    lacking = LegAnswers(replace(legs, lacking=["project"]))
    with client_of(make_app(site_over(lacking, fields=FIELDS))) as client:
        assert client.get("/", params={"q": "cat", "sort": ""}).status_code == 200
        assert client.get("/", params={"q": "cat", "filter": "project=apollo"}).status_code == 400


@pytest.fixture(scope="module")
def address(legs: Legs) -> Iterator[str]:
    with served(make_app(site_over(LegAnswers(legs), fields=FIELDS))) as address:
        yield address


def test_facet_is_chosen_and_removed_in_the_browser(browser: Browser, address: str) -> None:
    complaints = Complaints()
    page = browser.new_context().new_page()
    page.set_default_timeout(10_000)
    complaints.listen(page)
    page.goto(f"{address}/?q=cat&mode=keyword")
    for name in NAMES:  # as text, never as markup
        box = page.get_by_role("checkbox", name=name, exact=False)
        assert box.count() == 1
        box.check()
        page.wait_for_function("() => location.search.includes('filter=project')")
        page.wait_for_selector("ol.hits > li:nth-child(1):last-child")
        assert len(titles(page)) == 1
        page.get_by_role("checkbox", name=name, exact=False).uncheck()
        settle(page, "/?q=cat&mode=keyword")
    assert page.locator("[value^='hidden=']").count() == 0, "nothing to choose: it is no filter"
    page.context.close()


def test_several_days_can_be_chosen(browser: Browser, address: str) -> None:
    page = browser.new_context().new_page()
    page.set_default_timeout(10_000)
    page.goto(f"{address}/?q=cat&mode=keyword")
    for day in ("2026-01-01", "2026-02-01"):
        page.get_by_role("checkbox", name=day).check()
        page.wait_for_function("day => location.search.includes(day)", arg=day)
        page.wait_for_function("day => document.querySelector('.chips')?.textContent.includes(day)", arg=day)
    assert sorted(titles(page)) == ["0.md", "1.md"]
    page.context.close()


def test_sorted_list_of_all_documents_keeps_its_form(browser: Browser, address: str) -> None:
    page = browser.new_context().new_page()
    page.set_default_timeout(10_000)
    page.goto(f"{address}/?sort=project")
    page.get_by_label("Sort by").focus()
    page.get_by_label("Sort by").select_option("-priority")
    settle(page, "/?sort=-priority")
    assert titles(page)[:2] == ["3.md", "2.md"]
    assert page.evaluate("document.activeElement.name") == "sort", "the focus stays"
    page.locator(".hit .title").first.click()
    page.get_by_role("link", name="Back to the results").click()
    page.wait_for_url("**/?sort=-priority")
    page.get_by_label("Sort by").select_option("")
    settle(page, "/")
    assert not page.get_by_label("Sort by").is_visible()
    page.context.close()
