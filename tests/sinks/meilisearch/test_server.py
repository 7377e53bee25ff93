"""Meilisearch's own cases: foreign indexes, wrong keys, swaps, old versions, and search."""

import json
import threading
from functools import partial
from typing import Any

import httpx
import pytest

from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of, marker
from chunksink.sinks.errors import BuildMissing, NotConfirmed, Refused, WrongKey
from chunksink.sinks.meilisearch import MeilisearchSink, indexes
from chunksink.sinks.meilisearch.keys import make_search_key, tenant_token
from chunksink.sinks.reader import Filter
from tests.engines.other_servers import answering
from tests.support.meilisearch import ALPHA, BETA, SETTINGS, Server, build_id_of, build_of, id_of_new, public_texts

# -- ownership of an index -------------------------------------------------------------------------------------------


def test_flip_moves_the_public_name_and_its_marker(server: Server, sink: MeilisearchSink) -> None:
    first, second = marker(), marker()
    for signed, texts in ((first, ALPHA), (second, BETA)):
        build = sink.create(signed, DIMENSIONS)
        build.replace([family("a", texts)])
        build.flush()
    sink.flip(None, first.build_id)
    assert server.names() == {server.index, f"{server.index}-{second.build_id}"}
    assert public_texts(server) == set(ALPHA)
    sink.flip(first.build_id, second.build_id)
    assert public_texts(server) == set(BETA)
    assert sink.builds() == sorted([first.build_id, second.build_id])
    for signed, texts in ((first, ALPHA), (second, BETA)):
        build = sink.open(signed.build_id)
        assert (build.marker(), hashes_in(build)) == (signed, hashes_of([family("a", texts)]))
    sink.flip(first.build_id, second.build_id)  # again, as after a crash: the swap is not undone
    assert public_texts(server) == set(BETA)
    sink.flip(second.build_id, first.build_id)
    assert public_texts(server) == set(ALPHA)
    with pytest.raises(Refused, match="is build"):
        sink.flip(second.build_id, id_of_new(sink))
    sink.drop(second.build_id)
    assert public_texts(server) == set(ALPHA)


def test_swap_hidden_from_its_key_is_judged_by_the_index(
    server: Server, sink: MeilisearchSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key for some indexes alone cannot see the task of a swap."""
    first, second = marker(), marker()
    for signed in (first, second):
        sink.create(signed, DIMENSIONS)
    sink.flip(None, first.build_id)
    orders = sink._indexes._single_tasks  # type: ignore[attr-defined]
    run = orders.run

    def unseen(what: str, send: Any) -> None:
        run(what, send)
        raise NotConfirmed(f"{what}: lost")

    monkeypatch.setattr(orders, "run", unseen)
    sink.flip(first.build_id, second.build_id)

    def later(what: str, send: Any) -> None:
        """The swap happens, but its answer is lost."""
        threading.Timer(0.5, partial(run, what, send)).start()
        raise NotConfirmed(f"{what}: lost")

    monkeypatch.setattr(orders, "run", later)
    sink.flip(second.build_id, first.build_id)
    assert sink._indexes.inspect(server.index).marker == first  # type: ignore[attr-defined]
    monkeypatch.setattr(orders, "run", lambda what, _send: lost(what))
    monkeypatch.setattr(indexes, "SWAP_SECONDS", 0.3)
    with pytest.raises(Refused, match="the key cannot see it"):
        sink.flip(first.build_id, second.build_id)


def lost(what: str) -> None:
    raise NotConfirmed(f"{what}: lost")


def test_unsigned_build_is_signed(server: Server, sink: MeilisearchSink) -> None:
    """Its creator was killed between creating the index and its settings."""
    signed = marker()
    server.do("POST", "/indexes", json={"uid": f"{server.index}-{signed.build_id}", "primaryKey": "id"})
    assert sink.builds() == [], "it may be for another public name"
    build = sink.create(signed, DIMENSIONS)
    assert build.marker() == signed
    build.replace([family("a", ALPHA)])
    assert build.flush() == []
    assert sink.builds() == [signed.build_id]
    assert server.names() == {f"{server.index}-{signed.build_id}"}


# -- settings --------------------------------------------------------------------------------------------------------


def test_new_build_has_the_settings_and_the_embedder_of_its_model(server: Server, sink: MeilisearchSink) -> None:
    build_id = id_of_new(sink)
    sink.flip(None, build_id)
    live = sink.live_settings()
    assert {name: live[name] for name in SETTINGS} == SETTINGS
    assert live["embedders"]["default"] == {"source": "userProvided", "dimensions": DIMENSIONS}


def test_change_of_settings_keeps_the_marker(server: Server, sink: MeilisearchSink) -> None:
    build_id = id_of_new(sink)
    sink.flip(None, build_id)
    sink.change_live_settings({"synonyms": {"boat": ["ship"]}, "stopWords": ["the"]})
    live = sink.live_settings()
    assert (live["synonyms"], live["stopWords"]) == ({"boat": ["ship"]}, ["the"])
    assert sink.builds() == [build_id]


def test_settings_of_a_foreign_index_are_shown_and_unchanged(server: Server, sink: MeilisearchSink) -> None:
    server.do("POST", "/indexes", json={"uid": server.index, "primaryKey": "sku"})
    assert sink.live_settings()["stopWords"] == []
    with pytest.raises(Refused, match=r"has no chunksink marker. .*choose another index name"):
        sink.change_live_settings({"stopWords": ["the"]})
    assert sink.live_settings()["stopWords"] == []


def test_settings_without_a_live_index_are_reported(sink: MeilisearchSink) -> None:
    with pytest.raises(BuildMissing):
        sink.live_settings()


# -- searching -------------------------------------------------------------------------------------------------------


def test_snippets_mark_matches_and_contain_no_other_markup(sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("a", ["<b>old</b> harbour & <script>alert(1)</script>"])])
    reader = sink.reader(build_id_of(build))
    (hit,) = reader.search("harbour")
    shown = reader.snippets("harbour", [hit.id, "nowhere"])
    assert list(shown) == [hit.id]
    assert [piece.text for piece in shown[hit.id] if piece.match] == ["harbour"]
    assert "".join(piece.text for piece in shown[hit.id]) == "<b>old</b> harbour & <script>alert(1)</script>"
    assert reader.snippets("boat", [hit.id]) == reader.snippets("", [hit.id]) == {}


def test_document_with_few_of_the_words_scores_low(sink: MeilisearchSink) -> None:
    texts = ["oil lamps of the old harbour", "oil lamps of a barn", "a harbour"]
    build = build_of(sink, [family(f"{number}.md", [text]) for number, text in enumerate(texts)])
    full, half, none = (
        {hit.id: hit.score for hit in sink.reader(build_id_of(build)).search(query)} for query in QUERIES
    )
    best = max(full.values())
    assert best > 0.8
    assert max(half.values()) < best / 5  # by its own score, a third; the words that no document has weigh most
    assert not none


def test_a_large_family_does_not_hide_others(sink: MeilisearchSink) -> None:
    """Its documents fill the hits of each word."""
    log = family("log.md", [f"error timeout error timeout {number}" for number in range(250)])
    notes = [family(f"{number}.md", [f"an error of day {number}, among many other words"]) for number in range(20)]
    reader = sink.reader(build_id_of(build_of(sink, [log, *notes])))
    families = [one.parent_id for one in (log, *notes)]
    hits = reader.search("error timeout", 30)
    assert hits[0].parent_id == families[0]
    assert sorted(hit.parent_id for hit in hits) == sorted(families)
    assert len(reader.search("error timeout", 300, every=True)) == 270


@pytest.mark.parametrize(
    ("query", "found"),
    [("dry-run e-mail", "a.md"), ("हिन्दी भाषा", "b.md"), ("10-20", None), ("zebra well-known", "c.md")],
)
def test_no_part_of_a_query_is_an_operator_or_cut_out_of_a_word(
    query: str, found: str | None, sink: MeilisearchSink
) -> None:
    texts = {
        "a.md": "a dry-run of the e-mail gateway",
        "b.md": "हिन्दी भाषा सुंदर है",
        "c.md": "the zebra",
        "d.md": "a lamp",
    }
    families = {name: family(name, [text]) for name, text in texts.items()}
    reader = sink.reader(build_id_of(build_of(sink, list(families.values()))))
    expected = {families[found].parent_id} if found else set()
    assert {hit.parent_id for hit in reader.search(query, 10)} == expected
    counted = reader.facets(query, ["parent_id"])["parent_id"]
    assert {value.value for value in counted} == expected, "facets count the same documents"


def test_answers_are_not_compressed(server: Server, sink: MeilisearchSink) -> None:
    """Meilisearch delays compressed ones by 45 ms."""
    build = build_of(sink, [family("a", [f"text {number}" for number in range(20)])])
    clients = (build._connection.http, server.http)
    ours, usual = (client.post(f"/indexes/{build._name}/search", json={"q": ""}) for client in clients)
    assert "content-encoding" not in ours.headers
    assert "content-encoding" in usual.headers


QUERIES = ("oil lamps old harbour", "oil lamps silent kitchen", "silent kitchen")


@pytest.mark.parametrize(
    "typed", ['x" OR tenant_key EXISTS OR tags = "', "x\\", 'x\\" OR 1', "]", "x] OR tags IN [fruit"]
)
def test_nothing_in_a_filter_is_syntax(typed: str, sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("a", ALPHA, metadata={"tags": ["fruit", typed]}), family("b", BETA)])
    reader = sink.reader(build_id_of(build))
    hits = reader.search("", 10, [Filter("tags", any_of=(typed,))])
    assert [hit.parent_id for hit in hits] == [family("a", ALPHA).parent_id]
    assert reader.search("", 10, [Filter("extension", any_of=(typed,))]) == []


def test_search_key_only_searches_and_a_token_sees_its_tenant_only(server: Server, sink: MeilisearchSink) -> None:
    ours, theirs = family("a", ALPHA, tenant_id="t1"), family("a", ALPHA, tenant_id="t2")
    sink.flip(None, build_id_of(build_of(sink, [ours, theirs])))
    key = make_search_key(server.url, server.key, server.index)
    token = tenant_token(server.url, key, server.index, str(ours.documents[0].tenant_key))
    found = httpx.post(
        f"{server.url}/indexes/{server.index}/search",
        json={"q": "alpha", "filter": f"tenant_key = {theirs.documents[0].tenant_key}"},
        headers={"Authorization": f"Bearer {token}"},
    ).json()
    assert found["hits"] == []
    found = httpx.post(
        f"{server.url}/indexes/{server.index}/search",
        json={"q": "alpha"},
        headers={"Authorization": f"Bearer {token}"},
    ).json()
    assert {hit["tenant_id"] for hit in found["hits"]} == {"t1"}
    with pytest.raises(WrongKey):
        server.sink(key=key.key).create(marker(), DIMENSIONS)


# -- other servers, and servers of old versions ------------------------------------------------------------------------


def test_wrong_key_names_the_remedy(server: Server) -> None:
    with pytest.raises(WrongKey, match="key_variable"):
        server.sink(key="wrong").create(marker(), DIMENSIONS)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"pkgVersion": "1.45.0"}, "crashes in normal use"),
        ({"pkgVersion": "1.20.9"}, "too old"),
        ({"pkgVersion": "0.30.1"}, "too old"),
    ],
)
def test_unsupported_versions_are_refused_at_once(body: Any, message: str, server: Server) -> None:
    with answering(json.dumps(body)) as url, pytest.raises(Refused, match=message):
        server.sink(url=url).builds()


def test_path_in_the_address_is_reported(server: Server) -> None:
    with pytest.raises(Refused, match=r"is not Meilisearch .*correct the address"):
        server.sink(url=f"{server.url}/indexes").builds()


def test_later_versions_are_accepted(server: Server) -> None:
    with answering(json.dumps({"pkgVersion": "1.46.2", "results": []})) as url:
        assert server.sink(url=url).builds() == []


def test_white_space_around_the_key_is_removed(server: Server) -> None:
    assert server.sink(key=f" {server.key}\r\n").builds() == []
