"""How fast `chunksink serve` answers at a fixed rate of requests.

The vectors of the index are generated. Queries are encoded by the real model, so the cost is real but the semantic hits
are arbitrary. Requests arrive at a fixed rate, whether or not earlier ones are answered, and are timed from the moment
at which they were due. All queries differ, so nothing is answered from a cache. Three of four ask `/api/search`, one
asks for the page with its facets.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from urllib.parse import urlencode, urlsplit

import httpx

from bench import corpora
from bench.harness import Case, Figure, Measurement
from bench.processes import ROOT
from bench.search import questions

RATE = 50
P99, FAILED = f"p99 at {RATE} requests a second", "requests that failed"
WARM_SECONDS = 5
_MAX_CONNECTIONS = 200
START_SECONDS = 120.0


def measure(case: Measurement) -> None:
    bus = corpora.shared_bus(case.shared, case.number("chunks"))
    home = corpora.built_home(case.shared, bus, *corpora.SINKS)
    rate, seconds = case.number("rate"), case.number("seconds")
    queries = questions(bus, rate * (WARM_SECONDS + seconds), most=4)
    command = [sys.executable, "-m", "chunksink", "serve", "--port", "0", "--chunks", str(bus), "--home", str(home)]
    with ExitStack() as running:
        addresses = [running.enter_context(_server(command)) for _ in range(case.number("servers"))]
        asyncio.run(_load(addresses, queries[: rate * WARM_SECONDS], rate))
        took, failed = asyncio.run(_load(addresses, queries[rate * WARM_SECONDS :], rate))
    took.sort()
    p50, p95, p99 = (took[min(len(took) - 1, int(len(took) * share))] * 1000 for share in (0.5, 0.95, 0.99))
    case.keep("p50 ms", [p50])
    case.keep("p95 ms", [p95])
    case.found(P99, p99)
    case.found(FAILED, failed)


@contextmanager
def _server(command: Sequence[str]) -> Iterator[str]:
    """Start a server. Yields its address once it answers searches."""
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split(" at ")[1].split()[0]
        until = time.monotonic() + START_SECONDS
        while httpx.get(f"{address}readyz", timeout=60, trust_env=False).json()["status"] != "ok":
            if time.monotonic() > until:
                raise SystemExit("the server did not become ready")
            time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait(30)


async def _load(addresses: Sequence[str], queries: Sequence[str], rate: float) -> tuple[list[float], int]:
    """The seconds of each answer, and the number of failed requests. The servers are asked in turns."""
    took: list[float] = []
    failed = 0
    clients = [_Client(address) for address in addresses]
    started = time.monotonic()

    async def ask(due: float, client: _Client, path: str) -> None:
        nonlocal failed
        try:
            async with asyncio.timeout(60):
                async with client.free:
                    is_answered = await client.get(path)
        except (OSError, EOFError):
            is_answered = False
        if is_answered:
            took.append(time.monotonic() - due)
        else:
            failed += 1

    async with asyncio.TaskGroup() as asking:
        for number, query in enumerate(queries):
            due = started + number / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            turn, kind = divmod(number, 4)
            path = f"/{'' if kind == 3 else 'api/search'}?{urlencode({'q': query})}"
            asking.create_task(ask(due, clients[turn % len(clients)], path))
    for client in clients:
        client.close()
    return took, failed


class _Client:
    """Requests over keep-alive connections. A client library would take a tenth of the CPU time from the server."""

    def __init__(self, address: str) -> None:
        self._address = urlsplit(address)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.free = asyncio.Semaphore(_MAX_CONNECTIONS)

    async def get(self, path: str) -> bool:
        """Whether the answer is 200."""
        host, port = self._address.hostname, self._address.port
        self._idle = [one for one in self._idle if not one[0].at_eof()]  # the server closes idle connections
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(host, port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self._address.netloc}\r\n\r\n".encode())
        status, *headers = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = int(next((one[15:] for one in headers if one.startswith(b"content-length:")), b"0"))
        await reader.readexactly(length)
        self._idle.append((reader, writer))
        return status.startswith(b"http/1.1 200 ")

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


_FIGURES = (Figure(P99, "ms", at_most=300), Figure(FAILED, "requests", at_most=0))
_OPTIONS = {"chunks": (20_000, 100_000), "seconds": (20, 60), "rate": (RATE, RATE)}

CASES = (
    Case(
        "serve",
        "`chunksink serve`: hybrid questions and pages, fts and embedded Chroma",
        _FIGURES,
        measure,
        {**_OPTIONS, "servers": (1, 1)},
    ),
    Case(
        "serve-two",
        "the same, with two servers of one home",
        _FIGURES,
        measure,
        {**_OPTIONS, "servers": (2, 2)},
    ),
)
