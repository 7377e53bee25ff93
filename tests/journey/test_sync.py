"""An index synced for a while by a script: each command is a process judged by its exit code."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.command_line.exits import Exit
from tests.embeddings.endpoint import serve
from tests.journey.support import chunksink, modules_of, write
from tests.support.bus import FEBRUARY, source

BEES = source("bees.md", "Hives stand on the roof. In June the honey is spun and shared among all members.")
NIGHT = source("night.md", "After ten in the evening machines stay off, for the neighbours want to sleep.")
QUIET = source("night.md", "After nine in the evening machines stay off.", version="2", at=FEBRUARY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An endpoint computes the vectors, because a model takes seconds to load."""
    folder = tmp_path_factory.mktemp("kept-true")
    with serve() as endpoint:
        (folder / "chunksink.toml").write_text(f'endpoint = "{endpoint.url}"\nmodel = "hash-model"\n')
        write(folder / "chunks", "p1", BEES)
        write(folder / "chunks", "p2", NIGHT)
        first = chunksink(folder, "sync", "--json")
        assert (first.code, first.json["families"]["added"], first.json["embeddings"]["computed"]) == (Exit.OK, 2, 2)
        yield folder


def test_index_from_first_sync_to_proof_stays_correct(folder: Path) -> None:
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
    assert (ended.code, ended.out.splitlines()[-1]) == (Exit.OK, "proof.json matches what the engines contain")


def test_sync_without_changes_does_not_load_the_model(folder: Path) -> None:
    """Nor does it open the engines: it may run every minute."""
    assert modules_of(folder, ["sync"]) == []


def test_no_command_imports_torch_on_a_processor(tmp_path: Path) -> None:
    """With the default model. With a GPU, torch is imported to detect it."""
    write(tmp_path / "chunks", "p1", BEES)
    loaded = modules_of(tmp_path, ["rebuild"], ["search", "insects on top of the house"])
    if loaded:
        import torch  # takes seconds

        assert torch.cuda.is_available() or torch.backends.mps.is_available()
    assert loaded in ([], ["torch"])
