"""How many requests `chunksink serve` answers, how soon, and in how much memory.

    python -m bench.serve_speed [--chunks 100000] [--rate 50] [--seconds 60] [--folder FOLDER]

The server is a process of its own, on an index with fts and chroma. Its vectors are drawn from the texts' hashes, under
the name of the default model: so queries are encoded by the real one, which costs what it costs, and what they find by
meaning is arbitrary. Requests come at a fixed rate whether or not those before are answered, and are timed from the
moment at which they were due. Every query is another one, of two to four of the corpus's words: nothing is answered
from memory. Three of four ask `/api/search`, one asks for the page with its facets. Prints a Markdown table; FOLDER
keeps the index for the next time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import httpx
import orjson

from bench import chunks, homes
from bench.processes import ROOT
from chunksink.embeddings.settings import EncoderSettings, open_encoder
from chunksink.rebuild.rebuild import Rebuild

WARM_SECONDS = 5.0
START_SECONDS = 120.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        bus, home = prepare(folder, options.chunks)
        measure(bus, home, options.chunks, options.rate, options.seconds)


def prepare(folder: Path, size: int) -> tuple[Path, Path]:
    bus, home = folder / f"serve-bus-{size}", folder / f"serve-home-{size}"
    if not bus.exists():
        chunks.make_bus(bus, size, partitions=max(1, size // 1000))
    if not home.exists():
        print(f"building the index of {size:,} chunks", file=sys.stderr)
        draft = home.with_suffix(".draft")
        draft.mkdir(parents=True)
        with homes.opened(bus, draft, ["fts", "chroma"]) as work, homes.embedder(draft, _drawn()) as embedder:
            work.refresh(reread=True)
            Rebuild(work, embedder).run()
        draft.rename(home)
    return bus, home


def _drawn() -> homes.Drawn:
    """Cheap vectors that the index takes for the real model's."""
    drawn = homes.Drawn()
    with closing(open_encoder(EncoderSettings())) as real:
        for name in ("info", "fingerprint", "dimension", "max_length", "precision"):
            setattr(drawn, name, getattr(real, name))
    return drawn


def measure(bus: Path, home: Path, size: int, rate: float, seconds: float) -> None:
    words = _words(bus)
    command = [sys.executable, "-m", "chunksink", "serve", "--port", "0", "--chunks", str(bus), "--home", str(home)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split(" at ")[1].split()[0]
        asyncio.run(_load(address, words, rate, WARM_SECONDS, seed=1))
        before = _resident_mb(server.pid)
        busy = _processor_seconds(server.pid)
        took, failed = asyncio.run(_load(address, words, rate, seconds, seed=2))
        busy = _processor_seconds(server.pid) - busy
        after = _resident_mb(server.pid)
    finally:
        server.terminate()
        server.wait(30)
    took.sort()
    p50, p95, p99 = (took[min(len(took) - 1, int(len(took) * share))] * 1000 for share in (0.5, 0.95, 0.99))
    load = os.getloadavg()[0]
    print(
        f"\n{size:,} chunks, {rate:g} requests a second for {seconds:g} s; load of the machine at the end {load:.1f}\n"
    )
    print("| answered | failed | p50 | p95 | p99, goal 500 ms | most | processor time | memory before, after |")
    print("|---|---|---|---|---|---|---|---|")
    print(
        f"| {len(took):,} | {failed} | {p50:.0f} ms | {p95:.0f} ms | {p99:.0f} ms | {took[-1] * 1000:.0f} ms "
        f"| {busy / seconds:.2f} cores | {before:.0f} MB, {after:.0f} MB |"
    )


def _words(bus: Path) -> list[str]:
    """Those of the first partition."""
    first = next(iter(sorted((bus / "canonical").glob("*.jsonl"))))
    texts = (orjson.loads(line)["text"] for line in first.read_bytes().splitlines())
    return sorted({word for text in texts for word in text.split()})


async def _load(address: str, words: list[str], rate: float, seconds: float, *, seed: int) -> tuple[list[float], int]:
    """Seconds that each answer took, and how many requests were not answered."""
    chance = random.Random(seed)
    took: list[float] = []
    failed = 0
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=50)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits, trust_env=False) as client:
        until = time.monotonic() + START_SECONDS
        while (await client.get("/healthz")).json()["status"] != "ok":
            if time.monotonic() > until:
                raise SystemExit("the server does not get ready")
            await asyncio.sleep(0.2)
        started = time.monotonic()

        async def ask(due: float, path: str, query: str) -> None:
            nonlocal failed
            try:
                answer = await client.get(path, params={"q": query})
                answer.raise_for_status()
            except httpx.HTTPError:
                failed += 1
            else:
                took.append(time.monotonic() - due)

        async with asyncio.TaskGroup() as asking:
            for number in range(int(rate * seconds)):
                due = started + number / rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                query = " ".join(chance.choices(words, k=chance.randint(2, 4)))
                asking.create_task(ask(due, "/" if number % 4 == 3 else "/api/search", query))
    return took, failed


def _resident_mb(process: int) -> float:
    """Of the server and of what it started."""
    return sum(_status_kb(each) for each in [process, *_children(process)]) / 1024


def _status_kb(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def _processor_seconds(process: int) -> float:
    ticks = 0
    for each in [process, *_children(process)]:
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _children(process: int) -> list[int]:
    return [
        int(child) for file in Path(f"/proc/{process}/task").glob("*/children") for child in file.read_text().split()
    ]


if __name__ == "__main__":
    main()
