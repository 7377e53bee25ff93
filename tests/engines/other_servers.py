"""Servers on loopback that are no engines: silent, constant, or scripted by a test."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class QuietHandler(BaseHTTPRequestHandler):
    """Prints nothing."""

    def body(self) -> bytes:
        """The request's body; shorter than its length if the connection ended early."""
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """The client may have closed the connection."""


@contextmanager
def web_server(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server that runs in a thread."""
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def silent_server() -> Iterator[str]:
    """The address of a server that never accepts a connection. The kernel does, as long as its queue has room."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def answering(body: str | Callable[[Message], str], status: int = 200) -> Iterator[str]:
    """The address of a web server that answers every request the same way, or by a function of its headers."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self.body()
            content = (body if isinstance(body, str) else body(self.headers)).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 (named by http.server)

    with web_server(Handler) as address:
        yield address
