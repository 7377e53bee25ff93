"""A run killed during a Meilisearch swap: the swap happens once, whichever run comes next."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import meilisearch
import pytest

from chunksink.sinks.meilisearch import MeilisearchSink
from tests.conftest import HEAVY
from tests.engines.servers import MeilisearchServer
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.forking import FORKING
from tests.support.home import Home, sinks_with
from tests.support.meilisearch import SETTINGS
from tests.support.public_index import home_with, public_texts, texts

pytestmark = [pytest.mark.promise(2), pytest.mark.promise(5)]

CAT, DOG = source("docs/a.md", "a cat", "a mat"), source("docs/a.md", "a dog", version="2", at=FEBRUARY)
BIRD = source("docs/b.md", "a bird")
BUSY = 30_000
"""Documents that keep the queue busy until the process has long died."""

NEXT: dict[str, Callable[[Home], Any]] = {"rebuild": Home.rebuild, "sync": Home.sync}


def home_on(folder: Path, url: str, key: str, index: str) -> Home:
    return home_with(folder, lambda _home: MeilisearchSink(url, key, settings=SETTINGS, index=index))


def rebuild_and_die(folder: Path, url: str, key: str, index: str, busy: bool) -> None:
    """In a process of its own."""
    swap = meilisearch.Client.swap_indexes

    def last(client: meilisearch.Client, pairs: Any) -> None:
        if busy:
            client.index(f"{index}busy").add_documents([{"id": number, "text": "x"} for number in range(BUSY)])
        swap(client, pairs)
        os.kill(os.getpid(), signal.SIGKILL)

    meilisearch.Client.swap_indexes = last  # type: ignore[assignment,method-assign]
    home_on(folder, url, key, index).rebuild()


CASES = [(busy, then, withdrawn) for busy in (True, False) for then in NEXT for withdrawn in (False, True)]


@pytest.mark.parametrize(("busy", "then", "withdrawn"), CASES if HEAVY else [CASES[3], CASES[4]])
def test_next_run_after_a_killed_swap_ends_normally(
    busy: bool, then: str, withdrawn: bool, meilisearch_server: MeilisearchServer, tmp_path: Path
) -> None:
    server, index = meilisearch_server, f"k{uuid.uuid4().hex[:10]}"
    home = home_on(tmp_path, server.url, server.key, index)
    commit(home.root, "p1", [*CAT, *BIRD])
    home.rebuild()
    old = home.live()
    commit(home.root, "p1", [*DOG, *BIRD], at=FEBRUARY)
    arguments = (tmp_path, server.url, server.key, index, busy)
    process = FORKING.Process(target=rebuild_and_die, args=arguments)
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    client = meilisearch.Client(server.url, server.key)
    waiting = partial(client.get_tasks, {"types": ["indexSwap"], "statuses": ["enqueued", "processing"]})
    assert waiting().total == busy or not busy, "it was killed before the swap"
    assert home.live() == old, "the end of the swap was not reported"
    wanted = [DOG] if withdrawn else [DOG, BIRD]
    if withdrawn:
        commit(home.root, "p1", DOG, at=FEBRUARY)
    NEXT[then](home)
    assert waiting().total == 0
    swaps = client.get_tasks({"types": ["indexSwap"], "limit": 1000}).results
    assert sum(index in str(each.details) for each in swaps) == (3 if then == "rebuild" else 2), "no swap was repeated"
    for name in ("fts", "meilisearch"):
        assert home.contents()[name] == projected(*wanted), name
    assert public_texts(home) == texts(*wanted)
    assert home.verify(deep=True).ok
    again = home.sync()
    assert (again.chunks_written, again.chunks_deleted, sinks_with(again, "scanned")) == (0, 0, [])
