"""What the Chroma sink promises beyond the suite: stored content, foreign rows, limits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromadb
import msgspec
import numpy as np
import pytest
from chromadb.config import Settings

import chunksink.sinks.chroma.build as chroma_build
from chunksink.sinks.chroma import ChromaBuild, ChromaSink, EmbeddedChromaSink, Server, rows
from chunksink.sinks.chroma.reader import ChromaReader
from chunksink.sinks.conformance.samples import (
    DIMENSIONS,
    family,
    hashes_in,
    hashes_of,
    marker,
    records,
    rewritten,
    vector,
    with_vectors,
)
from chunksink.sinks.contract import NO_PARENT, Marker
from chunksink.sinks.document import Family, document_hash
from chunksink.sinks.projection import project_family
from chunksink.sinks.reader import Filter
from tests.engines.servers import ChromaServer
from tests.search.support import family as worded
from tests.support.chroma import folder


def test_build_is_readable_by_other_programs(build: ChromaBuild, tmp_path: Path, signed: Marker) -> None:
    build.replace([family("a", ["hello"], metadata={"tags": ["x", "y"], "year": 2001})])
    build.close()
    client = chromadb.PersistentClient(str(folder(tmp_path, signed)), settings=Settings(anonymized_telemetry=False))
    where: Any = {"tags": {"$contains": "x"}}
    found = client.get_collection("chunks", embedding_function=None).get(where=where)
    assert found["documents"] == ["hello"]
    assert found["metadatas"] is not None
    assert found["metadatas"][0]["year"] == 2001
    assert not [value for value in found["metadatas"][0].values() if value is None]


def test_build_without_text_stores_no_text(tmp_path: Path, signed: Marker) -> None:
    sink = EmbeddedChromaSink(tmp_path / "chroma", store_text=False)
    build = sink.create(signed, DIMENSIONS)
    one = family("a", ["a secret phrase", "another"])
    build.replace([one])
    assert build.flush() == []
    assert hashes_in(build) == hashes_of([one])
    assert hashes_in(build, content=True) == hashes_of([one]), (
        "hashes that cannot be computed again are those that are stored"
    )
    build.close()
    assert not any(b"secret phrase" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    reader = sink.reader(signed.build_id)
    assert reader.query(vector("another"), 1)[0].id == one.documents[1].id
    assert [document.text for document in reader.get([one.documents[0].id])] == [""]
    reader.close()


def test_foreign_change_is_found_by_a_content_scan_and_repaired(build: ChromaBuild) -> None:
    one, two, three = family("a", ["one"]), family("b", ["two"], metadata={"year": 2001}), family("c", ["three"])
    build.replace([one, two, three])
    collection = build._handle.opened().collection
    collection.update(ids=[one.documents[0].id], metadatas=[{"zzz": "hacked"}])
    collection.update(ids=[three.documents[0].id], documents=["tampered"], embeddings=np.stack([vector("one")]))
    assert hashes_in(build) == hashes_of([one, two, three])
    found = {stored.id: stored for stored in build.scan(content=True)}
    assert found[one.documents[0].id].document is None
    assert set(hashes_in(build, content=True)) & set(hashes_of([one, two, three])) == set(hashes_of([one, two]))
    build.replace([rewritten(each) for each in (one, two, three)])
    assert build.flush() == []
    assert hashes_in(build, content=True) == hashes_of([one, two, three])
    assert all(stored.document is not None for stored in build.scan(content=True))


@pytest.mark.parametrize("store_text", [True, False])
def test_a_foreign_number_that_has_no_hash_blocks_no_scan(store_text: bool, tmp_path: Path, signed: Marker) -> None:
    build = EmbeddedChromaSink(tmp_path, store_text=store_text).create(signed, DIMENSIONS)
    one, two = family("a", ["one"]), family("b", ["two"])
    build.replace([one, two])
    build.flush()
    build._handle.opened().collection.update(ids=[one.documents[0].id], metadatas=[{"size_bytes": 2**60}])
    found = {stored.id: stored for stored in build.scan(content=True)}
    changed = found[one.documents[0].id]
    assert (changed.document, changed.document_hash, changed.text_hash) == (None, "", "")
    build.replace([rewritten(one)])
    assert build.flush() == []
    assert hashes_in(build, content=True) == hashes_of([one, two])
    build.close()


def test_foreign_rows_are_found_and_removable(build: ChromaBuild) -> None:
    mine, other = family("a", ["mine"]), family("b", ["kept"])
    build.replace([mine, other])
    vectors = np.ones((3, DIMENSIONS), dtype=np.float32)
    parent = mine.parent_id
    build._handle.opened().collection.add(
        ["s1", "s2"], vectors[:2], metadatas=[{"x": 1}, {"parent_id": parent}], documents=["a", "b"]
    )
    build._handle.opened().collection.add(["s3"], vectors[2:], documents=["c"])
    found = {stored.id: (stored.parent_id, stored.document_hash) for stored in build.scan(content=True)}
    assert [found[id] for id in ("s1", "s2", "s3")] == [(NO_PARENT, ""), (parent, ""), (NO_PARENT, "")]
    build.replace([mine])
    build.flush()
    assert "s2" not in {stored.id for stored in build.scan()}, "in our family, of no version of ours"
    build.delete([NO_PARENT])
    build.flush()
    assert hashes_in(build) == hashes_of([mine, other])


@pytest.mark.parametrize("dropped_by_us", [True, False])
def test_lists_of_a_deleted_collection_are_not_returned(chroma_server: ChromaServer, dropped_by_us: bool) -> None:
    """Chroma leaves these lists behind and assigns them to new rows, ours and those of other programs."""
    client = chromadb.HttpClient("127.0.0.1", chroma_server.port, settings=Settings(anonymized_telemetry=False))
    sink, signed = ChromaSink(Server(chroma_server.url, prefix="lists")), marker()
    vectors = np.ones((40, DIMENSIONS), dtype=np.float32)
    if dropped_by_us:
        build = sink.create(signed, DIMENSIONS)
        build.replace([family("a", [f"{n}" for n in range(40)], metadata={"tags": ["ghost"]})])
        build.close()
        sink.drop(signed.build_id)
        theirs = client.create_collection(f"theirs-{signed.build_id}", embedding_function=None)
        theirs.add([f"{n}" for n in range(40)], vectors, metadatas=[{"x": 1}] * 40)
        metadatas = theirs.get()["metadatas"] or []
        client.delete_collection(theirs.name)
        assert not [one for one in metadatas if one and "tags" in one]
        return
    theirs = client.create_collection(f"theirs-{signed.build_id}", embedding_function=None)
    theirs.add([f"{n}" for n in range(40)], vectors, metadatas=[{"tags": ["ghost"]}] * 40)
    client.delete_collection(theirs.name)
    build = sink.create(signed, DIMENSIONS)
    mine = family("a", [f"{n}" for n in range(40)])
    build.replace([mine])
    assert hashes_in(build, content=True) == hashes_of([mine])
    build.close()
    sink.drop(signed.build_id)


def test_scan_reads_everything_over_many_pages(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chroma_build, "PAGE", 7)
    families = [family(f"f{number}", ["one", "two", "three"]) for number in range(7)]
    build.replace(families)
    build.flush()
    assert hashes_in(build) == hashes_of(families)
    assert hashes_in(build, content=True) == hashes_of(families)
    build.replace(families[:6])
    build.delete([families[6].parent_id])
    build.flush()
    assert hashes_in(build) == hashes_of(families[:6])


def test_requests_stay_within_count_and_bytes() -> None:
    documents = [project_family(records("a", ["x" * size]))[0] for size in (10, 10, 5000, 10, 90_000, 10)]
    parts = list(rows.request_slices(documents, 384, 3, 20_000))
    assert [documents[part] for part in parts] == [documents[0:3], documents[3:4], documents[4:5], documents[5:6]]
    assert list(rows.request_slices([], 384, 3, 20_000)) == []
    assert list(rows.request_slices(documents[:4], 8, 2, 10**9)) == [slice(0, 2), slice(2, 4)]


def test_poison_document_among_many_is_isolated(build: ChromaBuild) -> None:
    """Chroma refuses the whole request because of one row. Only that row is left out."""
    families = [family(f"f{number}", ["one", "two"]) for number in range(20)]
    poison = [msgspec.structs.replace(families[7].documents[1], title="lone \ud800 surrogate")]
    families[7] = Family([families[7].documents[0], *poison], families[7].vectors)
    build.replace(families)
    [refused] = build.flush()
    assert (refused.id, refused.parent_id) == (poison[0].id, poison[0].parent_id)
    assert refused.reason
    assert hashes_in(build) == [row for row in hashes_of(families) if row[0] != refused.id]
    assert build.flush() == []


# --- few documents pass a filter: all are compared -------------------------------------------------------------


SAME = 400
"""Documents of one text: their vectors are equal, so that no path leads from one neighbourhood to another."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaReader]:
    crowd = [worded(f"{n}.md", "cat cat cat", ids=f"c{n}", tenant_id="other", year=2000) for n in range(SAME)]
    own = [worded(f"own {n}.md", f"tax {n} " * (n + 1), ids=f"o{n}", tenant_id="acme", year=2020) for n in range(5)]
    sink = EmbeddedChromaSink(tmp_path_factory.mktemp("chroma"))
    build = sink.create(Marker("home", "few", 1), _width(crowd[0]))
    build.replace([*crowd, *own])
    build.flush()
    build.close()
    reader = sink.reader("few")
    yield reader
    reader.close()
    sink.close()


def _width(one: Family) -> int:
    assert one.vectors is not None
    return int(one.vectors.shape[1])


@pytest.mark.parametrize("filters", [(), (Filter("year", at_least=2020),)])
def test_filtered_query_returns_all_matches_in_order(reader: ChromaReader, filters: tuple[Filter, ...]) -> None:
    query = worded("asked.md", "cat cat cat").vectors
    assert query is not None
    expected = 5 if filters else SAME + 5
    hits = reader.query(query[0], 1000, filters)
    assert len({hit.id for hit in hits}) == len(hits) == expected
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    if not filters:
        assert hits[0].score == pytest.approx(1.0, abs=1e-5)


def test_scores_equal_those_of_the_engine(reader: ChromaReader) -> None:
    """The score does not depend on how a document was found."""
    query = worded("asked.md", "tax 3 tax 3").vectors
    assert query is not None
    compared = {hit.id: hit.score for hit in reader.query(query[0], 1000, (Filter("year", at_least=2020),))}
    for hit in reader.query(query[0], 2):
        if hit.id in compared:
            assert compared[hit.id] == pytest.approx(hit.score, abs=1e-4)
    assert np.isfinite(list(compared.values())).all()


def test_only_differences_are_written(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vector is sent only if the text has changed. A change of metadata leaves Chroma's graph unchanged."""
    sent: dict[str, list[list[str]]] = {"upsert": [], "update": [], "delete": []}
    for call, ids in sent.items():
        method = getattr(chromadb.Collection, call)

        def noted(self: Any, *, ids: Any = None, method: Any = method, note: Any = ids, **more: Any) -> Any:
            note.append(sorted(ids or ()))
            return method(self, ids=ids, **more)

        monkeypatch.setattr(chromadb.Collection, call, noted)
    old = family("a", ["one", "two", "three"], metadata={"year": 2001})
    build.replace([old])
    build.flush()
    build.replace([old])
    build.flush()
    assert (len(sent["upsert"]), sent["update"], sent["delete"]) == (1, [], [])
    one, two, three = old.documents
    changed = [msgspec.structs.replace(two, year=2002), msgspec.structs.replace(three, text="3", text_hash="3")]
    documents = [one, *(msgspec.structs.replace(d, document_hash=document_hash(d.as_dict())) for d in changed)]
    build.replace([with_vectors(documents)])
    build.flush()
    assert (sent["upsert"][1:], sent["update"], sent["delete"]) == ([[three.id]], [[two.id]], [])
    found = {stored.id: (stored.document, stored.vector) for stored in build.scan(content=True, vectors=True)}
    assert {document for document, _ in found.values()} == set(documents)
    np.testing.assert_allclose(found[two.id][1], vector("two"), atol=1e-6)
