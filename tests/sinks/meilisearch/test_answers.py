"""What is no answer of Meilisearch, and what it refuses as a whole: no document is to blame, and nothing older goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from chunksink.sinks.conformance.samples import family, held, wanted
from chunksink.sinks.errors import Refused, SinkError, Transient
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.meilisearch.connection import Connection
from tests.engines.servers import MeilisearchServer
from tests.support.meilisearch import ALPHA, BETA, build_of, served, with_id


@pytest.fixture
def sink(meilisearch_server: MeilisearchServer) -> Iterator[MeilisearchSink]:
    for server in served(meilisearch_server):
        sink = server.sink()
        yield sink
        sink.close()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(404, text="404 page not found"), Refused),
        (httpx.Response(302, headers={"location": "/login"}), Refused),
        (httpx.Response(400, json=["no", "object"]), Refused),
        (httpx.Response(200, html="<h1>Sign in</h1>"), Refused),
        (httpx.Response(202, json=[1]), Refused),
        (httpx.Response(522, text="connection timed out"), Transient),
        (httpx.Response(500, json={"message": "no reason"}), Transient),
    ],
)
def test_for_what_another_answers_no_document_is_to_blame(
    answer: httpx.Response, error: type[SinkError], sink: MeilisearchSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway without its backend, a page to sign in: the same documents go in once it is gone."""

    def answering(connection: Connection, _path: str, _lines: bytes) -> Any:
        with connection.translated():
            return connection._read(answer)

    build = build_of(sink, [family("a", ALPHA)])
    edited = family("a", BETA, version="2")
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "send_lines", answering)
        with pytest.raises(SinkError) as found:
            build.replace([edited])
            build.flush()
    assert type(found.value) is error
    assert held(build) == wanted([family("a", ALPHA)])
    build.replace([edited])
    assert build.flush() == []
    assert held(build) == wanted([edited])


def test_where_each_of_many_is_refused_nothing_older_goes(sink: MeilisearchSink) -> None:
    before = family("a", [f"text {number}" for number in range(80)])
    build = build_of(sink, [before])
    bad = family("a", [f"other {number}" for number in range(80)], version="2")
    for number in range(80):
        bad = with_id(bad, number, f"no id {number}")
    build.replace([bad])
    with pytest.raises(Refused, match=r"refused each of 64 documents, .*Nothing older was removed"):
        build.flush()
    assert held(build) == wanted([before])
