"""Custom fields: from configuration to documents, and the same answers from every engine."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunksink.search.filters import parse_filters
from chunksink.settings.errors import ConfigError
from chunksink.settings.fields import FieldOptions, FieldType
from chunksink.sinks.capabilities import SupportsReader
from chunksink.sinks.chroma import EmbeddedChromaSink
from chunksink.sinks.conformance.samples import DIMENSIONS, FIELDS, fill, marker, records, vector, with_vectors
from chunksink.sinks.custom_fields import MAX_MEMBERS_OF_ALL_LISTS, MAX_METADATA, NO_FIELDS, FieldSet
from chunksink.sinks.document import Document, Family
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.jsonl import JsonlSink
from chunksink.sinks.postgres import PostgresOptions
from chunksink.sinks.postgres.sink import PostgresSink
from chunksink.sinks.projection import PROJECTION_VERSION, fields_in, project_family, projection_id
from chunksink.sinks.reader import Filter
from tests.conftest import HEAVY
from tests.engines.servers import MeilisearchServer, PostgresServer
from tests.support.capabilities import required
from tests.support.chunks import JUNK, chunk
from tests.support.meilisearch import served

TYPES = {name: FieldOptions(type=name) for name in get_args(FieldType)}


def values(**metadata: Any) -> dict[str, Any]:
    """The custom fields of a chunk with this metadata, each named like its type."""
    [document] = project_family([chunk(metadata=metadata)], FieldSet.of(TYPES))
    return document.fields


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"string": " a \n b "}, {"string": "a b"}),
        ({"string": 42}, {"string": "42"}),
        ({"string": "ü" * 10_000_000}, {"string": "ü" * 156}),
        ({"string": "x\0y"}, {"string": "x\ufffdy"}),
        ({"string": True}, {}),
        ({"string": {"a": 1}}, {}),
        ({"string": ""}, {}),
        ({"number": 3.0}, {"number": 3}),
        ({"number": "1e3"}, {"number": 1000}),
        ({"number": "-2.50"}, {"number": -2.5}),
        ({"number": 1 / 3}, {"number": 0.333333333333333}),
        ({"number": 2**53}, {}),
        ({"number": "9" * 400}, {}),
        ({"number": "NaN"}, {}),
        ({"number": "1,5"}, {}),
        ({"number": True}, {}),
        ({"boolean": "TRUE"}, {"boolean": True}),
        ({"boolean": 1}, {"boolean": True}),
        ({"boolean": "No"}, {"boolean": False}),
        ({"boolean": 2}, {}),
        ({"datetime": "2026-01-31"}, {"datetime": 1769817600}),
        ({"datetime": "2026-01-31T01:00:00+01:00"}, {"datetime": 1769817600}),
        ({"datetime": "20260131"}, {"datetime": 1769817600}),
        ({"datetime": "Sat, 31 Jan 2026 00:00:00 GMT"}, {"datetime": 1769817600}),
        ({"datetime": 1769817600}, {"datetime": 1769817600}),
        ({"datetime": 1769817600123}, {"datetime": 1769817600}),
        ({"datetime": 10**14}, {"datetime": 10**11}),
        ({"datetime": 10**16 - 1}, {}),
        ({"datetime": -(10**11) + 1}, {}),
        ({"datetime": "0001-01-01"}, {"datetime": -62135596800}),
        ({"datetime": "9999-12-31T23:59:59Z"}, {"datetime": 253402300799}),
        ({"datetime": 2**53 - 1}, {}),
        ({"datetime": "0001-01-01T00:00:00+14:00"}, {}),
        ({"datetime": 20260131}, {"datetime": 1769817600}),
        ({"datetime": 20260131.0}, {"datetime": 1769817600}),
        ({"datetime": 20260231}, {"datetime": 20260231}),
        ({"datetime": 18991231}, {"datetime": 18991231}),
        ({"datetime": "20260231"}, {}),
        ({"datetime": 2026}, {"datetime": 1767225600}),
        ({"datetime": "2026"}, {"datetime": 1767225600}),
        ({"datetime": " 2026-02 "}, {"datetime": 1769904000}),
        ({"datetime": "2026-13"}, {}),
        ({"datetime": 12}, {"datetime": 12}),
        ({"datetime": "12"}, {}),
        ({"datetime": "1769817600"}, {"datetime": 1769817600}),
        ({"datetime": "-1769817600123"}, {"datetime": -1769817601}),
        ({"datetime": "1769817600.100014"}, {"datetime": 1769817600}),
        ({"datetime": "31/Jan/26 12:00 AM"}, {"datetime": 1769817600}),
        ({"datetime": "Jan 30, 2026 11:59 pm"}, {"datetime": 1769817540}),
        ({"datetime": "31/Jan/26 1:00 AM +0100"}, {"datetime": 1769817600}),
        ({"datetime": "30 Jan 2026 7:00 p.m. EST"}, {"datetime": 1769817600}),
        ({"datetime": "30 Jan 2026 12:00 PM"}, {"datetime": 1769774400}),
        ({"datetime": "31 Jan 2026 00:00 -0000"}, {"datetime": 1769817600}),
        ({"datetime": "31 Jan 2026 13:14 AM"}, {}),
        ({"datetime": "31 Jan 2026 9:14 CET"}, {}),
        ({"datetime": "31 Jan 2026 9:14 +01:00"}, {}),
        ({"datetime": "31 Jan 2026 9:14 AM PM"}, {}),
        ({"datetime": "31 January 2026"}, {"datetime": 1769817600}),
        ({"datetime": "31 January"}, {}),
        ({"datetime": "31.01.2026"}, {}),
        ({"datetime": "01/31/2026"}, {}),
        ({"strings": ["a", "a", "b", 7]}, {"strings": ["a", "b", "7"]}),
        ({"strings": "a; b,c"}, {"strings": ["a", "b", "c"]}),
        ({"strings": [str(number) for number in range(9000)]}, {"strings": [str(number) for number in range(256)]}),
        ({"strings": [{"a": 1}]}, {}),
    ],
)
def test_value_is_converted_or_left_out(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    assert values(**raw) == expected


@pytest.mark.parametrize(
    "text", ["2026", "2026-07", "2026-07-14", "20260714", "1784000000", "2026-07-14T09:00:00+05:30"]
)
def test_time_means_the_same_in_a_chunk_and_in_a_filter(text: str) -> None:
    [condition] = parse_filters([f"datetime>={text}"], FieldSet.of(TYPES))
    stored = [values(datetime=raw) for raw in (text, int(text) if text.isdigit() else text)]
    assert stored == [{"datetime": condition.at_least}] * 2


@given(st.dictionaries(st.sampled_from([*TYPES, "other", "a.b", "ü"]), JUNK))
def test_unexpected_values_raise_nothing_and_are_reported(metadata: dict[str, Any]) -> None:
    fields = FieldSet.of(TYPES)
    record = chunk(metadata=metadata)
    [document] = project_family([record], fields)
    reported = {problem.detail.split("]")[0].removeprefix("[fields.") for problem in fields.problems(record)}
    assert reported.isdisjoint(document.fields)
    has_value = {name for name in TYPES if metadata.get(name) not in (None, "", [])}
    assert has_value == reported | document.fields.keys()


def test_path_may_have_any_keys() -> None:
    path = 'source."release date".größe'
    fields = FieldSet.of({"size": FieldOptions(path=path, type="number")})
    [document] = project_family([chunk(source={"release date": {"größe": 5}})], fields)
    assert document.fields == {"size": 5}


def test_path_leads_through_lists_of_objects() -> None:
    path = "metadata.comments.body"
    fields = FieldSet.of(
        {
            "comments": FieldOptions(path=path, type="strings"),
            "words": FieldOptions(path=path, filter=False, search=True),
            "one": FieldOptions(path=path),
        }
    )
    long = "word " * 200
    comments = [{"body": long, "by": {"body": "x"}}, {"by": "Ann"}, "text", {"body": "Retry."}]
    record = chunk(metadata={"comments": comments})
    [document] = project_family([record], fields)
    assert document.fields == {"comments": [long[:468].rstrip(), "Retry."], "words": f"{long}Retry."}
    assert [problem.detail.split("]")[0] for problem in fields.problems(record)] == ["[fields.one"]


def test_path_leads_through_nested_lists() -> None:
    paths = {"bodies": "metadata.comments.replies.body", "labels": "metadata.comments.labels"}
    fields = FieldSet.of({name: FieldOptions(path=path, type="strings") for name, path in paths.items()})
    comments = [{"replies": [{"body": "a"}, {"body": "b"}], "labels": ["x", "y"]}, {"replies": [], "labels": ["z"]}]
    record = chunk(metadata={"comments": [*comments, {"replies": {"body": "c"}}]})
    [document] = project_family([record], fields)
    assert document.fields == {"bodies": ["a", "b", "c"], "labels": ["x", "y", "z"]}


def test_other_scalar_metadata_is_kept_within_limits() -> None:
    many = {f"key {number}": number for number in range(10_000)}
    kept = {"flag": True, "text": "x" * 5_000_000, "n": 1.5, "title": "T", "list": [1], "deep": {"a": 1}, "none": None}
    [document] = project_family([chunk(metadata={**kept, **many})], FieldSet.of({"n": FieldOptions(type="number")}))
    metadata = orjson.loads(document.metadata or "")
    assert metadata.pop("flag") is True
    assert metadata.pop("text") == "x" * 1000
    assert len(metadata) == MAX_METADATA - 2
    assert metadata.keys() <= many.keys()


@pytest.mark.parametrize(
    ("metadata", "kept"),
    [
        ({"title": "A", "extension": ".MD", "year": "2026"}, {}),
        ({"title": "Another", "source": "CRM", "index": "A-17", "extension": "txt"}, ...),
        ({"date": "2026-05-01", "published": 2025}, {"date": "2026-05-01"}),
        ({"snowflake": 1234567890123456789, "huge": 2**63}, {"snowflake": 1234567890123456789}),
    ],
)
def test_metadata_that_is_no_field_of_the_document_is_kept(metadata: dict[str, Any], kept: Any) -> None:
    record = chunk(metadata=metadata, title="A", source={"extension": "md"})
    [document] = project_family([record])
    assert orjson.loads(document.metadata or "{}") == (metadata if kept is ... else kept)


def test_lists_of_a_document_are_limited_together() -> None:
    names = [f"list{number}" for number in range(8)]
    fields = FieldSet.of(dict.fromkeys(names, FieldOptions(type="strings")))
    long = [str(number) for number in range(256)]
    [document] = project_family([chunk(metadata=dict.fromkeys(names, long))], fields)
    assert sum(map(len, document.fields.values())) == MAX_MEMBERS_OF_ALL_LISTS
    assert [] not in document.fields.values(), "Chroma stores no empty list"


@pytest.mark.parametrize("name", ["text", "id", "tenant_id", "tenant_key", "year", "fields", "metadata", "parent_id"])
def test_name_of_our_own_field_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"\[fields\.{name}\]"):
        FieldSet.of({name: FieldOptions()})


# --- the same in every engine

NUMBERS = st.sampled_from([-3.25, 0, 0.1, 1e-7, 2, 10, 10**15 - 1]) | st.integers(-5, 5)
WORDS = st.sampled_from(["apollo", "Apollo", "größe", "a=b", "x y", 'q"u', "[x]", "100%"])
MOMENTS = st.integers(-(10**9), 4 * 10**9)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "project": WORDS,
        "priority": NUMBERS,
        "due": MOMENTS,
        "labels": st.lists(WORDS, min_size=1, max_size=3),
        "open": st.booleans(),
    },
)


def bounds(field: str, numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[Filter]:
    return st.one_of(
        st.builds(lambda low: Filter(field, at_least=low), numbers),
        st.builds(lambda low: Filter(field, at_least=math.nextafter(low, math.inf)), numbers),
        st.builds(lambda high: Filter(field, at_most=high), numbers),
        st.builds(lambda some: Filter(field, any_of=tuple(some)), st.lists(numbers, min_size=1, max_size=3)),
    )


FILTERS = st.one_of(
    bounds("fields.priority", NUMBERS),
    bounds("fields.due", MOMENTS),
    st.builds(lambda some: Filter("fields.project", any_of=tuple(some)), st.lists(WORDS, min_size=1)),
    st.builds(lambda some: Filter("fields.labels", any_of=tuple(some), is_list=True), st.lists(WORDS, min_size=1)),
    st.builds(lambda flag: Filter("fields.open", any_of=(flag,)), st.booleans()),
)


@pytest.fixture(scope="module")
def engines(
    tmp_path_factory: pytest.TempPathFactory, meilisearch_server: MeilisearchServer, postgres_server: PostgresServer
) -> Iterator[list[Any]]:
    """An empty build of each engine that answers filters."""
    folder = tmp_path_factory.mktemp("engines")
    with ExitStack() as stack:
        server = stack.enter_context(contextmanager(served)(meilisearch_server))
        postgres = PostgresSink(PostgresOptions(postgres_server.url, schema="fields"))
        sinks = [FtsSink(folder), EmbeddedChromaSink(folder), server.sink(), postgres]
        for sink in sinks:
            stack.callback(sink.close)
        yield [(sink, stack.enter_context(closing(sink.create(marker(), DIMENSIONS)))) for sink in sinks]


def families(metadata: list[dict[str, Any]]) -> list[Family]:
    return [
        with_vectors(project_family(records(f"docs/{number}.md", ["red apple"], metadata=one), FIELDS))
        for number, one in enumerate(metadata)
    ]


@settings(max_examples=25 if HEAVY else 8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(metadata=st.lists(METADATA, min_size=12, max_size=12), filters=st.lists(FILTERS, min_size=1, max_size=12))
def test_every_engine_returns_the_documents_that_pass(
    engines: list[Any], metadata: list[dict[str, Any]], filters: list[Filter]
) -> None:
    stored = families(metadata)
    documents: list[Document] = [document for one in stored for document in one.documents]
    for sink, build in engines:
        fill(build, stored)
        assert {one.document for one in build.scan(content=True)} == set(documents), sink.name
        signed = build.marker()
        with closing(required(sink, SupportsReader).reader(signed.build_id)) as reader:
            for condition in filters:
                hits = reader.search("", 50, [condition]) if hasattr(reader, "search") else None
                hits = reader.query(vector("red apple"), 50, [condition]) if hits is None else hits
                expected = {document.id for document in documents if condition.passes(document)}
                assert {hit.id for hit in hits} == expected, (sink.name, condition)


UNUSUAL: dict[str, dict[str, Any]] = {
    "docs/nul.md": {"project": "x\0y", "la\0bel": "z\0", "labels": ["a\0b", "\0"], "\0": 1},
    "docs/many.md": {"project": "many", **{f"key {number}": number for number in range(10_000)}},
    "docs/\"quoted' name.md": {
        "project": "'; DROP TABLE documents; --",
        "quo\"te's": 'it"s',
        "labels": ['"', "'", "\\"],
    },
    "docs/large.md": {"project": "x" * 10_000_000, "large": "y" * 10_000_000},
    "docs/names.md": {"project": "ours", "id": "x", "tenant_id.": 1, "fields": {"project": "no"}, "metadata": "m"},
    "docs/odd.md": {"project": math.nan, "priority": math.inf, "due": math.nan, "other": math.nan, "deep": [[[[]]]]},
}


def test_every_engine_keeps_unusual_values_alike(engines: list[Any], tmp_path: Path) -> None:
    stored = []
    for name, metadata in UNUSUAL.items():
        (record,) = records(name, ["red apple"])
        record["metadata"] = metadata  # `records` refuses NaN, as the bus contract does
        stored.append(with_vectors(project_family([record], FIELDS)))
    documents = [document for one in stored for document in one.documents]
    projects = [document.fields.get("project") for document in documents]
    assert projects == ["x\ufffdy", "many", "'; DROP TABLE documents; --", "x" * 468, "ours", None]
    assert documents[0].fields["labels"] == ["a\ufffdb", "\ufffd"]
    assert documents[-1].metadata is None
    jsonl = JsonlSink(tmp_path)
    for sink, build in [*engines, (jsonl, jsonl.create(marker(), DIMENSIONS))]:
        fill(build, stored)
        ours = {document.id for document in documents}
        found = {one.id: one for one in build.scan(content=True) if one.id in ours}
        assert {one.document for one in found.values()} == set(documents), sink.name
        assert {id: one.document_hash for id, one in found.items()} == {one.id: one.document_hash for one in documents}
        if sink is jsonl:
            continue
        with closing(required(sink, SupportsReader).reader(build.marker().build_id)) as reader:
            for project, document in zip(projects[:-1], documents, strict=False):
                condition = Filter("fields.project", any_of=(project,))
                search = getattr(reader, "search", None)
                hits = search("", 50, [condition]) if search else reader.query(vector("red apple"), 50, [condition])
                assert [hit.id for hit in hits] == [document.id], (sink.name, condition)


def test_index_has_the_unchanged_fields_of_every_build() -> None:
    fields = FieldSet.of({"a": FieldOptions(), "b": FieldOptions(type="number"), "c": FieldOptions()})
    before = FieldSet.of({"a": FieldOptions(), "b": FieldOptions(), "c": FieldOptions(), "d": FieldOptions()})
    assert [one.name for one in fields_in(fields, [projection_id(before)]).fields] == ["a", "c"]
    assert [one.name for one in fields_in(fields, [projection_id(before), projection_id(fields)]).fields] == ["a", "c"]
    assert fields_in(fields, [projection_id(fields)]) == fields
    other_version = projection_id(fields).replace(f"{PROJECTION_VERSION}/", f"{PROJECTION_VERSION - 1}/")
    for none in (other_version, "", projection_id(NO_FIELDS)):
        assert fields_in(fields, [projection_id(fields), none]) == NO_FIELDS
