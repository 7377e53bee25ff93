"""A tenant's answers depend on its documents alone: other tenants change no byte of them."""

import json
import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from chunksink.search.access import Access
from chunksink.search.filters import parse_filters, parse_sort
from chunksink.search.legs import EngineLeg, KeywordLeg, Legs, SemanticLeg
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.settings.fields import FieldOptions
from chunksink.sinks.contract import Marker
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.document import Family
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.postgres import PostgresOptions
from chunksink.sinks.postgres.sink import PostgresSink
from chunksink.sinks.reader import Filter
from tests.conftest import examples, sampled
from tests.engines.servers import MeilisearchServer, PostgresServer
from tests.search.support import DIMENSIONS, MODES, family, legs_over, meaning
from tests.support.meilisearch import SETTINGS

QUERIES = examples(100)
WORDS = (
    *("cat", "feline", "kitten", "boat", "ship", "vessel", "tax", "levy", "the", "of", "keeper", "lighthouse"),
    *("calibration", "calibrate", "installation", "install", "dry-run", "C++", ".NET", "E-417", "component"),
    *("東京都庁の展望台", "京都の寺", "手机iPhone", "straße", "harbour"),
)
TYPED = (*WORDS, "calibraton", "lighthuose", "harbuor", "instal", "mosquito", "zeppelin", "東京", "寺", '"the keeper"')
OWN = "acme"
FIELDS = FieldSet.of(
    {
        "project": FieldOptions(search=True, facet=True, sort=True),
        "priority": FieldOptions(type="number", facet=True, sort=True),
        "owner": FieldOptions(facet=True),
    }
)


def drawn_families(tenant: str, number: int, words: tuple[str, ...]) -> list[Family]:
    drawn = random.Random(f"{tenant} {number}")
    return [
        family(
            f"{place}.md",
            *(" ".join(drawn.choices(words, k=drawn.randint(2, 40))) for _ in range(drawn.randint(1, 4))),
            ids=f"{tenant}{place}",
            tenant_id=tenant,
            title=" ".join(drawn.choices(words, k=3)),
            tags=[drawn.choice(words[:8])],
            custom=FIELDS,
            metadata={"project": drawn.choice(words), "priority": drawn.choice((1, 2.5, 3)), "owner": tenant},
        )
        for place in range(number)
    ]


def crowd() -> list[Family]:
    """The same words with other frequencies, words that the tenant does not use, and words similar to what it writes or
    types."""
    drawn = random.Random(5)
    similar = [
        stem + "".join(drawn.choices("abcdefgh", k=3)) for stem in ("calibra", "lighth", "harb") for _ in range(150)
    ]
    return [
        *drawn_families("globex", 120, WORDS),
        *drawn_families("initech", 60, WORDS[:3]),
        *(family(f"rare{n}.md", "mosquito zeppelin", ids=f"r{n}", tenant_id="globex") for n in range(3)),
        family("near.md", " ".join(similar), ids="near", tenant_id="initech"),
    ]


def together(own: list[Family], others: list[Family]) -> list[Family]:
    """In the order of their keys, like a sync."""
    return sorted([*own, *others], key=lambda one: one.parent_id)


def random_question(drawn: random.Random, mode: Mode) -> Question:
    filters = drawn.choice(
        [
            [],
            [],
            ["schema_version=chunks.v1"],
            ["source_type=md"],
            [f"tags={drawn.choice(WORDS[:8])}"],
            ["size_bytes>=1"],
            [f"project={drawn.choice(WORDS[:3])}", "priority>1"],
            ["owner=globex"],
            ["path=1*"],
            ["filename=1*", "filename=2.md", "priority<=2.5"],
        ]
    )
    orders = ["priority", "-project", "-path"] if mode in ("hybrid", "keyword") else []
    return Question(
        " ".join(drawn.choices(TYPED, k=drawn.randint(1, 5))) + drawn.choice(("", " ")),
        mode=mode,
        limit=drawn.choice((3, 10, 60)),
        offset=drawn.choice((0, 0, 5, 60)),
        filters=parse_filters(filters, FIELDS),
        facets=("tags", "schema_version", "parent_id", "fields.project", "fields.priority", "fields.owner"),
        collapse=drawn.random() < 0.5,
        context=drawn.choice((0, 1)),
        fusion=drawn.choice(("scores", "ranks")),
        sort=parse_sort(drawn.choice([None, None, None, *orders]), FIELDS),
    )


def answer(legs: Legs, question: Question) -> dict[str, Any]:
    legs = replace(legs, fields=FIELDS)
    fields = search(legs, question, Access(OWN, required=True)).as_json(explain=True)
    del fields["took_ms"]
    return fields


def assert_same(alone: Legs, crowded: Legs, mode: Mode, *, number: int = QUERIES) -> None:
    drawn = random.Random(f"questions {mode}")
    found = 0
    for _ in range(number):
        question = random_question(drawn, mode)
        expected = answer(alone, question)
        assert expected["unavailable"] == {}
        found += len(expected["hits"])
        assert json.dumps(answer(crowded, question)) == json.dumps(expected), question
    assert found > number


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Legs, Legs]]:
    own = drawn_families(OWN, 40, WORDS)
    with (
        legs_over(tmp_path_factory.mktemp("alone"), together(own, [])) as alone,
        legs_over(tmp_path_factory.mktemp("crowded"), together(own, crowd())) as crowded,
    ):
        yield alone, crowded


@pytest.mark.promise(11)
@pytest.mark.parametrize("mode", MODES)
def test_fts_and_chroma_answers_do_not_depend_on_other_tenants(embedded: tuple[Legs, Legs], mode: Mode) -> None:
    assert_same(*embedded, mode)


@pytest.mark.promise(11)
@pytest.mark.parametrize("condition", ["owner=globex", "path=*", "tenant_key=x", "priority>=0"])
def test_no_condition_shows_values_of_other_tenants(embedded: tuple[Legs, Legs], condition: str) -> None:
    """Nor does the name of an engine's own column in place of a field."""
    crowded = replace(embedded[1], fields=FIELDS)
    question = Question(
        "", sort=parse_sort("priority", FIELDS), filters=parse_filters([condition], FIELDS), facets=("fields.owner",)
    )
    answer = search(crowded, question, Access(OWN, required=True))
    assert {hit.fields["owner"] for hit in answer} <= {OWN}
    assert {one.value for one in answer.facets["owner"]} <= {OWN}
    for name in ("fields.owner') label, documents --", "fields.owner', tenant_key"):
        with pytest.raises(InvalidFilter):
            search(crowded, replace(question, facets=(name,)), Access(OWN, required=True))


@contextmanager
def postgres_legs(server: PostgresServer, schema: str, families: list[Family]) -> Iterator[Legs]:
    with closing(PostgresSink(PostgresOptions(server.url, schema=schema))) as sink:
        with closing(sink.create(Marker("home", schema, 1), DIMENSIONS)) as build:
            build.replace(families)
            assert build.flush() == []
        with closing(sink.reader(schema)) as reader:
            yield Legs(
                KeywordLeg(reader, "postgres", schema), SemanticLeg(reader, meaning, "postgres", schema), unavailable={}
            )


@pytest.fixture(scope="module")
def in_postgres(postgres_server: PostgresServer) -> Iterator[tuple[Legs, Legs]]:
    own = drawn_families(OWN, 40, WORDS)
    with (
        postgres_legs(postgres_server, "alone", together(own, [])) as alone,
        postgres_legs(postgres_server, "crowded", together(own, crowd())) as crowded,
    ):
        yield alone, crowded


@pytest.mark.promise(11)
@pytest.mark.parametrize("mode", MODES)
def test_postgres_answers_do_not_depend_on_other_tenants(in_postgres: tuple[Legs, Legs], mode: Mode) -> None:
    assert_same(*in_postgres, mode)


@contextmanager
def meilisearch_legs(server: MeilisearchServer, index: str, families: list[Family], others: Legs) -> Iterator[Legs]:
    """With Meilisearch as the keyword sink, and as the engine of hybrid searches."""
    with closing(MeilisearchSink(server.url, server.key, index=index, settings=SETTINGS, vectors=True)) as sink:
        build = sink.create(Marker("home", index, 1), DIMENSIONS)
        build.replace(families)
        build.flush()
        reader = sink.reader(index)
        keyword = KeywordLeg(reader, "meilisearch", index)
        yield replace(others, keyword=keyword, engine=EngineLeg(reader, meaning, "meilisearch", index))


@pytest.fixture(scope="module")
def served(embedded: tuple[Legs, Legs], meilisearch_server: MeilisearchServer) -> Iterator[tuple[Legs, Legs]]:
    own = drawn_families(OWN, 40, WORDS)
    with (
        meilisearch_legs(meilisearch_server, "answers-alone", together(own, []), embedded[0]) as alone,
        meilisearch_legs(meilisearch_server, "answers-crowded", together(own, crowd()), embedded[1]) as crowded,
    ):
        yield alone, crowded


@pytest.mark.promise(11)
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "engine"])
def test_meilisearch_answers_do_not_depend_on_other_tenants(served: tuple[Legs, Legs], mode: Mode) -> None:
    """docs/tenants.md lists what Meilisearch takes from the words of the whole index."""
    assert_same(*served, mode, number=max(7, QUERIES // 6))


@pytest.mark.promise(11)
def test_words_of_other_tenants_do_not_change_the_answer(served: tuple[Legs, Legs]) -> None:
    """By itself Meilisearch drops the most frequent words of the whole index first, and would find nothing."""
    question = Question("lighthouse mosquito", mode="keyword", limit=100)
    hits = search(served[1], question, Access(OWN)).hits
    assert len(hits) == len(search(served[0], replace(question, text="lighthouse"), Access(OWN)).hits) > 10
    assert all("lighthouse" in highlight for hit in hits for highlight in hit.highlights)
    assert all(hit.highlights for hit in hits if "lighthouse" in hit.text)


def test_rare_words_do_not_hide_hits_that_pass_a_filter(served: tuple[Legs, Legs]) -> None:
    """The same with a filter instead of a tenant."""
    question = Question("lighthouse mosquito", mode="keyword", limit=100, filters=parse_filters(["tags=cat"]))
    hits = search(served[1], question).hits
    assert len(hits) == len(search(served[1], replace(question, text="lighthouse")).hits) > 10


@pytest.mark.parametrize(
    ("text", "access"),
    sampled(product(["lighthouse keeper tax", "cat harbour", "calibration the boat"], [Access(), Access(OWN)])),
)
def test_filter_on_a_value_finds_as_many_as_were_counted(served: tuple[Legs, Legs], text: str, access: Access) -> None:
    """The same words are dropped with a filter and without it, if anything passes the filter."""
    question = Question(text, mode="keyword", limit=200, facets=("tags", "schema_version"))
    answer = search(served[1], question, access)
    counted = sum(one.families for one in answer.facets["schema_version"])
    assert min(counted, question.limit) == len(answer.hits) > 0
    for one in answer.facets["tags"]:
        chosen = replace(question, filters=(Filter("tags", any_of=(one.value,)),), facets=())
        assert len(search(served[1], chosen, access).hits) == min(one.families, question.limit)
