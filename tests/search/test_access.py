"""Tenants are separate in hits, neighbours, chunks by id, facets and counts."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.search.access import Access
from chunksink.search.filters import parse_filters
from chunksink.search.legs import Legs
from chunksink.search.neighbours import get
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.sinks.document import Document
from tests.conftest import HEAVY
from tests.search.support import MODES, family, legs_over

TENANTS = ("acme", "globex", "initech")
QUERIES = 10_000 if HEAVY else 100
WORDS = ("cat", "boat", "tax", "feline", "ship", "levy", "kitten")
TEXTS = [" ".join(random.Random(number).choices(WORDS, k=5)) for number in range(6)]

# Each tenant has the same texts in the same sources. Some documents have no tenant.
OWNED = {
    tenant: [family(f"{n}.md", *TEXTS, ids=tenant, tenant_id=tenant, source_type=f"of {tenant}") for n in range(4)]
    for tenant in TENANTS
}
WITHOUT_TENANT = [family(f"{n}.md", *TEXTS, ids="none") for n in range(4)]
FAMILIES = [*(one for families in OWNED.values() for one in families), *WITHOUT_TENANT]


def documents(hits: object) -> list[Document]:
    return [one for hit in hits for one in (hit.document, *hit.same_text, *hit.before, *hit.after)]  # type: ignore[attr-defined]


@pytest.mark.promise(11)
def test_search_never_returns_documents_of_another_tenant(
    legs: Legs, record_property: Callable[[str, object], None]
) -> None:
    """All texts are identical, so only the tenant differs. Some filters ask for other tenants."""
    record_property("questions", QUERIES)
    drawn = random.Random(7)
    foreign_keys = {tenant: OWNED[tenant][0].documents[0].tenant_key for tenant in TENANTS}
    for _ in range(QUERIES):
        tenant = drawn.choice(TENANTS)
        other = drawn.choice([one for one in TENANTS if one != tenant])
        filters = drawn.choice(
            [
                [],
                [f"tenant_key={foreign_keys[other]}"],
                [f"source_type=of {other}"],
                [f"parent_id={OWNED[other][0].parent_id}"],
                [f"source_type=of {other}", f"source_type=of {tenant}"],
                [f'source_type=x" OR tenant_key = "{foreign_keys[other]}'],
            ]
        )
        mode: Mode = drawn.choice(MODES)
        question = Question(
            " ".join(drawn.choices(WORDS, k=drawn.randint(1, 4))),
            mode=mode,
            limit=drawn.choice((1, 5, 50)),
            offset=drawn.choice((0, 0, 3)),
            filters=parse_filters(filters),
            facets=("source_type", "tenant_key"),
            collapse=drawn.random() < 0.5,
            context=drawn.choice((0, 2)),
        )
        for required in (False, True):
            answer = search(legs, question, Access(tenant, required=required))
            assert {one.tenant_id for one in documents(answer.hits)} <= {tenant}
            assert {value.value for value in answer.facets["source_type"]} <= {f"of {tenant}"}
            assert {value.value for value in answer.facets["tenant_key"]} <= {foreign_keys[tenant]}
            assert all(value.families <= 4 for values in answer.facets.values() for value in values)


@pytest.mark.promise(11)
@pytest.mark.parametrize("mode", MODES)
def test_search_without_a_required_tenant_finds_nothing(legs: Legs, mode: Mode) -> None:
    question = Question("cat", mode=mode, facets=("source_type",))
    answer = search(legs, question, Access(None, required=True))
    assert (answer.hits, dict(answer.facets), answer.more) == ((), {}, False)
    assert answer.notice is not None


@pytest.mark.promise(11)
def test_documents_without_a_tenant_are_hidden_if_one_is_required(legs: Legs) -> None:
    without_tenant = WITHOUT_TENANT[0].documents[0].chunk_id
    assert get(legs, Access(), without_tenant) is not None
    for access in (Access(None, required=True), Access("acme", required=True), Access("acme")):
        assert get(legs, access, without_tenant) is None
        question = Question("cat", limit=100, collapse=False)
        assert None not in {one.tenant_id for one in documents(search(legs, question, access).hits)}


@pytest.mark.promise(11)
def test_get_returns_only_chunks_of_the_tenant(legs: Legs) -> None:
    for tenant in TENANTS:
        document = OWNED[tenant][0].documents[2]
        found = get(legs, Access(tenant, required=True), document.chunk_id, 2)
        assert found is not None
        assert {one.tenant_id for one in (found.document, *found.before, *found.after)} == {tenant}
        assert (len(found.before), len(found.after)) == (2, 2)
        for other in TENANTS:
            if other != tenant:
                assert get(legs, Access(other), document.chunk_id) is None


def test_search_without_a_tenant_sees_all_if_none_is_required(legs: Legs) -> None:
    answer = search(legs, Question("cat boat tax", limit=100, facets=("source_type",)))
    assert {one.tenant_id for one in documents(answer.hits)} == {*TENANTS, None}


@pytest.mark.promise(11)
@pytest.mark.parametrize("mode", MODES)
def test_many_documents_of_other_tenants_hide_nothing(mode: Mode, tmp_path: Path) -> None:
    """The engines search only the tenant's documents. Filtering their best hits afterwards would find nothing."""
    crowd = [family(f"{n}.md", f"cat cat cat {n}", ids=f"o{n}", tenant_id="other") for n in range(150)]
    own = family("own.md", "one cat among many other words here", ids="own", tenant_id="acme")
    with legs_over(tmp_path, [*crowd, own]) as legs:
        answer = search(legs, Question("cat", mode=mode, limit=1), Access("acme"))
    assert [hit.document.tenant_id for hit in answer.hits] == ["acme"]
    assert not answer.more
