"""The application over real engines, in this process or served to a browser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import uvicorn
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from chunksink.search.access import Access
from chunksink.search.answer import Answer
from chunksink.search.legs import Legs
from chunksink.search.neighbours import Surrounded, get
from chunksink.search.page.app import make_app
from chunksink.search.page.callers import Tokens
from chunksink.search.page.report import Report, ReportRow, Section
from chunksink.search.page.security import Hosts
from chunksink.search.page.site import Site
from chunksink.search.query import search
from chunksink.search.question import Question
from chunksink.sinks.document import Family
from chunksink.sinks.errors import Unreachable
from tests.engines.servers import free_port
from tests.search.support import Failing, legs_over, with_readers

if TYPE_CHECKING:
    from playwright.sync_api import Page

ADDRESS = "http://127.0.0.1"


class NotBuilt(Exception):
    """There is no index yet."""


@dataclass
class LegAnswers:
    """Answers from these legs; `before` is called first, and may raise."""

    legs: Legs
    before: Callable[[], object] = lambda: None
    updated: str = "2026-01-01T00:00:00Z"

    def search(self, question: Question, access: Access) -> Answer:
        self.before()
        return search(self.legs, question, access)

    def get(self, chunk_id: str, access: Access, context: int = 0, query: str = "") -> Surrounded | None:
        self.before()
        return get(self.legs, access, chunk_id, context, query)

    def updated_at(self) -> str:
        return self.updated


def report() -> Report:
    return Report(
        current=False,
        summary="Not up to date",
        figures=(ReportRow("Sources", "3"), ReportRow("Dead letters", "1", tone="bad")),
        sections=(
            Section("Dead letters", (ReportRow("fts: <b>a</b>.md", "refused & removed", "bad"),)),
            Section("Last verify", (), "Nothing was verified. Run `chunksink verify`."),
        ),
        troubles=("some engines are not up to date; run `chunksink sync`",),
    )


def site_over(answers: LegAnswers, *, tokens: Mapping[str, str] | None = None, **more: Any) -> Site:
    """`tokens` maps plain tokens, not hashes, to tenants."""
    hashed = {sha256(token.encode()).hexdigest(): tenant for token, tenant in (tokens or {}).items()}
    site = Site(
        answers, report, Tokens(hashed), Hosts("127.0.0.1"), unready=(NotBuilt,), unbuilt=NotBuilt, version="1.2.3"
    )
    return replace(site, **more)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@contextmanager
def client_of(app: ASGIApp) -> Iterator[TestClient]:
    with TestClient(app, base_url=f"{ADDRESS}:8765", follow_redirects=False) as client:
        yield client


@contextmanager
def client_over(
    folder: Path, families: Iterable[Family], *, tokens: Mapping[str, str] | None = None, **more: Any
) -> Iterator[TestClient]:
    with (
        legs_over(folder, families) as legs,
        client_of(make_app(site_over(LegAnswers(legs), tokens=tokens, **more))) as client,
    ):
        yield client


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """A real server in a thread; its address."""
    port = free_port()
    settings = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_level="warning", lifespan="on", ws="none", http="h11"
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            thread.join(0.02)
        yield f"{ADDRESS}:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


def degraded(legs: Legs) -> Legs:
    """The legs, with a vector engine that does not answer."""
    assert legs.semantic is not None
    error = Unreachable("chroma at http://10.0.0.7:8000 does not answer")
    return with_readers(legs, semantic=Failing(error, legs.semantic.reader, "query"))


class Complaints(list[str]):
    """Errors and warnings of a page: resources that the policy blocked, exceptions of its script."""

    def listen(self, page: Page) -> None:
        page.on("console", lambda message: self.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.append(str(error)))


def titles(page: Page) -> list[str]:
    return page.locator(".hit .title").all_text_contents()


def settle(page: Page, path: str) -> None:
    page.wait_for_function("path => location.pathname + location.search === path", arg=path)
    page.wait_for_selector("#results:not([aria-busy])")


def assert_described(client: TestClient, path: str, status: str, content: Any, **headers: str) -> None:
    description = client.get("/api/openapi.json", headers=headers).json()
    answer = description["paths"][path]["get"]["responses"][status]
    schema = {**answer["content"]["application/json"]["schema"], "components": description["components"]}
    jsonschema.Draft202012Validator(closed(schema)).validate(content)


def closed(schema: Any) -> Any:
    """The schema with every object limited to the described properties."""
    if not isinstance(schema, dict):
        return [closed(one) for one in schema] if isinstance(schema, list) else schema
    limits = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {name: closed(one) for name, one in schema.items()} | limits
