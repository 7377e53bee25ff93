"""The application: its routes, and the guard around all of them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from chunksink.search.page.api import Api, ApiRoute, error_response
from chunksink.search.page.callers import Sessions
from chunksink.search.page.pages import HtmlPages
from chunksink.search.page.readiness import Readiness
from chunksink.search.page.security import Guard
from chunksink.search.page.site import HttpProblem, Site
from chunksink.search.page.workers import Workers

STATIC = Path(__file__).with_name("static")
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_app(site: Site) -> ASGIApp:
    """The ASGI application, with its own threads for the engines."""
    workers, sessions = Workers(), Sessions()
    readiness = Readiness(site)
    pages, api = HtmlPages(site, workers, sessions), Api(site, workers, readiness)

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        readiness.begin()  # loads the model, so that the first search need not wait for it
        try:
            yield
        finally:
            readiness.close()
            workers.close()

    async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if _is_api(request):
            answer = error_response(
                HttpProblem(404, "There is nothing at this address; /api/openapi.json describes the API.")
            )
        else:
            answer = pages.not_found(request)
        await answer(scope, receive, send)

    def refuse(request: Request) -> Response:
        if _is_api(request):
            return error_response(
                HttpProblem(401, "The token is missing or unknown. Send one: Authorization: Bearer TOKEN")
            )
        query = request.url.query
        return pages.sign_in_form(request.url.path + (f"?{query}" if query else ""))

    routes = [
        Route("/", pages.search),
        Route("/chunk", pages.chunk),
        Route("/status", pages.status),
        Route("/sign-in", pages.ask_to_sign_in),
        Route("/sign-in", pages.sign_in, methods=["POST"]),
        Route("/sign-out", pages.sign_out, methods=["POST"]),
        ApiRoute("/api/search", api.search),
        ApiRoute("/api/chunk", api.chunk),
        ApiRoute("/api/openapi.json", api.description),
        ApiRoute("/healthz", api.alive),
        ApiRoute("/readyz", api.ready),
        ApiRoute("/metrics", api.metrics),
        *(Route(f"/static/{file.name}", _static(file)) for file in sorted(STATIC.iterdir()) if file.suffix in _TYPES),
    ]
    # A bare router: the guard handles errors, and reveals less of them than Starlette would.
    app = Router(routes, redirect_slashes=False, default=not_found, lifespan=lifespan)
    return Guard(app, site.hosts, site.tokens, sessions, refuse)


def _is_api(request: Request) -> bool:
    path = request.url.path
    return path.startswith("/api/") or path == "/metrics"


def _static(file: Path) -> Callable[[Request], Awaitable[Response]]:
    """A file that is read once, with an ETag for browsers that have it already."""
    data = file.read_bytes()
    headers = {"ETag": f'"{sha256(data).hexdigest():.32}"', "Cache-Control": "no-cache"}
    kind = _TYPES[file.suffix]

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=kind)

    return serve
