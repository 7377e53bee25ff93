"""The guard around every request: allowed hosts, authentication, security headers, and errors."""

import logging
import traceback
from collections.abc import Awaitable, Callable, Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chunksink.search.page.callers import Caller, Sessions, Tokens

COOKIE = "chunksink"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
WITHOUT_TOKEN = ("/healthz", "/readyz", "/sign-in", "/static/")
"""Paths that need no token, because they reveal nothing about the index."""

Refuse = Callable[[Request], Response]

_log = logging.getLogger("chunksink.search.page")


class Hosts:
    """The host names that the server accepts. This stops DNS rebinding, where a foreign site's name points here."""

    def __init__(self, bound: str, names: Collection[str] = ()) -> None:
        self._names = {name.lower() for name in ("localhost", "127.0.0.1", "::1", bound, *names)}
        self._any_address = bound in ("", "0.0.0.0", "::")

    def serves(self, header: str) -> bool:
        """Any port is accepted, because tunnels change it. A server that listens on all addresses accepts every IP
        address: DNS cannot redirect these."""
        try:
            parts = urlsplit(f"//{header}")
            name = (parts.hostname or "").rstrip(".").lower()
        except ValueError:
            return False
        if parts.netloc != header or "@" in header:
            return False
        return name in self._names or (self._any_address and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Wraps the whole application, so that no route can bypass it."""

    def __init__(self, app: ASGIApp, hosts: Hosts, tokens: Tokens, sessions: Sessions, refuse: Refuse) -> None:
        self._app = app
        self._hosts = hosts
        self._tokens = tokens
        self._sessions = sessions
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def guarded(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                _add_headers(MutableHeaders(scope=message))
            await send(message)

        try:
            await self._answer(scope)(scope, receive, guarded)
        except Exception as error:
            note_bug(scope["path"], error)
            if began:
                raise ConnectionAbortedError from None  # a truncated response must not look complete
            bug = PlainTextResponse("This is a bug in chunksink. The log of the server shows where it happened.\n", 500)
            await bug(scope, receive, guarded)

    def _answer(self, scope: Scope) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
        if not self._hosts.serves(Headers(scope=scope).get("host", "")):
            unserved = "This host name is not served. Use the address that `serve` printed, or start `serve` with"
            return PlainTextResponse(f"{unserved} `--name` and this host name.\n", 421)
        request = Request(scope)
        caller = self._caller(request)
        path = scope["path"]
        if caller is None and not path.startswith(WITHOUT_TOKEN):
            return self._refuse(request)
        scope.setdefault("state", {})["caller"] = caller
        return self._app

    def _caller(self, request: Request) -> Caller | None:
        if not self._tokens.required:
            return Caller()
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._tokens.caller(token)
        return self._sessions.caller(session_id(request))


def caller_of(request: Request) -> Caller:
    """The caller that the guard identified."""
    caller = request.state.caller
    if caller is None:  # a route without authentication must not search
        raise LookupError(f"{request.url.path} needs no token, so it has no caller")
    assert isinstance(caller, Caller)
    return caller


def session_id(request: Request) -> str:
    return request.cookies.get(COOKIE, "")


def is_own_form(request: Request) -> bool:
    """Whether the form of this site sent the request. Requests without this information are accepted, since some
    browsers omit it over plain HTTP: the cookie is `SameSite=Strict` anyway."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin", "null")
    return origin == "null" or urlsplit(origin).netloc == request.headers.get("host", "")


def _add_headers(headers: MutableHeaders) -> None:
    for name, value in HEADERS.items():
        headers[name] = value
    headers.setdefault("Cache-Control", "no-store")


def note_bug(path: str, error: Exception) -> None:
    """Log where an error happened. Queries, and messages that may repeat them, are not logged."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s while answering %s\n%s", type(error).__name__, path, frames)
