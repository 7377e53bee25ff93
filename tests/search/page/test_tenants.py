"""Tenants are separate on the page and in the API: a token sees its tenant, with any parameters."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from chunksink.embeddings.rerankers import open_reranker
from chunksink.search.page.app import make_app
from chunksink.search.page.site import HIDDEN
from chunksink.search.rerank import Reranking
from chunksink.settings.rerank import RerankOptions
from tests.search.page.support import LegAnswers, bearer, client_of, degraded, site_over
from tests.search.support import family, legs_over

pytestmark = pytest.mark.promise(11)

TENANTS = ("acme", "globex")
TOKENS = {"token-acme": "acme", "token-globex": "globex", "token-all": "*"}
WORDS = ("cat", "boat", "tax", "secret")

OWNED = {
    tenant: [
        family(
            f"{n}.md",
            "cat boat",
            "tax secret",
            f"cat of {tenant}",
            ids=tenant,
            tenant_id=tenant,
            source_type=f"of-{tenant}",
        )
        for n in range(3)
    ]
    for tenant in TENANTS
}
WITHOUT_TENANT = [family("n.md", "cat boat", "tax secret of nobody", ids="none", source_type="of-nobody")]
CHUNKS = {tenant: [one for each in families for one in each.documents] for tenant, families in OWNED.items()}


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, TestClient]]:
    """Maps whether a tenant is required to a client."""
    everything = [one for families in OWNED.values() for one in families] + WITHOUT_TENANT
    with legs_over(tmp_path_factory.mktemp("index"), everything) as legs:
        site = site_over(LegAnswers(legs), tokens=TOKENS)
        required = site_over(LegAnswers(legs), tokens=TOKENS, tenants_required=True)
        with client_of(make_app(site)) as optional, client_of(make_app(required)) as strict:
            yield {False: optional, True: strict}


def sources(answer: Any) -> set[str]:
    return {one["parent_id"] for hit in answer["hits"] for one in (hit, *hit["same_text"])}


def test_token_finds_only_documents_of_its_tenant(clients: dict[bool, TestClient]) -> None:
    for client in clients.values():
        for tenant, other in (TENANTS, TENANTS[::-1]):
            found = client.get("/api/search?q=cat&limit=100&facet=source_type", headers=bearer(f"token-{tenant}"))
            assert sources(found.json()) == {one.parent_id for one in OWNED[tenant]}
            assert found.json()["facets"]["source_type"] == [{"value": f"of-{tenant}", "families": 3}]
            page = client.get("/?q=cat&limit=100", headers=bearer(f"token-{tenant}")).text
            assert (f"of {tenant}" in page, f"of {other}" in page, "nobody" in page) == (True, False, False)


@pytest.mark.parametrize("path", ["/api/search?q=cat", "/?q=cat", "/api/chunk?id=x", "/chunk?id=x"])
def test_token_cannot_name_another_tenant(clients: dict[bool, TestClient], path: str) -> None:
    for client in clients.values():
        answer = client.get(f"{path}&tenant=globex", headers=bearer("token-acme"))
        assert answer.status_code == 403
        assert client.get(f"{path}&tenant=acme", headers=bearer("token-acme")).status_code in (200, 404)


def test_chunk_of_another_tenant_is_not_found_by_id(clients: dict[bool, TestClient]) -> None:
    for client in clients.values():
        for tenant, other in (TENANTS, TENANTS[::-1]):
            owned, foreign = CHUNKS[tenant][1], CHUNKS[other][1]
            for path in ("/api/chunk", "/chunk"):
                answer = client.get(f"{path}?id={owned.chunk_id}&context=5", headers=bearer(f"token-{tenant}"))
                assert (answer.status_code, f"of {other}" in answer.text) == (200, False)
                for hidden in (foreign, WITHOUT_TENANT[0].documents[0]):
                    assert (
                        client.get(f"{path}?id={hidden.chunk_id}", headers=bearer(f"token-{tenant}")).status_code == 404
                    )


def test_token_for_all_tenants_must_name_one_if_required(clients: dict[bool, TestClient]) -> None:
    everybody = clients[False].get("/api/search?q=cat&limit=100", headers=bearer("token-all")).json()
    assert len(sources(everybody)) == 7
    assert len(everybody["hits"]) == 3, "equal texts are one hit for each tenant"
    client = clients[True]
    nothing = client.get("/api/search?q=cat&facet=source_type", headers=bearer("token-all")).json()
    assert (nothing["hits"], nothing["facets"]) == ([], {})
    assert nothing["notice"]
    page = client.get("/?q=cat", headers=bearer("token-all"))
    assert ('class="hit"' in page.text, nothing["notice"] in page.text, 'name="tenant"' in page.text) == (
        False,
        True,
        True,
    )
    named = client.get("/api/search?q=cat&limit=100&tenant=acme", headers=bearer("token-all")).json()
    assert len(sources(named)) == 3
    without_tenant = WITHOUT_TENANT[0].documents[0].chunk_id
    for tenant in ("acme", "none"):
        assert (
            client.get(f"/api/chunk?id={without_tenant}&tenant={tenant}", headers=bearer("token-all")).status_code
            == 404
        )


@pytest.mark.parametrize("token", ["token-all", "token-acme"])
def test_empty_tenant_is_refused_by_the_api_and_ignored_by_the_page(
    clients: dict[bool, TestClient], token: str
) -> None:
    for client in clients.values():
        for path in ("/api/search?q=cat", f"/api/chunk?id={CHUNKS['acme'][1].chunk_id}"):
            answer = client.get(f"{path}&tenant=", headers=bearer(token))
            assert (answer.status_code, set(answer.json())) == (400, {"error"})
        pages = [client.get(f"/?q=cat{more}", headers=bearer(token)).text for more in ("", "&tenant=", "&tenant=+")]
        shown = [page.count('class="hit"') for page in pages]
        assert shown == [shown[0]] * 3


def test_links_keep_the_named_tenant(clients: dict[bool, TestClient]) -> None:
    page = clients[True].get("/?q=cat&tenant=acme", headers=bearer("token-all")).text
    passages = {part.partition('"')[0] for part in page.split('href="/chunk?id=')[1:]}
    assert len(passages) == 3
    assert all(passage.endswith("&amp;tenant=acme#found") for passage in passages)


def test_status_needs_a_token_for_all_tenants(clients: dict[bool, TestClient]) -> None:
    for client in clients.values():
        hidden = client.get("/status", headers=bearer("token-acme"))
        assert hidden.status_code == 403
        assert "refused &amp; removed" not in hidden.text
        assert "refused &amp; removed" in client.get("/status", headers=bearer("token-all")).text
        assert ('href="/status"' in client.get("/", headers=bearer("token-acme")).text) is False


def test_engine_errors_are_shown_only_to_callers_who_see_all(tmp_path: Path) -> None:
    with (
        legs_over(tmp_path, OWNED["acme"]) as legs,
        client_of(make_app(site_over(LegAnswers(degraded(legs)), tokens=TOKENS))) as client,
    ):
        for path in ("/api/search?q=cat", "/?q=cat"):
            assert "10.0.0.7" in client.get(path, headers=bearer("token-all")).text
            answer = client.get(path, headers=bearer("token-acme"))
            assert "10.0.0.7" not in answer.text
            assert "not available right now" in answer.text
        assert "10.0.0.7" not in client.get("/readyz").text


def test_reason_of_the_reranker_is_shown_only_to_callers_who_see_all(tmp_path: Path) -> None:
    options = RerankOptions(model="m", url="http://127.0.0.1:9/rerank")
    with (
        closing(Reranking(open_reranker(options), options.top, options.deadline)) as reranking,
        legs_over(tmp_path, OWNED["acme"]) as legs,
        client_of(make_app(site_over(LegAnswers(replace(legs, reranking=reranking)), tokens=TOKENS))) as client,
    ):
        for path in ("/api/search?q=cat", "/?q=cat"):
            assert "127.0.0.1:9" in client.get(path, headers=bearer("token-all")).text
            assert "127.0.0.1:9" not in client.get(path, headers=bearer("token-acme")).text
        answer = client.get("/api/search?q=cat", headers=bearer("token-acme")).json()
        assert (answer["not_reranked"], answer["notice"] is None) == (HIDDEN, False)


def test_session_belongs_to_one_tenant(clients: dict[bool, TestClient]) -> None:
    client = clients[False]
    for tenant, other in pairwise((*TENANTS, TENANTS[0])):
        client.cookies.clear()
        client.post("/sign-in", data={"token": f"token-{tenant}", "target": "/"})
        page = client.get("/?q=cat&limit=100").text
        owned, foreign = (any(one.chunk_id in page for one in CHUNKS[name]) for name in (tenant, other))
        assert (owned, foreign) == (True, False)
    client.cookies.clear()
