"""Tasks that fail or vanish, and payloads and documents that Meilisearch refuses."""

from typing import Any

import httpx
import numpy as np
import pytest

from chunksink.sinks.conformance.samples import (
    DIMENSIONS,
    family,
    hashes_in,
    hashes_of,
    marker,
    renamed,
    with_vectors,
)
from chunksink.sinks.contract import NO_PARENT
from chunksink.sinks.document import Family
from chunksink.sinks.errors import NotConfirmed, Refused, SinkError, Transient
from chunksink.sinks.meilisearch import MeilisearchBuild, MeilisearchSink
from chunksink.sinks.meilisearch.build import Limits
from chunksink.sinks.meilisearch.connection import Connection
from tests.conftest import HEAVY, sampled
from tests.engines.servers import run_meilisearch
from tests.support.meilisearch import ALPHA, BETA, SETTINGS, Server, build_of, with_id

# -- accepted is not done --------------------------------------------------------------------------------------------


def test_one_poison_document_in_a_thousand_is_isolated(sink: MeilisearchSink) -> None:
    families = [family(f"docs/{number}.md", [f"text {number}"]) for number in range(1000)]
    families[617] = with_id(families[617], 0, "not an id!")
    build = sink.create(marker(), DIMENSIONS)
    build.replace(families)
    refused = build.flush()
    assert [one.id for one in refused] == ["not an id!"]
    assert "Document identifier" in refused[0].reason
    assert hashes_in(build) == hashes_of(families[:617] + families[618:])
    assert build.flush() == []


def test_old_version_of_a_refused_document_is_removed(sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("a", ALPHA), family("b", BETA)])
    edited = with_id(family("a", ["alpha one", "edited"], version="2"), 1, "no id")
    build.replace([edited])
    assert [one.id for one in build.flush()] == ["no id"]
    assert hashes_in(build) == sorted(row for row in hashes_of([edited, family("b", BETA)]) if row[0] != "no id")


def test_document_deleted_since_is_not_rewritten_by_the_poison_search(sink: MeilisearchSink) -> None:
    removed, poison, stays = family("gone", ALPHA), with_id(family("bad", BETA), 0, "no id"), family("stays", BETA)
    build = sink.create(marker(), DIMENSIONS)
    build.replace([removed, poison, stays])
    build.delete([removed.parent_id])
    build.flush()
    assert {row[1] for row in hashes_in(build)} == {poison.parent_id, stays.parent_id}


def test_engine_that_does_not_finish_is_abandoned_and_retried_later(server: Server) -> None:
    sink = server.sink(limits=Limits(patience=0.0))
    build = server.sink().create(marker(), DIMENSIONS)
    hasty = MeilisearchBuild(sink._indexes, build._name, True, Limits(patience=0.0))  # type: ignore[attr-defined]
    families = [family(f"docs/{number}.md", ALPHA) for number in range(400)]
    hasty.replace(families)
    with pytest.raises(NotConfirmed, match="finished none of chunksink's tasks"):
        hasty.flush()
    hasty._limits = Limits(patience=30)  # type: ignore[attr-defined]
    assert hasty.flush() == []
    assert hashes_in(hasty) == hashes_of(families)
    sink.close()


def test_only_differences_are_written(server: Server, sink: MeilisearchSink) -> None:
    old = family("a", ALPHA)
    build = build_of(sink, [old, family("b", BETA)])

    def sent() -> list[int]:
        path = "/tasks?types=documentAdditionOrUpdate,documentDeletion&limit=1000"
        tasks = server.do("GET", f"{path}&indexUids={build._name}")["results"]
        return [task["details"].get("receivedDocuments", 0) for task in tasks]

    assert sent() == [5]
    build.replace([old, family("b", BETA)])
    assert build.flush() == []
    assert sent() == [5]
    first = renamed(family("a", ["edited", *ALPHA[1:]]).documents[0], old.documents[0].id)
    edited = with_vectors([first, *old.documents[1:]])
    build.replace([edited])
    assert build.flush() == []
    assert sent() == [1, 5]
    assert hashes_in(build, content=True) == hashes_of([edited, family("b", BETA)])


def test_first_load_deletes_nothing(server: Server, sink: MeilisearchSink) -> None:
    build_of(sink, [family("a", ALPHA)])
    deletions = server.do("GET", "/tasks?types=documentDeletion&limit=1000")["results"]
    assert [task for task in deletions if task["indexUid"].startswith(server.index)] == []


# -- tasks that are lost ---------------------------------------------------------------------------------------------


def flush_twice(build: MeilisearchBuild) -> None:
    with pytest.raises(NotConfirmed, match="cancelled or purged"):
        build.flush()
    assert build.flush() == []


def sharing(one: Family, other: Family, *numbers: int) -> Family:
    """The family `one` with the ids of `other` at these positions."""
    for number in numbers:
        one = with_id(one, number, other.documents[number].id)
    return one


def test_lost_version_does_not_overwrite_the_later_one(server: Server, sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("other", ALPHA)])
    first = family("a", ALPHA)
    second = sharing(family("a", ["edited one", "edited two"], version="2"), first, 0, 1)
    build.replace([first])
    server.purge()
    build.replace([second])
    flush_twice(build)
    assert hashes_in(build, content=True) == hashes_of([second, family("other", ALPHA)])


def test_lost_family_deleted_since_stays_removed(server: Server, sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("b", BETA)])
    build.replace([family("a", ALPHA)])
    server.purge()
    build.delete([family("a", ALPHA).parent_id])
    flush_twice(build)
    assert hashes_in(build) == hashes_of([family("b", BETA)])


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_last_of_three_payloads_with_shared_ids_wins(lost: int, server: Server, sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("other", ALPHA)])
    one = family("a", ALPHA)
    two = sharing(family("b", ["b one", "b two", "b three"]), one, 1)
    three = sharing(family("c", ["c one", "c two", "c three"]), one, 0, 1)
    for number, each in enumerate((one, two, three), start=1):
        build.replace([each])
        if number == lost:
            server.purge()
    flush_twice(build)
    rest = {one.documents[2].id, two.documents[0].id, two.documents[2].id}
    owners = {row[0]: row[1] for row in hashes_in(build)}
    assert {owners[document.id] for document in three.documents} == {three.parent_id}
    assert owners.keys() == rest | {row[0] for row in hashes_of([three, family("other", ALPHA)])}


def test_lost_deletion_is_requested_again(
    server: Server, sink: MeilisearchSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = family("a", ALPHA), family("b", BETA)
    build = build_of(sink, [one, two])
    order = build._start_deletion

    def lost(*arguments: Any) -> int:
        number = order(*arguments)
        server.purge()
        return number

    monkeypatch.setattr(build, "_start_deletion", lost)
    build.delete([two.parent_id])
    with pytest.raises(NotConfirmed, match="cancelled or purged"):
        build.flush()
    monkeypatch.undo()
    assert build.flush() == []
    assert hashes_in(build) == hashes_of([one])


# -- refused documents in small payloads -------------------------------------------------------------------------------

SMALL = [Limits(documents=1, bytes_in_flight=1, patience=20), Limits(documents=2, bytes_in_flight=1, patience=20)]


@pytest.mark.parametrize("limits", SMALL, ids=["one", "two"])
def test_poison_of_an_edit_is_reported_and_its_siblings_are_written(limits: Limits, server: Server) -> None:
    sink = server.sink(limits=limits)
    build = sink.create(marker(), DIMENSIONS)
    build.replace([family("a", ALPHA), family("b", BETA)])
    edited = with_id(family("a", ["alpha one", "edited", "alpha three"], version="2"), 0, "no id")
    build.replace([edited, family("b", ["new one", "new two", "new three"], version="2")])
    assert [one.id for one in build.flush()] == ["no id"]
    both = hashes_of([edited, family("b", ["new one", "new two", "new three"], version="2")])
    assert hashes_in(build) == sorted(row for row in both if row[0] != "no id")
    sink.close()


def test_poison_search_leaves_an_id_to_the_later_family(sink: MeilisearchSink) -> None:
    poison = with_id(family("bad", ALPHA), 0, "no id")
    later = with_id(family("later", BETA), 0, poison.documents[1].id)
    build = build_of(sink, [family("other", ALPHA)])
    build.replace([poison])
    build.replace([later])
    assert [one.id for one in build.flush()] == ["no id"]
    owners = {row[0]: row[1] for row in hashes_in(build)}
    assert owners[poison.documents[1].id] == later.parent_id
    assert poison.documents[2].id in owners


# -- foreign documents -------------------------------------------------------------------------------------------------


def test_foreign_document_with_any_parent_is_removable(server: Server, sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("a", ALPHA)])
    parents: list[Any] = [5, ["q"], {"a": 1}, True, None, "", [], {}]
    strangers = [
        {"id": f"s{number}", "parent_id": parent, "_vectors": {"default": None}}
        for number, parent in enumerate(parents)
    ]
    strangers.append({"id": "7", "_vectors": {"default": None}})
    strangers = [{**stranger, "text": "who knows"} for stranger in strangers]
    task = server.do("POST", f"/indexes/{build._name}/documents", json=strangers)  # type: ignore[attr-defined]
    assert task["status"] == "succeeded"
    assert [row[1] for row in hashes_in(build)].count(NO_PARENT) == len(strangers)
    reader = sink.reader(sink.builds()[0])
    reader.search("knows", 100, every=True)  # no search fails, with or without results
    assert reader.get([str(stranger["id"]) for stranger in strangers]) == []
    build.delete([NO_PARENT])
    assert build.flush() == []
    assert hashes_in(build) == hashes_of([family("a", ALPHA)])


# -- documents that cannot be sent -----------------------------------------------------------------------------------


def test_vectors_in_any_memory_order_are_written(sink: MeilisearchSink) -> None:
    one = family("a", ALPHA)
    assert one.vectors is not None
    build = build_of(sink, [Family(one.documents, np.asfortranarray(one.vectors))])
    found = {stored.id: stored.vector for stored in build.scan(vectors=True)}
    for document, vector in zip(one.documents, one.vectors, strict=True):
        assert np.array_equal(found[document.id], vector)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [3_100_000, *([4_000_000, 40_000_000] if HEAVY else [])])
def test_server_with_a_lower_limit_refuses_only_too_large_documents(size: int) -> None:
    with run_meilisearch(arguments=["--http-payload-size-limit", "3MB"]) as server:
        sink = MeilisearchSink(server.url, server.key, settings=SETTINGS, limits=Limits(patience=30), timeout=5)
        build = sink.create(marker(), DIMENSIONS)
        small = [family(f"docs/{number}.md", ["x" * 1000]) for number in range(400)]
        many = [family(f"more/{number}.md", ["y" * 10_000]) for number in range(900)]
        huge = family("huge", ["z" * size])
        build.replace([*small[:200], huge, *small[200:], *many])
        refused = build.flush()
        assert [one.id for one in refused] == [huge.documents[0].id]
        assert "maximum accepted payload size is 3 MB" in refused[0].reason
        assert hashes_in(build) == hashes_of([*small, *many])
        sink.close()


# -- answers that are not from Meilisearch, and refusals of whole payloads ---------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error"),
    sampled(
        [
            (httpx.Response(404, text="404 page not found"), Refused),
            (httpx.Response(302, headers={"location": "/login"}), Refused),
            (httpx.Response(400, json=["no", "object"]), Refused),
            (httpx.Response(200, html="<h1>Sign in</h1>"), Refused),
            (httpx.Response(202, json=[1]), Refused),
            (httpx.Response(522, text="connection timed out"), Transient),
            (httpx.Response(500, json={"message": "no reason"}), Transient),
        ]
    ),
)
def test_answer_of_another_server_blames_no_document(
    answer: httpx.Response, error: type[SinkError], sink: MeilisearchSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway without its backend, or a login page. The same documents are accepted when the gateway is gone."""

    def answering(connection: Connection, _path: str, _lines: bytes) -> Any:
        with connection.translate_errors():
            return connection._read(answer)

    build = build_of(sink, [family("a", ALPHA)])
    edited = family("a", BETA, version="2")
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "send_lines", answering)
        with pytest.raises(SinkError) as found:
            build.replace([edited])
            build.flush()
    assert type(found.value) is error
    assert hashes_in(build) == hashes_of([family("a", ALPHA)])
    build.replace([edited])
    assert build.flush() == []
    assert hashes_in(build) == hashes_of([edited])


def test_many_refusals_remove_no_older_version(sink: MeilisearchSink) -> None:
    before = family("a", [f"text {number}" for number in range(80)])
    build = build_of(sink, [before])
    bad = family("a", [f"other {number}" for number in range(80)], version="2")
    for number in range(80):
        bad = with_id(bad, number, f"no id {number}")
    build.replace([bad])
    with pytest.raises(Refused, match=r"refused all 64 documents, .*No old document was removed"):
        build.flush()
    assert hashes_in(build) == hashes_of([before])
