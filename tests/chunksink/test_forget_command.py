"""`chunksink forget`: a source is gone from everything that is ours, and what is out of reach is said."""

from __future__ import annotations

import pytest

from chunkbus.canonical import text_hash
from chunkbus.manifest import Tombstone
from chunksink.exits import Exit
from embeddings.cache import VectorCache
from embeddings.references import raw_hash
from rebuild.state import State
from sinks.projection import project_family
from tests.chunksink.shell import Models, Shell
from tests.rebuild.support import FEBRUARY, parent_of, source

SECRET = source("secret.md", "the moon is made of cheese", "shared by both")
OTHER = source("other.md", "nothing to hide", "shared by both")
GONE = [Tombstone(parent_id=parent_of("secret.md"), at=FEBRUARY)]


@pytest.fixture
def twice(shell: Shell) -> Shell:
    """Two generations, both with the secret."""
    shell.commit("p1", SECRET)
    shell.commit("p2", OTHER)
    for _ in range(2):
        assert shell("rebuild").code == Exit.OK
    return shell


def builds(shell: Shell) -> list[tuple[str, str]]:
    with State.existing(shell.home) as state:
        return [(sink, build) for each in state.generations() for sink, build in each.builds.items()]


def cached(shell: Shell, *texts: str) -> list[str]:
    """Those of these texts that have a vector."""
    hashes = {raw_hash(text_hash(text)): text for text in texts}
    with VectorCache.open(shell.home / "vectors.db") as cache:
        found = cache.lookup(shell.live().model_fingerprint, list(hashes), dimension=8)
    return [list(hashes.values())[position] for position in sorted(found.positions)]


def traces(shell: Shell, *words: str) -> set[str]:
    """Files of the home in which one of these words stands, but for Chroma's, which keeps a log."""
    return {
        str(file.relative_to(shell.home))
        for file in shell.home.rglob("*")
        if file.is_file() and not file.is_relative_to(shell.home / "chroma")
        if any(word.encode() in file.read_bytes() for word in words)
    }


def test_it_is_gone_from_every_build_and_every_record(twice: Shell) -> None:
    assert len(builds(twice)) == 4
    twice.cut_off("p1")  # so that the records of runs name it
    twice("sync")
    twice.commit("p1", at=FEBRUARY)
    assert twice("sync").code == Exit.OK
    ended = twice("forget", "secret.md", "--json")
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert sum(ended.json["documents"].values()) == 4  # of the previous generation; the live one was synced
    assert ended.json["vectors"] == 1
    assert "chroma utils vacuum" in ended.json["out_of_reach"]
    for sink, build in builds(twice):
        assert twice.texts(sink, build) == ["nothing to hide", "shared by both"]
    ids = [document.id for document in project_family(SECRET)]
    assert traces(twice, "cheese", "secret.md", parent_of("secret.md"), *ids) == set()
    assert twice("runs", "--json").code == Exit.OK
    for run in twice("runs", "--json").json:
        assert twice("runs", run["id"]).code == Exit.OK
    assert twice("verify").code == Exit.OK
    assert "1 source unchanged" in twice("sync").out


def test_while_the_bus_still_holds_it_it_comes_back(twice: Shell, models: Models) -> None:
    models.asked()
    ended = twice("forget", "secret.md")
    assert ended.code == Exit.INVALID_INPUT
    assert ended.out.count(": 2 documents erased\n") == 4
    assert "1 vector and " in ended.out
    assert "Out of reach are the bus itself" in ended.out
    assert ended.err == "the bus still holds it, in p1: the next sync brings it back\n"
    assert twice.texts() == ["nothing to hide", "shared by both"]
    assert "1 source added" in twice("sync").out
    assert models.asked() == ["the moon is made of cheese"]
    assert len(twice.texts()) == len(twice.texts("chroma")) == 4


def test_a_text_that_another_source_shares_keeps_its_vector(twice: Shell) -> None:
    assert twice("forget", "secret.md").code == Exit.INVALID_INPUT
    texts = ["the moon is made of cheese", "shared by both", "nothing to hide"]
    assert cached(twice, *texts) == ["shared by both", "nothing to hide"]
    assert twice("verify", "--deep").code == Exit.DRIFT  # the bus says that it should be there
    twice.commit("p3", at=FEBRUARY, tombstones=GONE)
    assert twice("verify", "--deep").code == Exit.OK


@pytest.mark.parametrize("name", ["secret.md", parent_of("secret.md"), "secret.md@1"])
def test_it_is_known_by_its_address_its_parent_and_its_document(name: str, twice: Shell) -> None:
    twice.commit("p3", at=FEBRUARY, tombstones=GONE)
    ended = twice("forget", name)
    assert ended.code == Exit.INVALID_INPUT  # withdrawn, but the chunks are still there
    assert "in p1: " in ended.err
    assert twice.texts() == ["nothing to hide", "shared by both"]
    twice("sync")
    assert twice.texts() == ["nothing to hide", "shared by both"]


@pytest.mark.parametrize("name", ["nobody.md", "", "secret", "%"])
def test_one_that_nobody_knows(name: str, twice: Shell) -> None:
    ended = twice("forget", name)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert f"no source {name!r} is known here" in ended.err
    assert len(twice.texts()) == 4


def test_forgotten_twice(twice: Shell) -> None:
    twice.commit("p1", at=FEBRUARY)
    assert twice("sync").code == Exit.OK
    assert twice("forget", "secret.md").code == Exit.OK
    assert twice("forget", "secret.md").code == Exit.USAGE
    assert twice.texts() == ["nothing to hide", "shared by both"]
