"""`chunksink serve`: the search page and its API."""

import gc
import os
import re
import signal
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from threading import Thread
from types import FrameType

import click
import uvicorn
from starlette.types import ASGIApp

from chunksink import __version__
from chunksink.command_line import logs
from chunksink.command_line.exits import Exit, Refusal
from chunksink.command_line.options import SharedOptions, config_from, index_options
from chunksink.command_line.status_report import page_report
from chunksink.live import SEARCH_ERRORS, LiveSearch
from chunksink.rebuild.errors import NoGeneration
from chunksink.search.access import EVERYTHING
from chunksink.search.page.app import make_app
from chunksink.search.page.callers import Tokens
from chunksink.search.page.connections import LimitedProtocol
from chunksink.search.page.security import Hosts
from chunksink.search.page.site import Metrics, Site
from chunksink.search.question import Question
from chunksink.settings.config import Config
from chunksink.sinks.custom_fields import FieldSet
from chunksink.wiring import default_mode

_CHECK_SECONDS = 0.5
"""How often to check for changes by other processes."""
_MAX_CONNECTIONS = 500
_REQUEST_LINE_BYTES = 256 * 1024
"""Enough for a query of 10,000 characters of any script, quoted in the address."""
_WEB_ADDRESS = re.compile(r"https?://(\[[0-9a-f:.]+\]|[^/?#\s\[])[^?#\s]*", re.IGNORECASE)
_HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*", re.IGNORECASE)
_TOKEN_REMEDY = """\
make a token and its hash:
  python3 -c "import hashlib, secrets; t = secrets.token_urlsafe(32); print(t, hashlib.sha256(t.encode()).hexdigest())"
send the first to the client, and write the second into chunksink.toml, with a tenant or * for all:
  [tokens]
  "HASH" = "*\""""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free one.")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="Also accept requests to this host name, such as that of a proxy; may be repeated.",
)
@click.option(
    "--source-url",
    metavar="PREFIX",
    help="Prefix to put before source names that are relative paths, so that they become links.",
)
@index_options
def command(shared: SharedOptions, host: str, port: int, names: tuple[str, ...], source_url: str | None) -> int:
    """Serve a search page and its API (/api/search, described at /api/openapi.json) until Ctrl-C.

    It follows syncs, rebuilds and rollbacks of other processes. Without tokens in the configuration, anyone on this
    machine may search, and only a loopback address is possible. With tokens, each request needs one, except
    /readyz, /healthz and the page to sign in. A token is for one tenant or for all. /readyz reports whether searches
    are answered, /healthz that the server runs, /status what is in the index, /metrics all of this for Prometheus
    (extra `metrics`).

    \b
    Examples:
      chunksink serve
      chunksink serve --port 0
      chunksink serve --source-url https://git.example.org/handbook/blob/main/
      chunksink serve --host 0.0.0.0 --name search.example.org
      curl 'http://127.0.0.1:8765/api/search?q=battery+safety&filter=language%3Den'
    """
    config = config_from(shared)
    _require_web(source_url)
    _require_host_names(names)
    with (
        _listening(host, port, open_to_all=not config.tokens) as listener,
        closing(LiveSearch(config, every_seconds=_CHECK_SECONDS)) as live,
    ):
        app = _app(config, live, host, names, source_url)
        _serve(
            app,
            listener,
            partial(get_ready, live),
            f"serving {config.home} at {_address(host, listener)} (Ctrl-C ends it)",
        )
    click.echo("stopped")
    return Exit.OK


def _app(config: Config, live: LiveSearch, host: str, names: tuple[str, ...], source_url: str | None) -> ASGIApp:
    metrics: Metrics | None = None
    if find_spec("prometheus_client") is not None:  # the extra `metrics`
        from chunksink.metrics import ServeMetrics

        metrics = ServeMetrics(config)
    site = Site(
        service=live,
        report=partial(page_report, config),
        tokens=Tokens(config.tokens),
        hosts=Hosts(host, names),
        unready=SEARCH_ERRORS,
        unbuilt=NoGeneration,
        tenants_required=config.tenants == "required",
        default_mode=default_mode(config),
        fields=FieldSet.of(config.fields),
        source_url=source_url,
        version=__version__,
        metrics=metrics,
    )
    return make_app(site)


def _serve(app: ASGIApp, listener: socket.socket, warm: Callable[[], object], greeting: str) -> None:
    """Serve until SIGINT or SIGTERM."""
    settings = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        log_config=None if logs.is_json() else uvicorn.config.LOGGING_CONFIG,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=_REQUEST_LINE_BYTES,
    )
    settings.load()
    server = uvicorn.Server(settings)

    def end(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # uvicorn replaces these handlers while it runs. At its end it restores them and sends itself the signal again.
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # Started after the handlers and our imports: two threads that import the same module at once may fail.
        Thread(target=warm, daemon=True).start()
        click.echo(greeting)
        server.run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def get_ready(live: LiveSearch) -> None:
    """Load what the first question needs, and exclude it from garbage collection: scanning half a million objects would
    delay searches by a third of a second each time."""
    with suppress(Exception):  # /readyz asks the same question, and reports its errors
        live.search(Question("ready", limit=1), EVERYTHING)
    gc.collect()
    gc.freeze()


def _listening(host: str, port: int, *, open_to_all: bool) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # UnicodeError: a part of the name is empty or too long
        wrong = error.strerror if isinstance(error, OSError) else "not a host name"
        raise Refusal(f"--host {host}: {wrong}; name an address of this machine", Exit.USAGE) from error
    if open_to_all and not ip_address(str(address[0])).is_loopback:
        raise Refusal(
            f"--host {host} lets other machines search, but no token is configured: {_TOKEN_REMEDY}", Exit.USAGE
        )
    try:
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        message = f"cannot listen on {host}, port {port}: {reason}; choose another with --port (0 picks one)"
        raise Refusal(message, Exit.USAGE) from error


def _address(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _require_web(source_url: str | None) -> None:
    """Refuses everything but web addresses: pages must not link to anything else."""
    if source_url is not None and _WEB_ADDRESS.fullmatch(source_url) is None:
        raise Refusal(f"--source-url {source_url}: use an address such as https://example.org/docs/", Exit.USAGE)


def _require_host_names(names: tuple[str, ...]) -> None:
    """Refuses names that never equal the host of a request."""
    for name in names:
        if _HOST_NAME.fullmatch(name) is None:
            form = "use a host name only, without https://, port, path or *, such as search.example.org"
            raise Refusal(f"--name {name}: {form}", Exit.USAGE)
