"""A real HTTP server on loopback that imitates OpenAI's embedding endpoint, with faults on request."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from chunksink.embeddings.connection import RequestLimits
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.endpoint import EndpointEncoder
from chunksink.embeddings.settings import EncoderSettings
from tests.embeddings.helpers import HashEncoder
from tests.engines.other_servers import QuietHandler, web_server

KEY = "canary-key-2f9c1e7d"
Answer = tuple[int, dict[str, str], bytes]
Fault = Callable[[dict[str, Any]], Answer]


class Server:
    """An endpoint that computes the vectors of `HashEncoder` unless a script replaces its answers."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.dimension = 16
        self.next: list[Callable[[dict[str, Any]], Answer | None]] = []
        """What the next requests are answered; None leaves without an answer."""
        self.refuse = "refuse"
        self.alter: Callable[[Vectors], Vectors] | None = None
        """What another model behind the same name makes of each vector."""
        self.drip: float | None = None
        """Seconds between two bytes of an answer; None sends all at once."""
        self.ended = threading.Event()
        self._lock = threading.Lock()

    def answer(self, body: dict[str, Any], key: str | None) -> Answer | None:
        with self._lock:
            self.requests.append(body)
            self.keys.append(key)
            special = self.next.pop(0) if self.next else None
        if special:
            return special(body)
        if any(self.refuse in text for text in body["input"]):
            return 400, {}, f"input is not acceptable for {key}".encode()
        return good(body, self.dimension, self.alter)


def connect(server: Server, **options: Any) -> EndpointEncoder:
    return connect_to(server.url, **{"deadline_seconds": 5.0, "timeout_seconds": 2.0} | options)


def connect_to(url: str, **options: Any) -> EndpointEncoder:
    """An encoder with these settings and limits."""
    names = {field.name for field in fields(RequestLimits)} & options.keys()
    limits = RequestLimits(**{name: options.pop(name) for name in names})
    return EndpointEncoder(url, EncoderSettings("hash-model", endpoint=url, **options), limits)


def good(body: dict[str, Any], dimension: int = 16, alter: Callable[[Vectors], Vectors] | None = None) -> Answer:
    encoder = HashEncoder(dimension=body.get("dimensions", dimension))
    vectors = [encoder.vector(text) for text in body["input"]]
    data = [
        {"object": "embedding", "index": number, "embedding": (alter(vector) if alter else vector).tolist()}
        for number, vector in enumerate(vectors)
    ]
    usage = {"total_tokens": sum(len(text.split()) for text in body["input"])}
    answer = {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage}
    return 200, {}, json.dumps(answer).encode()


def saying(code: int, text: str, **headers: str) -> Fault:
    return lambda body: (code, {name.replace("_", "-"): value for name, value in headers.items()}, text.encode())


def status(code: int, **headers: str) -> Fault:
    return saying(code, "no", **headers)


def broken(*, width: int) -> Fault:
    """Valid except for the number of dimensions."""
    return lambda body: good({key: value for key, value in body.items() if key != "dimensions"}, width)


def hang(served: Server) -> Callable[[dict[str, Any]], Answer | None]:
    """Accepts the request and sends nothing for a long time."""

    def wait(body: dict[str, Any]) -> None:
        served.ended.wait(60)

    return wait


@contextmanager
def serve() -> Iterator[Server]:
    served = Server()

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # noqa: N802 (named by http.server)
            body = json.loads(self.body())
            if self.path != "/v1/embeddings":
                answer: Answer | None = (404, {}, b"no such path")
            else:
                answer = served.answer(body, self.headers.get("authorization"))
            if answer is None:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            code, headers, content = answer
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            head, self._headers_buffer = b"".join(self._headers_buffer), []
            try:
                self.send(head + b"\r\n" + content)
            except ConnectionError:  # the client has closed the connection
                self.close_connection = True

        def send(self, answer: bytes) -> None:
            if served.drip is None:
                self.wfile.write(answer)
                return
            for byte in answer:
                self.wfile.write(bytes([byte]))
                time.sleep(served.drip)

    with web_server(Handler) as address:
        served.url = f"{address}/v1"
        try:
            yield served
        finally:
            served.ended.set()
