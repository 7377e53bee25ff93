"""Fixtures for the whole suite: the real engines, and the optional real-world data.

A missing engine skips the tests that need it and prints how to install it. If CHUNKSINK_REQUIRE names the engine, they
fail instead. `tests/engines/test_servers.py` tests this.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from tests.engines.servers import (
    ChromaServer,
    MeilisearchServer,
    PostgresServer,
    S3Server,
    run_chroma,
    run_meilisearch,
    run_postgres,
    run_s3,
)
from tools import engines

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Before any test module imports it, so that failures show details.
pytest.register_assert_rewrite("chunksink.sinks.conformance")

# Before anything imports chromadb or transformers: tests talk to this machine only.
os.environ.update(ANONYMIZED_TELEMETRY="False", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

# Hundreds of processes are started; each would compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A run in the background of a script ignores Ctrl-C, and so would all its child processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

HEAVY = bool(os.environ.get("CHUNKSINK_SOAK_HEAVY"))
"""Tests that take long for what they show do all of it in `make soak` alone."""

# How long an example takes depends on the machine.
settings.register_profile("unhurried", deadline=None, max_examples=100 if HEAVY else 25)
settings.load_profile("unhurried")

# Tests are about processes and engines, not about the disk. If there is enough memory, their files are in memory.
_MEMORY = Path("/dev/shm")
_ROOM = 8 * 2**30
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

ROOT = Path(__file__).resolve().parent.parent

Case = TypeVar("Case")


def examples(many: int) -> int:
    """The number of examples for a property in `make soak`; a tenth of it otherwise. Each run generates others."""
    return many if HEAVY else max(1, many // 10)


def sampled(cases: Iterable[Case], every: int = 3) -> list[Case]:
    """All of these cases in `make soak`, about every third one otherwise. Only for long lists."""
    return list(cases)[:: 1 if HEAVY else every]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two more than processors, because some tests always wait for an engine. With more workers, loading models and
    libraries more often costs more than it saves."""
    return (os.cpu_count() or 1) + 2


FIRST = ("embeddings", "conformance", "journey", "compute", "crash", "faults", "page")
"""Folders with the longest files: at the end of a run a worker would be left alone with one."""

TOGETHER = {
    "models": ("tests/embeddings/", "tests/rebuild/test_context.py"),
    "buckets": ("tests/chunkbus/test_bucket", "tests/chunkbus/test_storage", "tests/journey/test_bucket"),
    "databases": ("tests/conformance/", "tests/sinks/postgres/", "tests/crash/test_engine_steps"),
}
"""Files that one worker runs: else each would import torch, or start an engine that few tests use."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first."""
    items.sort(key=lambda item: next((n for n, name in enumerate(FIRST) if f"/{name}/" in item.nodeid), len(FIRST)))


class Files(LoadFileScheduling):
    """Gives workers whole files, or all files of a group."""

    def _split_scope(self, nodeid: str) -> str:
        groups = (group for group, files in TOGETHER.items() if nodeid.startswith(files))
        return next(groups, super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Files | None:
    return Files(config, log) if config.getvalue("dist") == "loadfile" else None


CHROMIUM_ARGUMENTS = [
    "--no-sandbox",  # in containers, where the user is root, Chromium's sandbox cannot start
    "--disable-gpu",
    # The other options allow no connection except to the page under test.
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def meilisearch_server() -> Iterator[MeilisearchServer]:
    """One real Meilisearch for all tests of this process. Each index needs a unique name."""
    need("meilisearch")
    with run_meilisearch() as server:
        yield server


@pytest.fixture(scope="session")
def chroma_server() -> Iterator[ChromaServer]:
    """One real Chroma server for all tests of this process. Each collection needs a unique name."""
    need("chroma")
    with run_chroma() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One real PostgreSQL for all tests of this process. Each test needs its own schema."""
    need("postgres")
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One real S3 server for all tests of this process. Each test needs its own prefix."""
    need("s3")
    with run_s3() as server:
        yield server


@pytest.fixture(scope="session")
def promtool() -> Path:
    """The path of the Prometheus program that checks metrics and rules."""
    return need("promtool")


@pytest.fixture
def bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty prefix, with the environment variables that clients need."""
    for name, value in s3_server.variables().items():
        monkeypatch.setenv(name, value)
    return f"s3://tests/{secrets.token_hex(8)}"


# Per module, not per session: Playwright's sync interface keeps an asyncio loop running in the thread, and
# other tests could not use `asyncio.run` as long as it lives.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium. Each test needs a new context."""
    program = need("browser")
    from playwright.sync_api import sync_playwright  # slow to import; few tests need it

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(program), args=CHROMIUM_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Optional real-world documents: CHUNKSINK_SHARED_DATA, or `shared/data` beside the checkout."""
    chosen = os.environ.get("CHUNKSINK_SHARED_DATA")
    folder = Path(chosen) if chosen else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the optional real-world test data is not here")
    return folder


def need(engine: str) -> Path:
    """The program of an engine. Without it, the test is skipped, or fails if the engine is required."""
    program = engines.find(engine)
    if program is not None:
        return program
    if engine in engines.required():
        pytest.fail(f"CHUNKSINK_REQUIRE names it, but {engines.missing(engine)}", pytrace=False)
    pytest.skip(engines.missing(engine))
