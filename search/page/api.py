"""The HTTP API: search, single chunks, metrics, liveness, readiness, and an OpenAPI description."""

from dataclasses import asdict
from functools import partial
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from chunksink.chunkbus.errors import extra_needed
from chunksink.search.page.form import CHUNK_PARAMETERS, once, read
from chunksink.search.page.openapi import described
from chunksink.search.page.readiness import Readiness
from chunksink.search.page.security import caller_of
from chunksink.search.page.site import HttpProblem, Site, unanswered
from chunksink.search.page.workers import Overloaded, SideWorker, Workers

SCRAPE_SECONDS = 8.0
"""Prometheus waits ten seconds by default."""
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 405: {"Allow": "GET, HEAD"}, 503: {"Retry-After": "1"}}


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(content), status, headers, media_type="application/json")


def error_response(problem: HttpProblem) -> Response:
    return json_response({"error": problem.message}, problem.status, _HEADERS.get(problem.status))


class ApiRoute(Route):
    """A route of the API. Its errors are JSON, including the one for an unsupported method."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        response = error_response(HttpProblem(405, "Use GET; /api/openapi.json describes the API."))
        await response(scope, receive, send)


class Api:
    def __init__(self, site: Site, workers: Workers, readiness: Readiness) -> None:
        self._site = site
        self._workers = workers
        self._readiness = readiness
        self._scrapes = SideWorker(SCRAPE_SECONDS)
        self._description = described(site.version, site.fields)

    async def search(self, request: Request) -> Response:
        caller = caller_of(request)
        try:
            form = read(request.query_params.multi_items(), strict=True, default_mode=self._site.default_mode)
            access = caller.access(form.tenant, required=self._site.tenants_required)
            answer = await self._workers.do(self._site.search, form.question(self._site.fields), access, caller)
        except Exception as error:
            return error_response(self._site.problem(error, caller))
        if problem := unanswered(answer):
            return error_response(problem)
        return json_response(answer.as_json(explain=form.explain))

    async def chunk(self, request: Request) -> Response:
        caller = caller_of(request)
        pairs = request.query_params.multi_items()
        chunk_id = request.query_params.get("id", "")
        if not chunk_id:
            return error_response(HttpProblem(400, "The parameter `id` is missing: use the chunk_id of a hit."))
        try:
            once("id", request.query_params.getlist("id"))
            form = read([pair for pair in pairs if pair[0] != "id"], strict=True, known=CHUNK_PARAMETERS)
            access = caller.access(form.tenant, required=self._site.tenants_required)
            found = await self._workers.do(self._site.service.get, chunk_id, access, form.context)
        except Exception as error:
            return error_response(self._site.problem(error, caller))
        if found is None:
            return error_response(HttpProblem(404, "There is no chunk with this id: use the chunk_id of a hit."))
        return json_response(found.as_json())

    async def metrics(self, request: Request) -> Response:
        """Only for callers who may see all tenants: it counts everybody's documents and searches."""
        if not caller_of(request).sees_all:
            return error_response(HttpProblem(403, "Metrics cover all tenants, so they need a token for all (`*`)."))
        if self._site.metrics is None:
            return error_response(HttpProblem(404, f"This server has no metrics: {extra_needed('metrics')}"))
        accept = request.headers.get("accept", "")
        try:
            content, media_type = await self._scrapes.do(partial(self._site.metrics.exposition, accept))
        except Overloaded as error:
            return error_response(HttpProblem(503, str(error)))
        return Response(content, media_type=media_type)

    async def description(self, _request: Request) -> Response:
        return json_response(self._description)

    async def alive(self, _request: Request) -> Response:
        """Asks no engine: it answers as long as the event loop runs."""
        return json_response({"status": "ok"})

    async def ready(self, _request: Request) -> Response:
        found = await self._readiness.now()
        return json_response(asdict(found), found.code)
