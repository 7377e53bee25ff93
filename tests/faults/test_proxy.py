"""The proxy injects the named faults and leaves nothing behind."""

import threading
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from tests.engines.other_servers import QuietHandler, web_server
from tests.faults import proxy as p
from tests.faults.proxy import Fault, Proxy
from tests.support.waiting import eventually


class Echo(QuietHandler):
    protocol_version = "HTTP/1.1"
    arrived: list[bytes] = []  # noqa: RUF012 (emptied by the fixture)

    def do_POST(self) -> None:  # noqa: N802 (named by http.server)
        body = self.body()
        if len(body) < int(self.headers["Content-Length"]):
            return
        self.arrived.append(body)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with suppress(ConnectionError):  # the client has closed the connection
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    Echo.arrived.clear()
    before = set(threading.enumerate())
    with web_server(Echo) as address, Proxy(address) as proxy:
        yield proxy
    eventually(lambda: set(threading.enumerate()) <= before)  # the server's own threads end by themselves


@pytest.fixture
def client(proxy: Proxy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.url, timeout=0.3, trust_env=False) as client:
        yield client


@pytest.mark.parametrize(
    ("fault", "error", "arrives"),
    [
        (p.RESET, httpx.ReadError, False),
        (p.SILENCE, httpx.ReadTimeout, False),
        (p.CUT_REQUEST, httpx.RemoteProtocolError, False),
        (p.CUT_ANSWER, httpx.RemoteProtocolError, True),
        (p.ANSWER_LOST, httpx.RemoteProtocolError, True),
        (p.ANSWER_LATE, httpx.ReadTimeout, True),
        (Fault("slow", delay=1), httpx.ReadTimeout, False),
    ],
    ids=str,
)
def test_proxy_fault_behaves_as_named(
    proxy: Proxy, client: httpx.Client, fault: Fault, error: type[Exception], arrives: bool
) -> None:
    proxy.inject(fault, p.only(2))
    client.post("/", content=b"first")
    with pytest.raises(error):
        client.post("/", content=b"second")
    assert Echo.arrived == [b"first", b"second"][: 2 if arrives else 1]
    assert client.post("/", content=b"third").content == b"third"
    assert len(proxy.faulted) == 1


def test_proxy_fault_applies_to_the_selected_requests(proxy: Proxy, client: httpx.Client) -> None:
    def statuses(when: p.When, *bodies: bytes) -> list[int]:
        proxy.inject(p.FAILED, when)
        return [client.post("/", content=body).status_code for body in bodies]

    assert statuses(p.only(2), b"a", b"b", b"c") == [200, 500, 200]
    assert statuses(p.since(2), b"a", b"b", b"c") == [200, 500, 500]
    assert statuses(p.each_once(), b"a", b"a", b"b", b"a", b"b") == [500, 200, 500, 200, 200]
