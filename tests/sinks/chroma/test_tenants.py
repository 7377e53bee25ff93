"""A tenant's nearest documents are found by comparing all of its vectors, regardless of other tenants."""

from collections.abc import Iterator
from contextlib import closing
from functools import cache

import msgspec
import numpy as np
import pytest

from chunksink.chunkbus.identity import tenant_key
from chunksink.sinks.chroma import ChromaBuild, ChromaSink, EmbeddedChromaSink, exact_search
from chunksink.sinks.chroma.reader import ChromaReader
from chunksink.sinks.conformance.samples import family, marker
from chunksink.sinks.document import Family, Vectors
from chunksink.sinks.reader import Filter

LENGTH = 48
NUMBER, MORE = 1200, 1800
QUERIES = np.random.default_rng(1).standard_normal((20, LENGTH)).astype(np.float32)


@cache
def drawn(name: str, number: int, version: int = 1) -> Family:
    """Random vectors, which have no near neighbours and are hard for a graph."""
    documents = family(name, [f"{name} {place}" for place in range(number)], tenant_id=name).documents
    rows = np.random.default_rng([version, *name.encode()]).standard_normal((number, LENGTH)).astype(np.float32)
    return Family(documents, rows / np.linalg.norm(rows, axis=1, keepdims=True))


def of(one: Family) -> list[Filter]:
    return [Filter("tenant_key", any_of=(str(one.documents[0].tenant_key),))]


def nearest(one: Family, vector: Vectors, number: int) -> list[str]:
    assert one.vectors is not None
    similar = one.vectors @ vector
    return [one.documents[row].id for row in np.argsort(-similar)[:number]]


def found(reader: ChromaReader, one: Family, number: int = 50) -> list[list[str]]:
    return [[hit.id for hit in reader.query(vector, number, of(one))] for vector in QUERIES]


def exact(one: Family, number: int = 50) -> list[list[str]]:
    return [nearest(one, vector, number) for vector in QUERIES]


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaSink]:
    with closing(EmbeddedChromaSink(tmp_path_factory.mktemp("chroma"))) as sink:
        yield sink


@pytest.fixture(scope="module")
def build(sink: ChromaSink) -> Iterator[ChromaBuild]:
    with closing(sink.create(marker(), LENGTH)) as build:
        build.replace([drawn("acme", NUMBER), drawn("globex", MORE), drawn("initech", 300)])
        assert build.flush() == []
        yield build


@pytest.fixture
def reader(sink: ChromaSink, build: ChromaBuild) -> Iterator[ChromaReader]:
    with closing(sink.reader(sink.builds()[0])) as reader:
        yield reader


@pytest.mark.promise(11)
def test_nearest_documents_of_a_tenant_are_all_found(reader: ChromaReader) -> None:
    own = drawn("acme", NUMBER)
    assert found(reader, own) == exact(own)
    assert [hit.id for hit in reader.query(QUERIES[0], NUMBER + 1, of(own))] == nearest(own, QUERIES[0], NUMBER)
    early = [*of(own), Filter("chunk_index", at_most=99)]
    among = [id for id in nearest(own, QUERIES[0], NUMBER) if id in {one.id for one in own.documents[:100]}]
    assert [hit.id for hit in reader.query(QUERIES[0], 10, early)] == among[:10]


def test_tenant_view_is_that_of_the_last_refresh(reader: ChromaReader, build: ChromaBuild) -> None:
    before = drawn("initech", 300)
    assert found(reader, before) == exact(before)
    documents = [msgspec.structs.replace(one, text_hash=f"sha256:{'0' * 64}") for one in before.documents]
    changed = Family(documents, drawn("initech", 300, version=2).vectors)
    build.replace([changed])
    assert build.flush() == []
    reader.refresh()
    assert found(reader, changed) == exact(changed)


def test_replaced_family_is_still_found_under_a_filter(reader: ChromaReader, build: ChromaBuild) -> None:
    """Its old documents no longer pass a filter, and its new ones are not in the kept list."""
    filters = [Filter("tenant_key", any_of=(tenant_key("umbrella") or "",)), Filter("chunk_index", at_most=9)]
    for version in ("1", "2"):
        documents = family("umbrella", ["one", "two"], version=version, tenant_id="umbrella").documents
        build.replace([Family(documents, drawn("umbrella", 2).vectors)])
        assert build.flush() == []
        assert {hit.id for hit in reader.query(QUERIES[0], 5, filters)} == {one.id for one in documents}


def test_tenant_with_too_many_documents_is_searched_through_the_graph(
    reader: ChromaReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_search, "MAX_OF_TENANT", NUMBER - 1)
    own = drawn("acme", NUMBER)
    hits = found(reader, own)
    with reader._in_use() as handle:
        assert list(handle.tenants.values()) == [None], "its vectors are not kept"
    assert all(len(one) == 50 for one in hits)
    assert {id for one in hits for id in one} <= {one.id for one in own.documents}


def test_least_recent_tenants_are_evicted(reader: ChromaReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_search, "_MAX_BYTES", NUMBER * LENGTH * 4)
    for name, number in (("acme", NUMBER), ("globex", MORE), ("acme", NUMBER)):
        assert found(reader, drawn(name, number)) == exact(drawn(name, number))
        with reader._in_use() as handle:
            assert len(handle.tenants) == 1
