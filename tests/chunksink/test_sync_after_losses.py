"""Cache, records and engines can be lost, in every combination: the next plain `sync` brings all of it back."""

import shutil
from collections.abc import Callable, Iterable
from itertools import chain, combinations
from typing import Any

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Models, Shell
from tests.conftest import HEAVY
from tests.engines.servers import MeilisearchServer, without_leftovers
from tests.support.bus import source

pytestmark = pytest.mark.promise(1)

PARTS = {"cache": "vectors.db*", "records": "state.db*", "fts": "fts", "chroma": "chroma"}


def losses(*parts: str) -> list[tuple[str, ...]]:
    """Each alone, and all at once; in `make soak` every combination."""
    numbers = range(1, len(parts) + 1) if HEAVY else (1, len(parts))
    return list(chain.from_iterable(combinations(parts, number) for number in numbers))


OF_A_SERVER = [lost for lost in losses("cache", "records", "meilisearch", "chroma") if "meilisearch" in lost]


@pytest.mark.parametrize("lost", losses(*PARTS), ids="+".join)
def test_one_sync_brings_all_of_it_back(lost: tuple[str, ...], shell: Shell, models: Models) -> None:
    is_brought_back(shell, models, lost, lambda: lose_files(shell, lost))


@pytest.mark.parametrize("lost", OF_A_SERVER, ids="+".join)
def test_one_sync_brings_an_index_of_a_server_back(
    lost: tuple[str, ...], shell: Shell, models: Models, meilisearch_server: MeilisearchServer, public_index: Any
) -> None:
    def lose() -> None:
        with without_leftovers(meilisearch_server, public_index.uid):
            lose_files(shell, (part for part in lost if part != "meilisearch"))

    is_brought_back(shell, models, lost, lose)


def lose_files(shell: Shell, lost: Iterable[str]) -> None:
    for name in lost:
        for path in shell.home.glob(PARTS[name]):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def is_brought_back(shell: Shell, models: Models, lost: tuple[str, ...], lose: Callable[[], None]) -> None:
    for number in range(3):
        shell.commit(f"p{number}", source(f"docs/{number}.md", *(f"text {number} {part}" for part in range(3))))
    assert shell("sync").code == Exit.OK
    before = shell.digests("--deep")
    lose()
    models.asked()
    ended = shell("sync")
    assert ended.code == Exit.OK, ended
    computed = bool(models.asked())
    assert computed == ("cache" in lost and not {"records", "chroma", "meilisearch"}.isdisjoint(lost))
    # Of a cache that is lost nothing is left to compare vectors with, but where they had to be computed again.
    deep = ["--deep"] if computed or "cache" not in lost else []
    assert shell.digests(*deep) == before
    again = shell("sync", "--json").json
    assert again["chunks"] == {"written": 0, "deleted": 0}
    assert models.asked() == []
