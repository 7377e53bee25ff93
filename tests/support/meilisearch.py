"""An index on the real Meilisearch, direct requests to the server, and builds for tests."""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx

from chunksink.sinks.conformance.samples import DIMENSIONS, marker, renamed, with_vectors
from chunksink.sinks.document import Family
from chunksink.sinks.meilisearch import MeilisearchBuild, MeilisearchSink
from chunksink.sinks.meilisearch.sink import Limits
from tests.conftest import ROOT
from tests.engines.servers import MeilisearchServer

SETTINGS = json.loads((ROOT / "meilisearch-settings.json").read_text(encoding="utf-8"))
ALPHA, BETA = ["alpha one", "alpha two", "alpha three"], ["beta one", "beta two"]


class Server:
    """A unique public name on the real server, and direct requests to the server."""

    def __init__(self, server: MeilisearchServer) -> None:
        self.url, self.key = server.url, server.key
        self.index = f"t{uuid.uuid4().hex[:10]}"
        self.http = httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}, timeout=60)

    def sink(self, **options: Any) -> MeilisearchSink:
        options = {"settings": SETTINGS, "index": self.index, "limits": Limits(patience=20)} | options
        return MeilisearchSink(options.pop("url", self.url), options.pop("key", self.key), **options)

    def do(self, method: str, path: str, **more: Any) -> Any:
        """Make a call, and wait for its task if there is one."""
        answer = self.http.request(method, path, **more)
        body = answer.json() if answer.content else {}
        if "taskUid" in body:
            while (task := self.http.get(f"/tasks/{body['taskUid']}").json())["status"] in ("enqueued", "processing"):
                pass
            return task
        return body

    def names(self) -> set[str]:
        return {i["uid"] for i in self.do("GET", "/indexes?limit=1000")["results"] if i["uid"].startswith(self.index)}

    def wait_until_idle(self) -> None:
        while self.do("GET", "/tasks?statuses=enqueued,processing")["total"]:
            time.sleep(0.02)

    def purge(self) -> None:
        """Make the server forget all its tasks."""
        self.wait_until_idle()
        self.do("DELETE", "/tasks?statuses=succeeded")


def served(running: MeilisearchServer) -> Iterator[Server]:
    """A server whose indexes are removed afterwards."""
    server = Server(running)
    yield server
    for name in server.names():
        server.do("DELETE", f"/indexes/{name}")
    server.http.close()


def build_of(sink: MeilisearchSink, families: list[Family]) -> MeilisearchBuild:
    build = sink.create(marker(), DIMENSIONS)
    build.replace(families)
    assert build.flush() == []
    return build


def id_of_new(sink: MeilisearchSink) -> str:
    """The id of a new, empty build."""
    signed = marker()
    sink.create(signed, DIMENSIONS)
    return signed.build_id


def with_id(one: Family, number: int, id: str) -> Family:
    documents = list(one.documents)
    documents[number] = renamed(documents[number], id)
    return with_vectors(documents)


def build_id_of(build: MeilisearchBuild) -> str:
    found = build.marker()
    assert found is not None
    return found.build_id


def public_texts(server: Server) -> set[str]:
    found = server.do("POST", f"/indexes/{server.index}/documents/fetch", json={"limit": 100})
    return {document["text"] for document in found["results"]}
