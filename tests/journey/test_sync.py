"""An index that is kept true for a while, as a script would do it: each command a process, its exit code the answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.exits import Exit
from tests.embeddings.endpoint import serve
from tests.journey.support import chunksink, document, modules_of, write

BEES = document("bees.md", "Hives stand on the roof. In June the honey is spun and shared among all members.")
NIGHT = document("night.md", "After ten in the evening machines stay off, for the neighbours want to sleep.")
QUIET = document("night.md", "After nine in the evening machines stay off.", version="2", at="2026-02-01T00:00:00Z")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """With an endpoint, for a model takes seconds to load."""
    with serve() as endpoint:
        (tmp_path / "chunksink.toml").write_text(f'endpoint = "{endpoint.url}"\nmodel = "hash-model"\n')
        write(tmp_path / "chunks", "p1", BEES)
        write(tmp_path / "chunks", "p2", NIGHT)
        first = chunksink(tmp_path, "sync", "--json")
        assert (first.code, first.json["families"]["added"], first.json["embeddings"]["computed"]) == (Exit.OK, 2, 2)
        yield tmp_path


def test_from_the_first_sync_to_a_proof(folder: Path) -> None:
    write(folder / "chunks", "p2", QUIET)
    plan = chunksink(folder, "plan", "--json")
    assert (plan.code, plan.json["families"]["changed"], plan.json["embeddings"]["missing"]) == (Exit.OK, 1, 1)
    assert chunksink(folder, "verify").code == Exit.DRIFT
    ended = chunksink(folder, "sync", "--plan", plan.json["hash"])
    assert ended.code == Exit.OK
    assert "synced fts, chroma: 1 source changed, 1 source unchanged (1 chunk written)" in ended.out
    found = chunksink(folder, "search", "machines off at nine", "--mode", "keyword", "--json")
    assert [hit["text"] for hit in found.json["hits"]] == [QUIET[0]["text"]]
    assert chunksink(folder, "verify", "--deep").code == Exit.OK
    assert chunksink(folder, "prove", "proof.json").code == Exit.OK
    ended = chunksink(folder, "prove", "proof.json", "--check")
    assert (ended.code, ended.out.splitlines()[-1]) == (Exit.OK, "proof.json matches what the engines hold")


def test_a_sync_that_finds_nothing_to_do_leaves_the_model_alone(folder: Path) -> None:
    """And the engines' files: it may run every minute."""
    assert modules_of(folder, "sync") == []
