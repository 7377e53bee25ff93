"""Facets of a keyword build against plain counting of the documents that a search finds."""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.document import CUSTOM, Document, Family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.reader import FacetValue, Filter, Value

FIELDS = (
    *("fields.project", "fields.priority", "fields.due", "fields.labels", "fields.open", "fields.unknown"),
    *("tags", "year", "language", "content_truncated", "tenant_key", "parent_id"),
)
QUERIES = ("", "boat", "boat ship", "rare", "東京", "boat 京都", '"ship boat"', "absent", "bo")


def drawn(draw: random.Random, number: int) -> Family:
    """A family whose chunks have different values or none."""

    def maybe(value: Any) -> dict[str, Any]:
        return {} if draw.random() < 0.3 else {"value": value}

    texts = [
        " ".join(draw.choices(("boat", "ship", "東京都庁", "京都の寺", "rare"), (9, 9, 3, 3, 0.1), k=4))
        for _ in range(draw.randint(1, 4))
    ]
    values = {
        "project": maybe(draw.choice(("Größe", "a", "B", "1"))),
        "priority": maybe(draw.choice((1, 2.5, 1.0, -3))),
        "due": maybe(draw.choice(("2026-01-01", "1969-12-31"))),
        "labels": maybe(draw.sample(("x", "y", "z", "ü"), draw.randint(0, 3))),
        "open": maybe(draw.random() < 0.5),
        "tags": maybe(draw.sample(("x", "y", "z"), draw.randint(0, 3))),
        "year": maybe(draw.randint(2000, 2003)),
        "language": maybe(draw.choice(("de", "en"))),
    }
    metadata = {name: one["value"] for name, one in values.items() if one}
    return family(f"{number}.md", texts, tenant_id=draw.choice(("acme", "other")), metadata=metadata)


def mixed(draw: random.Random, families: Sequence[Family]) -> list[Family]:
    """Families of which some chunks have values of other families."""
    fields = [document.fields for one in families for document in one.documents]
    return [
        Family([msgspec.structs.replace(one, fields=draw.choice(fields)) for one in each.documents])
        for each in families
    ]


def values_of(document: Document, field: str) -> set[Value]:
    name = field.removeprefix(CUSTOM)
    value = document.fields.get(name) if field.startswith(CUSTOM) else getattr(document, field)
    return set(value) if isinstance(value, list | tuple) else set() if value is None else {value}


def counted(documents: Sequence[Document], field: str, limit: int) -> list[FacetValue]:
    families: defaultdict[Value, set[str]] = defaultdict(set)
    for document in documents:
        for value in values_of(document, field):
            families[value].add(document.parent_id)
    counts = [FacetValue(value, len(of_value)) for value, of_value in families.items()]
    return sorted(counts, key=lambda one: (-one.families, one.value))[:limit]


@pytest.mark.parametrize("seed", range(6))
def test_facets_equal_plain_counting(build: FtsBuild, reader: FtsReader, seed: int) -> None:
    draw = random.Random(seed)
    families = [drawn(draw, number) for number in range(120)]
    tenant = str(families[0].documents[0].tenant_key)
    filters: tuple[list[Filter], ...] = (
        [],
        [],
        [Filter("tenant_key", any_of=(tenant,))],
        [Filter("fields.priority", at_least=1), Filter("fields.labels", any_of=("x", "ü"), is_list=True)],
        [Filter("year", at_most=2001)],
    )
    for _ in range(3):  # after the first query the connection has a table with the former state
        build.replace(mixed(draw, draw.sample(families, 60)))
        build.delete([one.parent_id for one in draw.sample(families, 5)])
        for _ in range(20):
            typed, conditions, limit = draw.choice(QUERIES), draw.choice(filters), draw.choice((1, 3, 1000))
            among = [one.parent_id for one in draw.sample(families, 20)] if draw.random() < 0.3 else None
            fields = draw.sample(FIELDS, draw.randint(0, 5))
            documents = [
                document
                for document in reader.get([hit.id for hit in reader.search(typed, 10_000, conditions)])
                if among is None or document.parent_id in among
            ]
            expected = {field: counted(documents, field, limit) for field in fields}
            assert reader.facets(typed, fields, conditions, limit, among) == expected, (typed, conditions, among)


def test_facets_of_an_empty_build_are_empty(reader: FtsReader) -> None:
    assert reader.facets("", FIELDS) == reader.facets("boat", FIELDS) == {field: [] for field in FIELDS}


def test_facets_ignore_what_is_not_a_value(build: FtsBuild, reader: FtsReader) -> None:
    build.replace([family("a", ["a boat"]), family("b", ["a boat"], metadata={"labels": ["x"]})])
    other = '{"labels": ["x", null, {"a": 1}, ["y"]], "project": null, "priority": {"a": 1}}'
    build._connection.execute("UPDATE documents SET fields = ? WHERE fields IS NULL", [other])
    found = reader.facets("boat", FIELDS[:4])
    assert found == {"fields.labels": [FacetValue("x", 2)]} | {field: [] for field in FIELDS[:3]}


def test_facets_sort_equal_counts_of_numbers_before_text(build: FtsBuild, reader: FtsReader) -> None:
    build.replace([family(name, ["a boat"]) for name in "abc"])
    for row, value in enumerate(('"1"', "10", "9.5"), 1):
        build._connection.execute("UPDATE documents SET fields = ? WHERE row = ?", [f'{{"project": {value}}}', row])
    found = reader.facets("boat", ["fields.project"])["fields.project"]
    assert [one.value for one in found] == [9.5, 10, "1"]
