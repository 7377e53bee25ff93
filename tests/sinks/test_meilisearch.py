"""What Meilisearch alone can do to us: tasks that fail or vanish, foreign indexes, wrong keys, swaps, old versions."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import msgspec
import pytest

from sinks.conformance.samples import DIMENSIONS, family, held, marker, vector, wanted, with_vectors
from sinks.document import Family
from sinks.errors import BuildMissing, NotConfirmed, Refused, Transient, Unreachable, WrongKey, WrongShape
from sinks.meilisearch import MeilisearchBuild, MeilisearchSink
from sinks.meilisearch import rows as rows_
from sinks.meilisearch.keys import make_search_key, tenant_token
from sinks.meilisearch.sink import Limits
from sinks.reader import Filter
from tests.conformance.test_meilisearch import SETTINGS
from tests.engines.servers import MeilisearchServer, free_port, run_meilisearch

ALPHA, BETA = ["alpha one", "alpha two", "alpha three"], ["beta one", "beta two"]


class Server:
    """A public name of our own on the real server, and the server asked directly."""

    def __init__(self, server: MeilisearchServer) -> None:
        self.url, self.key = server.url, server.key
        self.index = f"t{uuid.uuid4().hex[:10]}"
        self.http = httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}, timeout=60)

    def sink(self, **options: Any) -> MeilisearchSink:
        options = {"settings": SETTINGS, "index": self.index, "limits": Limits(patience=20)} | options
        return MeilisearchSink(options.pop("url", self.url), options.pop("key", self.key), **options)

    def do(self, method: str, path: str, **more: Any) -> Any:
        """A call whose task, if there is one, is waited for."""
        answer = self.http.request(method, path, **more)
        body = answer.json() if answer.content else {}
        if "taskUid" in body:
            while (task := self.http.get(f"/tasks/{body['taskUid']}").json())["status"] in ("enqueued", "processing"):
                pass
            return task
        return body

    def names(self) -> set[str]:
        return {i["uid"] for i in self.do("GET", "/indexes?limit=1000")["results"] if i["uid"].startswith(self.index)}

    def batches(self) -> int:
        answer = self.do("GET", "/batches?limit=1")
        return int(answer["total"])


@pytest.fixture
def server(meilisearch_server: MeilisearchServer) -> Iterator[Server]:
    server = Server(meilisearch_server)
    yield server
    for name in server.names():
        server.do("DELETE", f"/indexes/{name}")
    server.http.close()


@pytest.fixture
def sink(server: Server) -> Iterator[MeilisearchSink]:
    sink = server.sink()
    yield sink
    sink.close()


def build_of(sink: MeilisearchSink, families: list[Family]) -> MeilisearchBuild:
    build = sink.create(marker(), DIMENSIONS)
    build.replace(families)
    assert build.flush() == []
    return build


def with_id(one: Family, number: int, id: str) -> Family:
    documents = list(one.documents)
    documents[number] = msgspec.structs.replace(documents[number], id=id)
    return with_vectors(documents)


# -- accepted is not done --------------------------------------------------------------------------------------------


def test_one_poison_document_in_a_thousand_is_isolated(sink: MeilisearchSink) -> None:
    families = [family(f"docs/{number}.md", [f"text {number}"]) for number in range(1000)]
    families[617] = with_id(families[617], 0, "not an id!")
    build = sink.create(marker(), DIMENSIONS)
    build.replace(families)
    refused = build.flush()
    assert [one.id for one in refused] == ["not an id!"]
    assert "Document identifier" in refused[0].reason
    assert held(build) == wanted(families[:617] + families[618:])
    assert build.flush() == []


def test_the_old_version_of_a_refused_document_goes(sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("a", ALPHA), family("b", BETA)])
    edited = with_id(family("a", ["alpha one", "edited"], version="2"), 1, "no id")
    build.replace([edited])
    assert [one.id for one in build.flush()] == ["no id"]
    assert held(build) == sorted(row for row in wanted([edited, family("b", BETA)]) if row[0] != "no id")


def test_what_was_deleted_since_is_not_written_again_by_the_search_for_the_poison(sink: MeilisearchSink) -> None:
    gone, poison, stays = family("gone", ALPHA), with_id(family("bad", BETA), 0, "no id"), family("stays", BETA)
    build = sink.create(marker(), DIMENSIONS)
    build.replace([gone, poison, stays])
    build.delete([gone.parent_id])
    build.flush()
    assert {row[1] for row in held(build)} == {poison.parent_id, stays.parent_id}


@pytest.mark.parametrize("how", ["cancelled", "purged"])
def test_lost_tasks_are_told_and_written_again(how: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server says nothing any more of tasks that it had accepted."""
    sink = server.sink()
    build = build_of(sink, [family("a", ALPHA)])
    real = build._connection.get  # type: ignore[attr-defined]
    hidden: list[bool] = [True]

    def get(path: str, **parameters: Any) -> Any:
        answer = real(path, **parameters)
        if path == "/tasks" and "uids" in parameters and hidden.pop():
            tasks = [{**task, "status": "canceled"} for task in answer["results"]] if how == "cancelled" else []
            return {**answer, "results": tasks}
        return answer

    monkeypatch.setattr(build._connection, "get", get)  # type: ignore[attr-defined]
    hidden[:] = [False] * 1000 + [True]
    edited = family("a", BETA, version="2")
    build.replace([edited])
    with pytest.raises(NotConfirmed, match="cancelled or purged"):
        build.flush()
    assert build.flush() == []
    assert held(build) == wanted([edited])
    sink.close()


def test_an_engine_that_does_not_finish_is_given_up_and_asked_again_later(server: Server) -> None:
    sink = server.sink(limits=Limits(patience=0.0))
    build = server.sink().create(marker(), DIMENSIONS)
    hasty = MeilisearchBuild(sink._indexes, build._name, True, Limits(patience=0.0))  # type: ignore[attr-defined]
    families = [family(f"docs/{number}.md", ALPHA) for number in range(400)]
    hasty.replace(families)
    with pytest.raises(NotConfirmed, match="has not finished task"):
        hasty.flush()
    hasty._limits = Limits(patience=30)  # type: ignore[attr-defined]
    assert hasty.flush() == []
    assert held(hasty) == wanted(families)
    sink.close()


def test_five_hundred_families_are_two_batches_of_work(server: Server, sink: MeilisearchSink) -> None:
    before = [family(f"docs/{number}.md", ALPHA) for number in range(600)]
    build = build_of(sink, before)
    batches = server.batches()
    after = [family(f"docs/{number}.md", BETA, version="2") for number in range(500)]
    build.replace(after)
    assert build.flush() == []
    assert server.batches() - batches == 2
    assert held(build) == wanted(after + before[500:])


def test_a_first_load_deletes_nothing(server: Server, sink: MeilisearchSink) -> None:
    build_of(sink, [family("a", ALPHA)])
    deletions = server.do("GET", "/tasks?types=documentDeletion&limit=1000")["results"]
    assert [task for task in deletions if task["indexUid"].startswith(server.index)] == []


# -- whose index it is -----------------------------------------------------------------------------------------------


def test_a_flip_gives_the_public_name_and_the_marker_goes_along(server: Server, sink: MeilisearchSink) -> None:
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
        assert (build.marker(), held(build)) == (signed, wanted([family("a", texts)]))
    sink.flip(first.build_id, second.build_id)  # again, as after a crash: the swap is not undone
    assert public_texts(server) == set(BETA)
    sink.flip(second.build_id, first.build_id)
    assert public_texts(server) == set(ALPHA)
    with pytest.raises(Refused, match="holds build"):
        sink.flip(second.build_id, marker_of_a_new_build(sink))
    sink.drop(second.build_id)
    assert public_texts(server) == set(ALPHA)


def public_texts(server: Server) -> set[str]:
    found = server.do("POST", f"/indexes/{server.index}/documents/fetch", json={"limit": 100})
    return {document["text"] for document in found["results"]}


def marker_of_a_new_build(sink: MeilisearchSink) -> str:
    signed = marker()
    sink.create(signed, DIMENSIONS)
    return signed.build_id


def test_a_swap_that_was_still_in_the_queue_is_waited_for(server: Server, sink: MeilisearchSink) -> None:
    """A run died between asking for the swap and its end; asking again at once would swap back."""
    first, second = marker(), marker()
    for signed in (first, second):
        sink.create(signed, DIMENSIONS)
    sink.flip(None, first.build_id)
    documents = [{"id": str(number), "_vectors": {"default": None}} for number in range(30_000)]
    name = f"{server.index}-{second.build_id}"
    server.http.post(f"/indexes/{name}/documents", json=documents)  # keeps the queue busy
    server.http.post("/swap-indexes", json=[{"indexes": [name, server.index]}])
    sink.flip(first.build_id, second.build_id)
    live = sink._indexes.marker_of(server.index)  # type: ignore[attr-defined]
    assert live is not None
    assert live.build_id == second.build_id


def test_a_build_that_was_never_signed_is_signed(server: Server, sink: MeilisearchSink) -> None:
    """Its maker was killed between making the index and its settings."""
    signed = marker()
    server.do("POST", "/indexes", json={"uid": f"{server.index}-{signed.build_id}", "primaryKey": "id"})
    assert signed.build_id in sink.builds()
    build = sink.create(signed, DIMENSIONS)
    assert build.marker() == signed
    build.replace([family("a", ALPHA)])
    assert build.flush() == []
    assert server.names() == {f"{server.index}-{signed.build_id}"}


def test_an_index_of_somebody_else_is_not_taken(server: Server, sink: MeilisearchSink) -> None:
    server.do("POST", "/indexes", json={"uid": server.index, "primaryKey": "sku"})
    build_id = marker_of_a_new_build(sink)
    with pytest.raises(Refused, match="something that is not ours"):
        sink.flip(None, build_id)
    assert server.do("GET", f"/indexes/{server.index}")["primaryKey"] == "sku"


def test_another_primary_key_is_told(server: Server, sink: MeilisearchSink) -> None:
    signed = marker()
    server.do("POST", "/indexes", json={"uid": f"{server.index}-{signed.build_id}", "primaryKey": "sku"})
    with pytest.raises(WrongShape, match="primary key 'sku'"):
        sink.create(signed, DIMENSIONS)


# -- settings --------------------------------------------------------------------------------------------------------


def test_a_new_build_has_the_settings_and_the_embedder_of_its_model(server: Server, sink: MeilisearchSink) -> None:
    build_id = marker_of_a_new_build(sink)
    sink.flip(None, build_id)
    live = sink.live_settings()
    assert {name: live[name] for name in SETTINGS} == SETTINGS
    assert live["embedders"]["default"] == {"source": "userProvided", "dimensions": DIMENSIONS}


def test_a_change_of_settings_keeps_the_marker(server: Server, sink: MeilisearchSink) -> None:
    build_id = marker_of_a_new_build(sink)
    sink.flip(None, build_id)
    sink.change_live_settings({"synonyms": {"boat": ["ship"]}, "stopWords": ["the"]})
    live = sink.live_settings()
    assert (live["synonyms"], live["stopWords"]) == ({"boat": ["ship"]}, ["the"])
    assert sink.builds() == [build_id]


def test_without_a_live_index_settings_say_so(sink: MeilisearchSink) -> None:
    with pytest.raises(BuildMissing):
        sink.live_settings()


# -- documents that would be found in part only ----------------------------------------------------------------------


def test_a_text_of_too_many_positions_is_refused_and_told(sink: MeilisearchSink) -> None:
    build = sink.create(marker(), DIMENSIONS)
    fits, too_long = family("fits", ["word " * 65_000]), family("long", ["word. " * 9_000])
    build.replace([fits, too_long, family("b", BETA)])
    refused = build.flush()
    assert [one.id for one in refused] == [too_long.documents[0].id]
    assert "split it into smaller chunks" in refused[0].reason
    assert held(build) == wanted([fits, family("b", BETA)])


@pytest.mark.parametrize("separator", [" ", ". ", ", ", "; ", "! ", "? ", "\n", "\n\n", "-", "。"])
def test_the_estimate_of_positions_is_never_too_low(separator: str, sink: MeilisearchSink) -> None:
    """Of the longest text that passes, the last word is found."""
    per_word = rows_.positions(f"word{separator}" * 100) / 100
    count = int(rows_.MOST_POSITIONS / per_word) - 2
    text = separator.join(["word"] * (count - 1) + ["lastword"])
    assert rows_.positions(text) <= rows_.MOST_POSITIONS
    one = family("a", [text])
    build = build_of(sink, [one])
    reader = sink.reader(str(build.marker().build_id))  # type: ignore[union-attr]
    assert [hit.id for hit in reader.search('"lastword"')] == [one.documents[0].id]


def test_a_document_beyond_the_payload_limit_is_refused(server: Server) -> None:
    sink = server.sink(limits=Limits(document_bytes=100_000, payload_bytes=50_000, patience=20))
    build = sink.create(marker(), DIMENSIONS)
    huge, large = family("huge", ["x" * 200_000]), family("large", ["y" * 80_000])
    build.replace([huge, large, family("b", BETA)])
    refused = build.flush()
    assert [one.id for one in refused] == [huge.documents[0].id]
    assert "takes 100,000" in refused[0].reason
    assert held(build) == wanted([large, family("b", BETA)])
    sink.close()


# -- searching -------------------------------------------------------------------------------------------------------


def test_snippets_mark_what_matched_and_hold_no_markup_of_their_own(sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("a", ["<b>old</b> harbour & <script>alert(1)</script>"])])
    hits = sink.reader(build_id_of(build)).search("harbour")
    assert [piece.text for piece in hits[0].snippet if piece.match] == ["harbour"]
    assert "".join(piece.text for piece in hits[0].snippet) == "<b>old</b> harbour & <script>alert(1)</script>"


def build_id_of(build: MeilisearchBuild) -> str:
    found = build.marker()
    assert found is not None
    return found.build_id


@pytest.mark.parametrize(
    "typed", ['x" OR tenant_key EXISTS OR tags = "', "x\\", 'x\\" OR 1', "]", "x] OR tags IN [fruit"]
)
def test_nothing_in_a_filter_is_syntax(typed: str, sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("a", ALPHA, metadata={"tags": ["fruit", typed]}), family("b", BETA)])
    reader = sink.reader(build_id_of(build))
    assert [hit.parent_id for hit in reader.search("", 10, [Filter("tags", any_of=(typed,))])] == [
        family("a", ALPHA).parent_id
    ]
    assert reader.search("", 10, [Filter("extension", any_of=(typed,))]) == []


def test_its_own_hybrid_search_finds_by_our_vectors(server: Server, sink: MeilisearchSink) -> None:
    sink.flip(None, build_id_of(build_of(sink, [family("a", ALPHA), family("b", BETA)])))
    asked = {
        "q": "",
        "vector": vector("beta two").tolist(),
        "hybrid": {"embedder": "default", "semanticRatio": 1.0},
        "limit": 1,
    }
    assert server.do("POST", f"/indexes/{server.index}/search", json=asked)["hits"][0]["text"] == "beta two"


def test_a_search_key_searches_only_and_a_token_sees_its_tenant_only(server: Server, sink: MeilisearchSink) -> None:
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


# -- servers that are not what they should be ------------------------------------------------------------------------


def test_a_wrong_key_is_told_with_the_remedy(server: Server) -> None:
    with pytest.raises(WrongKey, match="key_variable"):
        server.sink(key="wrong").create(marker(), DIMENSIONS)


def test_nobody_there_is_told_with_the_address(server: Server) -> None:
    with pytest.raises(Unreachable, match="start it, or correct the address"):
        server.sink(url=f"http://127.0.0.1:{free_port()}").builds()


@contextmanager
def something_else(body: Any) -> Iterator[str]:
    """A web server that is no Meilisearch, or one of another version."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"pkgVersion": "1.45.0"}, "dies of ordinary work"),
        ({"pkgVersion": "1.20.9"}, "too old"),
        ({"pkgVersion": "0.30.1"}, "too old"),
        ({"hello": "world"}, "is no Meilisearch"),
        ([], "is no Meilisearch"),
    ],
)
def test_versions_that_would_not_do_are_refused_at_once(body: Any, told: str, server: Server) -> None:
    with something_else(body) as url, pytest.raises(Refused, match=told):
        server.sink(url=url).builds()


def test_later_versions_are_taken(server: Server) -> None:
    with something_else({"pkgVersion": "1.46.2", "results": []}) as url:
        assert server.sink(url=url).builds() == []


def test_a_server_that_stops_in_mid_run_and_comes_again(tmp_path: Any) -> None:
    """What was accepted before the stop is done after the start, or written again; the same flush goes on."""
    port = free_port()
    families = [family(f"docs/{number}.md", ALPHA) for number in range(300)]
    with run_meilisearch(data=tmp_path / "data", port=port) as first:
        sink = MeilisearchSink(first.url, first.key, settings=SETTINGS, limits=Limits(patience=30))
        build = sink.create(marker(), DIMENSIONS)
        build.replace(families)
    with pytest.raises(Transient):
        build.flush()
    with run_meilisearch(data=tmp_path / "data", port=port, key=first.key):
        assert build.flush() == []
        assert held(build) == wanted(families)
        sink.close()


@pytest.mark.parametrize("url", ["", "127.0.0.1:7700", "ftp://x", "http://user:secret@127.0.0.1:7700"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="http://HOST:PORT") as caught:
        MeilisearchSink(url, None, settings={})
    assert "secret" not in str(caught.value)
