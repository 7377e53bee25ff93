"""Addresses, options and tokens of a Chroma server: refused at once, and never quoted with a secret."""

import gc
import socket
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from chunksink.settings.config import ConfigError
from chunksink.sinks.chroma import ChromaBuild, ChromaSink, open_sink
from chunksink.sinks.conformance.samples import marker
from chunksink.sinks.errors import BuildMissing, Refused, Unreachable, WrongKey
from tests.engines.servers import ChromaServer


def test_nobody_at_the_address_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        sink = ChromaSink.server(f"http://127.0.0.1:{taken.getsockname()[1]}")
        for call in (sink.builds, lambda: sink.open("b1"), lambda: sink.create(marker(), 8), lambda: sink.drop("b1")):
            with pytest.raises(Unreachable, match="start it, or correct the address"):
                call()


@pytest.mark.parametrize(
    "url",
    [
        *("localhost:8000", "127.0.0.1:9", "ftp://host", "http://", "", "http://a..b:8000", "http://["),
        *("http://my\u2013host:8000", "http://a\udcff:8000", "http://127.0.0.1:8000\n"),
        *("http://host:8000/chroma", "http://host:8000/?x=1", "https://user:hunter2@host", "http://hunter2@host"),
        *("http://user:hunter2", "user:hunter2", "http://[hunter2"),
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="url is no address of a Chroma server: that is http://HOST:PORT") as error:
        open_sink(tmp_path, {"url": url})
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("body", ["{}", "[]", "null", "404"])
def test_what_answers_with_other_json_is_no_chroma(body: str) -> None:
    with answering(body) as url:
        sink = ChromaSink.server(url)
        for call in (sink.builds, lambda: sink.open("b1"), lambda: sink.create(marker(), 8), lambda: sink.drop("b1")):
            with pytest.raises(Refused, match=r"is no Chroma \(.+\): correct the address"):
                call()


@contextmanager
def answering(body: str) -> Iterator[str]:
    """The address of a web server that says `body` to whatever it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_DELETE = do_GET  # noqa: N815 (named by http.server)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", ["timeout", "search_timeout", "prefix"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "a b/ü", "", "-x"])
def test_options_that_chroma_cannot_take_are_refused_at_once(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        open_sink(tmp_path, {"url": "http://127.0.0.1:1", name: value})


def test_a_header_that_the_client_refuses_is_not_quoted(build: ChromaBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise httpx.LocalProtocolError("Illegal header value b'hunter2'")

    monkeypatch.setattr(build._handle.opened().collection, "count", refuse)
    with pytest.raises(WrongKey) as error:
        build.count()
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_no_connection_is_left_open(chroma_server: ChromaServer) -> None:
    def unclosed() -> list[str]:
        return [told for one in seen if "unclosed <socket" in (told := str(one.message)) and port in told]

    port = str(httpx.URL(chroma_server.url).port)
    gc.collect()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        sink = ChromaSink.server(chroma_server.url, prefix="hung-up")
        signed = marker()
        sink.create(signed, 8).close()
        sink.open(signed.build_id).close()
        with pytest.raises(BuildMissing):
            sink.open("nobody")
        sink.drop(signed.build_id)
        sink.close()
        gc.collect()
    assert unclosed() == []


def test_credentials_are_in_no_message(chroma_server: ChromaServer) -> None:
    sink = ChromaSink.server(chroma_server.url, token="hunter2")
    with pytest.raises(BuildMissing) as missing:
        sink.open("nobody")
    assert "hunter2" not in repr(missing.value) + repr(sink) + repr(vars(sink))
