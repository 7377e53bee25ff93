"""Facets count the families with a value in any found document, also if their documents differ."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from chunksink.sinks.conformance.samples import DIMENSIONS, family, marker, with_vectors
from chunksink.sinks.document import Family
from chunksink.sinks.fields import FILTERS
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.meilisearch import MeilisearchReader
from chunksink.sinks.reader import FacetValue, Filter, KeywordReader
from tests.engines.servers import MeilisearchServer
from tests.support.meilisearch import build_id_of, build_of, served

LANGUAGES, TAGS = ("en", "de", "fr"), ("red", "green", "blue", "odd one")


def differing(number: int) -> Family:
    """A family whose documents have different pages, languages and tags. Some have no tag."""
    texts = [f"a zebra in {number} {part}" + (" and a lion" if part % 2 else "") for part in range(1 + number % 5)]
    made = family(f"docs/{number}.md", texts, metadata={"source_type": f"type {number % 3}", "size_bytes": number % 4})
    documents = [
        msgspec.structs.replace(
            document,
            page_start=part // 2,
            page_end=part,
            year=2000 + (number + part) % 7,
            language=LANGUAGES[(number * part) % 3],
            tags=list({TAGS[number % 4], TAGS[part % 4]}) if (number + part) % 3 else None,
            content_truncated=part == 2 or None,
            modified_at_epoch=10**9 + part % 2,  # recorded events differ in it
        )
        for part, document in enumerate(made.documents)
    ]
    return with_vectors(documents)


FAMILIES = [differing(number) for number in range(40)]


@pytest.fixture(scope="module")
def readers(
    meilisearch_server: MeilisearchServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[MeilisearchReader, KeywordReader]]:
    """The same documents in Meilisearch and in fts, which counts exactly."""
    for server in served(meilisearch_server):
        sink, exact = server.sink(), FtsSink(tmp_path_factory.mktemp("facets") / "fts")
        signed = marker()
        build = exact.create(signed, DIMENSIONS)
        build.replace(FAMILIES)
        build.flush()
        yield sink.reader(build_id_of(build_of(sink, FAMILIES))), exact.reader(signed.build_id)
        sink.close()


QUERIES: list[tuple[str, list[Filter]]] = [
    ("", []),
    ("zebra", []),
    ("lion", []),
    ("lion", [Filter("language", any_of=("de", "fr")), Filter("page_start", at_most=1)]),
    ("zebra", [Filter("tags", any_of=("odd one",))]),
    ("giraffe", []),
]


@pytest.mark.parametrize(("query", "filters"), QUERIES)
def test_every_value_counts_its_families(
    query: str, filters: list[Filter], readers: tuple[MeilisearchReader, KeywordReader]
) -> None:
    found, exact = (reader.facets(query, sorted(FILTERS), filters) for reader in readers)
    for field in FILTERS:
        if len(exact[field]) < 100:
            assert found[field] == exact[field], field
        else:
            assert len(found[field]) == 100, field


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
def test_most_frequent_values_come_first(limit: int, readers: tuple[MeilisearchReader, KeywordReader]) -> None:
    fields = ["chunk_index", "tags", "language", "source_type"]
    assert readers[0].facets("zebra", fields, limit=limit) == readers[1].facets("zebra", fields, limit=limit)


def test_many_values_are_counted_one_by_one(meilisearch_server: MeilisearchServer) -> None:
    families = [differing(number) for number in range(40)]
    many = [
        with_vectors(
            [msgspec.structs.replace(d, year=1900 + (11 * n + part) % 70) for part, d in enumerate(f.documents)]
        )
        for n, f in enumerate(families)
    ]
    wanted: dict[int, set[str]] = {}
    for one in many:
        for document in one.documents:
            wanted.setdefault(document.year or 0, set()).add(document.parent_id)
    counted = sorted((FacetValue(year, len(of)) for year, of in wanted.items()), key=lambda v: (-v.families, v.value))
    assert len(counted) > 50
    for server in served(meilisearch_server):
        with closing(server.sink()) as sink:
            reader = sink.reader(build_id_of(build_of(sink, many)))
            assert reader.facets("", ["year"])["year"] == counted
            assert reader.facets("", ["year"], limit=3)["year"] == counted[:3]


def test_equal_values_within_a_source_are_one_request(
    readers: tuple[MeilisearchReader, KeywordReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, requests = readers[0], list[str]()
    send = reader._connection.send

    def noted(path: str, body: Any) -> Any:
        requests.append(path)
        return send(path, body)

    monkeypatch.setattr(reader._connection, "send", noted)
    reader.facets("zebra", ["source_type", "extension", "size_bytes", "parent_id"])
    assert len(requests) == 1
    reader.facets("zebra", ["source_type", "tags", "language"])
    assert len(requests) == 1 + 2 + 2, "one more for each other field, of few values"
