"""Whole processes, measured from outside: their seconds, processor time and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parent.parent
POSTGRES = ("-c", "shared_buffers=1GB")
"""As docs/postgres.md advises: the index fits into these buffers."""
PEERS = ROOT / ".peers" / "bin" / "python"
NO_PEERS = "LangChain and LlamaIndex are not installed: `make peers`"

# A small process between this one and the measured one: at its start, a process inherits the peak memory of its parent.
_LAUNCHER = r"""
import os, sys, time
started = time.perf_counter()
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
print("\n", time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
_READY = """
import chromadb, numpy
import chunksink.command_line.cli
"""
_MODEL = """
from chunksink.embeddings.settings import EncoderSettings, open_encoder
open_encoder(EncoderSettings(long_texts="truncate"), network=False).close()
"""


@dataclass(frozen=True)
class Ran:
    seconds: float
    cpu: float
    peak_mb: float
    """The peak memory of its largest process."""
    printed: str

    @property
    def document(self) -> Any:
        """The JSON output."""
        return orjson.loads(self.printed)


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Ran:
    """Run a command from the checkout. If it fails, end this program."""
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            check=False,
        )
        errors.seek(0)
        *lines, usage = errors.read().decode("utf-8", "replace").splitlines()
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n" + "\n".join(lines[-40:]))
    seconds, cpu, peak_kb = map(float, usage.split())
    return Ran(seconds, cpu, peak_kb / 1024, done.stdout.decode())


def python(module: str, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ran:
    return run([sys.executable, "-m", module, *arguments], environment)


def chunksink(command: str, bus: Path, home: Path, *arguments: str | Path, **settings: str) -> Ran:
    """Run the command line. Each setting is passed as its environment variable."""
    environment = {f"CHUNKSINK_{name.upper()}": value for name, value in settings.items()}
    return python("chunksink", command, "--chunks", bus, "--home", home, *arguments, environment=environment)


@dataclass(frozen=True)
class Server:
    url: str
    pid: int


@contextmanager
def served(*sinks: str, data: Path | None = None) -> Iterator[Mapping[str, Server]]:
    """Start the servers that these sinks need. This process and its children find Meilisearch and PostgreSQL in the
    environment. `data` is for one server only, which keeps its files in that folder; else the files are deleted."""
    from tests.engines.servers import patched_environment, run_chroma, run_meilisearch, run_postgres

    servers: dict[str, Server] = {}
    with ExitStack() as stack:
        if "meilisearch" in sinks:
            meilisearch = stack.enter_context(run_meilisearch(data=data))
            servers["meilisearch"] = Server(meilisearch.url, meilisearch.pid)
            variables = {"MEILI_URL": meilisearch.url, "MEILI_MASTER_KEY": meilisearch.key}
            stack.enter_context(patched_environment(variables))
        if "postgres" in sinks:
            postgres = stack.enter_context(run_postgres(data=data, arguments=POSTGRES))
            servers["postgres"] = Server(postgres.url, postgres.pid)
            stack.enter_context(patched_environment({"CHUNKSINK_SINK_POSTGRES_URL": postgres.url}))
        if "chroma-server" in sinks:
            chroma = stack.enter_context(run_chroma(data=data))
            servers["chroma-server"] = Server(chroma.url, chroma.pid)
        yield servers


def peer(*arguments: str | Path) -> Ran:
    return run([PEERS, "-m", "bench.peers", *arguments])


def start_up(*, model: bool) -> float:
    """Seconds that a process takes to import what a rebuild imports, and with `model` also to load the model."""
    return run([sys.executable, "-c", _READY + (_MODEL if model else "")]).seconds
