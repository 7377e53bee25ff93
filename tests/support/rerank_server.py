"""A real HTTP server that answers requests to rerank texts."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.engines.other_servers import QuietHandler, web_server


class RerankServer:
    """Gives longer texts higher scores, unless `answer` is set."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answer: tuple[int, Any] | None = None
        self.hangs = False
        self.ended = threading.Event()


@contextmanager
def rerank_server() -> Iterator[RerankServer]:
    served = RerankServer()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 (named by http.server)
            body = json.loads(self.body())
            served.requests.append(body)
            served.keys.append(self.headers.get("authorization"))
            if served.hangs:
                served.ended.wait(60)
            scores = [{"index": place, "relevance_score": len(one)} for place, one in enumerate(body["documents"])]
            status, answer = served.answer or (200, {"results": scores[::-1]})
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with web_server(Handler) as address:
        served.url = f"{address}/v1/rerank"
        try:
            yield served
        finally:
            served.ended.set()
