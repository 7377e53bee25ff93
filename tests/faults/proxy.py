"""A proxy on loopback between a client and a real HTTP server that injects network faults.

    with Proxy(server.url) as proxy:
        proxy.inject(RESET, only(3))  # until proxy.heal(), of the requests to proxy.url

Messages pass byte for byte. A fault defines how far a request and its answer get, and how the connection then ends.
"""

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Literal
from urllib.parse import urlsplit

MAX_SILENCE = 10.0  # a client without a timeout fails its test instead of blocking it

When = Callable[[int, bytes], bool]
"""Whether a fault befalls a request, by its number since the fault was injected (from 1) and by its bytes."""


@dataclass(frozen=True)
class Fault:
    """What happens to a request."""

    name: str
    delay: float = 0.0
    """Seconds that the request waits."""
    request_bytes: int | None = None
    """So much of it reaches the server, -5 is all but five, and there is no answer; None is all."""
    answer_bytes: int | None = None
    """So much of the answer reaches the client; None is all."""
    status: int | None = None
    """Answered in place of the server, with this body."""
    body: bytes = b"try later"
    end: Literal["close", "reset", "silence"] = "close"
    """What then becomes of the connection; silence lasts until the client leaves."""
    act: Callable[[], object] = lambda: None
    """Called before that end."""

    def __str__(self) -> str:
        return self.name


NOTHING = Fault("nothing")
RESET = Fault("reset", request_bytes=0, end="reset")
SILENCE = Fault("silence", request_bytes=0, end="silence")
CUT_REQUEST = Fault("cut request", request_bytes=-5)
CUT_ANSWER = Fault("cut answer", answer_bytes=-5)
ANSWER_LOST = Fault("answer lost", answer_bytes=0)
ANSWER_LATE = Fault("answer never comes", answer_bytes=0, end="silence")
TOO_MANY, FAILED, UNAVAILABLE = (Fault(f"status {status}", status=status) for status in (429, 500, 503))
BROKEN = (RESET, SILENCE, CUT_REQUEST, CUT_ANSWER, ANSWER_LOST, ANSWER_LATE, TOO_MANY, FAILED, UNAVAILABLE)
"""Those after which a request must be sent again."""


def always(_number: int, _request: bytes) -> bool:
    return True


def only(wanted: int) -> When:
    return lambda number, _: number == wanted


def since(first: int) -> When:
    return lambda number, _: number >= first


def each_once() -> When:
    """Every request when it is made for the first time. Requests are compared by their bytes."""
    seen: set[bytes] = set()

    def new(_: int, request: bytes) -> bool:
        return request not in seen and not seen.add(request)  # type: ignore[func-returns-value]

    return new


class Proxy(socketserver.ThreadingTCPServer):
    """A context manager. Afterwards neither a thread nor a socket is left."""

    request_queue_size = 64

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        parts = urlsplit(upstream)
        self.upstream = (parts.hostname, parts.port)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._held: set[socket.socket] = set()
        self.ending = threading.Event()
        self._lock = threading.Lock()
        self._running = threading.Thread(target=self.serve_forever, args=(0.02,))
        self.heal()

    def inject(self, fault: Fault, when: When = always) -> None:
        """Replace the current fault. Requests are counted from 1 again."""
        with self._lock:
            self._fault, self._when = fault, when
            self.requests: list[str] = []
            self.faulted: list[str] = []

    def heal(self) -> None:
        self.inject(NOTHING, only(0))

    def take(self, request: bytes) -> Fault:
        """Count a request, and return its fault."""
        line = request.partition(b"\r\n")[0].decode()
        with self._lock:
            self.requests.append(line)
            if not self._when(len(self.requests), request):
                return NOTHING
            self.faulted.append(line)
            return self._fault

    @contextlib.contextmanager
    def holding(self, *connections: socket.socket) -> Iterator[None]:
        """Register connections, which end when the proxy is closed even if they wait."""
        with self._lock:
            self._held.update(connections)
            if self.ending.is_set():
                raise ConnectionAbortedError("the proxy ends")
        try:
            yield
        finally:
            with self._lock:
                self._held.difference_update(connections)

    def __enter__(self) -> "Proxy":
        self._running.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._running.join()
        with self._lock:
            self.ending.set()
            for connection in self._held:
                with contextlib.suppress(OSError):  # already ended
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()  # waits for the threads of all connections


class _Connection(socketserver.StreamRequestHandler):
    """A connection of a client, with a connection to the server."""

    server: Proxy

    def handle(self) -> None:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(self.server.upstream) as upstream,
            self.server.holding(self.connection, upstream),
            upstream.makefile("rb") as answers,
        ):
            while (request := _message(self.rfile)) and self._served(request, upstream, answers):
                pass

    def _served(self, request: bytes, upstream: socket.socket, answers: BufferedIOBase) -> bool:
        """False when the connection ends with this request."""
        fault = self.server.take(request)
        self.server.ending.wait(fault.delay)
        if fault.status is not None:
            head = b"HTTP/1.1 %d Fault\r\nContent-Length: %d\r\n\r\n" % (fault.status, len(fault.body))
            self.wfile.write(head + fault.body)
            return True
        upstream.sendall(request[: fault.request_bytes])
        if fault.request_bytes is None:
            answer = _message(answers, has_body=not request.startswith(b"HEAD"))
            self.wfile.write(answer[: fault.answer_bytes])
            if answer and fault.answer_bytes is None:
                return True
        fault.act()
        if fault.end == "silence":
            self.connection.settimeout(MAX_SILENCE)
            self.rfile.read(1)
        elif fault.end == "reset":  # closing a socket with this option resets the connection
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        return False


def _message(stream: BufferedIOBase, *, has_body: bool = True) -> bytes:
    """The next request or answer, of known length or in chunks. Empty if the stream ends before it does."""
    message = b""
    while not message.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return b""
        message += line
    if not has_body:
        return message
    fields = dict(line.lower().split(b": ", 1) for line in message.split(b"\r\n")[1:-2])
    if fields.get(b"transfer-encoding") != b"chunked":
        length = int(fields.get(b"content-length", 0))
        body = stream.read(length)
        return message + body if len(body) == length else b""
    while line := stream.readline():
        length = int(line.partition(b";")[0], 16)
        message += line + stream.read(length + 2)
        if not length:
            return message
    return b""
