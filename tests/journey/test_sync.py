"""An index that is kept true for a while, as a script would do it: each command a process, its exit code the answer."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.exits import Exit
from tests.embeddings.endpoint import serve
from tests.journey.support import chunksink, document, modules_of, write

BEES = document("bees.md", "Hives stand on the roof. In June the honey is spun and shared among all members.")
NIGHT = document("night.md", "After ten in the evening machines stay off, for the neighbours want to sleep.")
QUIET = document("night.md", "After nine in the evening machines stay off.", version="2", at="2026-02-01T00:00:00Z")


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With an endpoint, for a model takes seconds to load; what the first sync said is kept beside it."""
    folder = tmp_path_factory.mktemp("synced")
    with serve() as endpoint:
        (folder / "chunksink.toml").write_text(f'endpoint = "{endpoint.url}"\nmodel = "hash-model"\n')
        yield first_sync(folder)


def first_sync(folder: Path) -> Path:
    write(folder / "chunks", "p1", BEES)
    write(folder / "chunks", "p2", NIGHT)
    ended = chunksink(folder, "sync", "--json")
    assert ended.code == Exit.OK
    (folder / "first.json").write_text(ended.out)
    return folder


@pytest.fixture
def folder(synced: Path, tmp_path: Path) -> Path:
    """A copy for one test."""
    return Path(shutil.copytree(synced, tmp_path / "copy"))


def test_from_the_first_sync_to_a_proof(folder: Path) -> None:
    first = json.loads((folder / "first.json").read_text())
    assert (first["families"]["added"], first["embeddings"]["computed"], list(first["sinks"])) == (
        2,
        2,
        ["fts", "chroma"],
    )
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
    assert chunksink(folder, "prove", "proof.json", "--check").out == "proof.json is what is here\n"


def test_a_sync_that_finds_nothing_to_do_leaves_the_model_alone(folder: Path) -> None:
    """And the engines' files: it may run every minute."""
    assert modules_of(folder, "sync") == []


def test_two_machines_prove_the_same(folder: Path, tmp_path: Path) -> None:
    """The other one has only the chunks, and makes its index at another place in another way."""
    other = tmp_path / "other"
    shutil.copytree(folder / "chunks", other / "bus")
    shutil.copy(folder / "chunksink.toml", other)
    flags = ["--chunks", "bus", "--home", "index"]
    assert chunksink(other, "rebuild", *flags).code == Exit.OK
    assert chunksink(other, "prove", "proof.json", *flags).code == Exit.OK
    assert chunksink(folder, "prove", "proof.json").code == Exit.OK
    assert (folder / "proof.json").read_bytes() == (other / "proof.json").read_bytes()
