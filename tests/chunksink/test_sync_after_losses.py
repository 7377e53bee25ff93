"""Cache, records and engines can be lost, in every combination: the next plain `sync` brings all of it back."""

from __future__ import annotations

import shutil
from itertools import chain, combinations

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Models, Shell
from tests.rebuild.support import source

pytestmark = pytest.mark.promise(1)

PARTS = {"cache": "vectors.db*", "records": "state.db*", "fts": "fts", "chroma": "chroma"}
LOSSES = list(chain.from_iterable(combinations(PARTS, number) for number in range(1, len(PARTS) + 1)))


@pytest.mark.parametrize("lost", LOSSES, ids="+".join)
def test_one_sync_brings_all_of_it_back(lost: tuple[str, ...], shell: Shell, models: Models) -> None:
    for number in range(3):
        shell.commit(f"p{number}", source(f"docs/{number}.md", *(f"text {number} {part}" for part in range(3))))
    assert shell("sync").code == Exit.OK
    before = shell.digests("--deep")
    for name in lost:
        for path in shell.home.glob(PARTS[name]):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    models.asked()
    ended = shell("sync")
    assert ended.code == Exit.OK, ended
    computed = bool(models.asked())
    assert computed == ("cache" in lost and not {"records", "chroma"}.isdisjoint(lost))
    # Of a cache that is lost nothing is left to compare vectors with, but where they had to be computed again.
    deep = ["--deep"] if computed or "cache" not in lost else []
    assert shell.digests(*deep) == before
    again = shell("sync", "--json").json
    assert again["chunks"] == {"written": 0, "deleted": 0}
    assert models.asked() == []
