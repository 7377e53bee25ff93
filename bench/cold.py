"""Commands in new processes that compute few vectors, against the import of sentence_transformers alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from bench import corpora
from bench.harness import Case, Figure, Measurement, ratio
from bench.processes import ROOT, run
from bench.processes import chunksink as command

IMPORT, SEARCH, EDIT, MCP = "import sentence_transformers", "hybrid search", "edited file", "mcp"
_PARAGRAPHS = 10
_QUESTION = "how is the flow measured near a wall"
_MESSAGES = (
    {
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": _QUESTION}}},
)


def measure(case: Measurement) -> None:
    documents, bus, home = case.scratch / "documents", case.scratch / "bus", case.scratch / "home"
    documents.mkdir()
    texts = corpora.even(corpora.prose(case.data), case.number("files") * _PARAGRAPHS, 1000)
    for number in range(case.number("files")):
        paragraphs = texts[number * _PARAGRAPHS :][:_PARAGRAPHS]
        (documents / f"{number:04d}.md").write_text(f"# Document {number}\n\n" + "\n\n".join(paragraphs))
    command("ingest", bus, home, documents, "--sync")

    def edit() -> float:
        """Add a line to one file. Returns the seconds of the ingest and the sync that follow."""
        file = documents / "0000.md"
        file.write_text(f"{file.read_text()}\n\nAnother line, {perf_counter()}.\n")
        return command("ingest", bus, home, documents).seconds + command("sync", bus, home).seconds

    took = case.turns(
        {
            IMPORT: lambda: run([sys.executable, "-c", "import sentence_transformers"]).seconds,
            SEARCH: lambda: command("search", bus, home, _QUESTION).seconds,
            EDIT: edit,
            MCP: lambda: _first_answer(bus, home),
        }
    )
    for name, seconds in took.items():
        case.keep(f"{name}, s", seconds)
    for name in (SEARCH, EDIT, MCP):
        case.found(name, ratio(took[name], took[IMPORT]))


def _first_answer(bus: Path, home: Path) -> float:
    """Seconds until an assistant has its first answer from a server that it starts."""
    started = perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "chunksink", "mcp", "--chunks", bus, "--home", home],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in _MESSAGES:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
        answer = next(found for line in server.stdout if (found := json.loads(line)).get("id") == 1)
        seconds = perf_counter() - started
        server.stdin.close()
    assert not answer["result"].get("isError"), answer
    return seconds


CASES = (
    Case(
        "cold",
        "commands in new processes, against `import sentence_transformers` alone",
        (
            Figure(SEARCH, "of the baseline's time", at_most=0.20),
            Figure(EDIT, "of the baseline's time", at_most=0.40),
            Figure(MCP, "of the baseline's time", at_most=0.25),
        ),
        measure,
        {"files": (100, 500), "rounds": (5, 9)},
    ),
)
