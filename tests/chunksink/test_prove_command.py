"""`chunksink prove` writes a file that another machine can reproduce, and names differences from a given file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chunksink.command_line.cli import run
from chunksink.command_line.exits import Exit
from chunksink.rebuild import verify
from tests.chunksink.shell import Shell
from tests.support.bus import FEBRUARY, source

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


@pytest.fixture
def synced(shell: Shell) -> Shell:
    return shell.begin("proved", "sync", p1=[A], p2=[B])


def test_proof_contains_partitions_model_and_digests(synced: Shell) -> None:
    ended = synced("prove", "proof.json")
    assert (ended.code, ended.err) == (Exit.OK, "")
    proof = json.loads(Path("proof.json").read_text())
    assert not any("recall" in sink for sink in proof["sinks"].values()), "two builds of one bus may differ in it"
    assert {key: partition["chunks"] for key, partition in proof["partitions"].items()} == {"p1": 2, "p2": 1}
    assert proof["model"]["fingerprint"] == synced.live().model_fingerprint
    assert proof["settings"] is None
    verified = synced("verify", "--json").json["sinks"]
    assert {name: sink["digest"] for name, sink in proof["sinks"].items()} == {
        name: sink["digest"] for name, sink in verified.items()
    }
    assert (proof["sinks"]["fts"]["families"], proof["sinks"]["fts"]["chunks"]) == (2, 3)


def test_two_homes_with_the_same_chunks_write_the_same_proof(synced: Shell, tmp_path: Path) -> None:
    """The second home is built later, in another place, by a rebuild from a copy of the chunks."""
    shutil.copytree("chunks", tmp_path / "elsewhere" / "copy")
    flags = ["--chunks", "elsewhere/copy", "--home", "elsewhere/home"]
    assert synced("rebuild", *flags).code == Exit.OK
    assert synced("prove", "here.json").code == synced("prove", "there.json", "--deep", *flags).code == Exit.OK
    assert Path("here.json").read_bytes() == Path("there.json").read_bytes()
    assert synced("prove", "here.json", "--check", *flags).code == Exit.OK


@pytest.mark.usefixtures("public_index")
def test_proof_contains_a_hash_of_the_index_settings(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash does not depend on the order of the file."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")

    def settings_hash(**settings: object) -> str:
        Path("meilisearch-settings.json").write_text(json.dumps(settings))
        assert shell("sync").code == Exit.OK
        assert shell("prove", "proof.json").code == Exit.OK
        return str(json.loads(Path("proof.json").read_text())["settings"])

    shell.commit("p1", A)
    plain = settings_hash(stopWords=["the"], synonyms={"boat": ["ship"]})
    assert settings_hash(synonyms={"boat": ["ship"]}, stopWords=["the"]) == plain
    Path("meilisearch-settings.json").write_text(json.dumps({"stopWords": ["a"]}))
    assert shell("sync").code == Exit.OK
    checked = shell("prove", "proof.json", "--check")
    assert (checked.code, "settings" in checked.err) == (Exit.DRIFT, True)


@pytest.mark.promise(1)
@pytest.mark.parametrize("commands", [[], [["sync"]]], ids=["committed", "committed and synced"])
def test_chunks_committed_during_a_proof_are_not_mixed_in(
    commands: list[list[str]], synced: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksums belong to the chunks with which the engines were compared."""

    before = pair(synced, "before.json")

    def edit() -> None:
        synced.commit("p2", source("b.md", "a ship", version="2"), at=FEBRUARY)
        for command in commands:
            assert run(command) == Exit.OK

    once_compared(edit, monkeypatch)
    mixed = pair(synced, "meanwhile.json")
    assert synced("sync").code == Exit.OK
    after = pair(synced, "after.json")
    assert before[0] != after[0]
    assert mixed == (after if commands else before)


@pytest.mark.promise(1)
def test_partition_restored_during_a_proof_is_compared(synced: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is missing, removals from other partitions are withheld. That is no difference."""
    synced.commit("p1", A, source("c.md", "a cow"))
    assert synced("sync").code == Exit.OK
    files = {file: file.read_bytes() for file in (synced.root.manifest_file("p2"), synced.root.chunks_file("p2"))}
    synced.remove("p2")
    synced.commit("p1", A)
    assert synced("sync").code == Exit.INVALID_INPUT
    assert "a cow" in synced.texts()

    def restore() -> None:
        for file, held in files.items():
            file.write_bytes(held)
        assert run(["sync"]) == Exit.OK

    once_compared(restore, monkeypatch)
    assert pair(synced, "meanwhile.json") == pair(synced, "after.json")
    assert "a cow" not in synced.texts()


def pair(shell: Shell, file: str) -> tuple[str, str]:
    """The checksum of partition p2 and the digest of fts, from a new proof."""
    ended = shell("prove", file)
    assert ended.code == Exit.OK, ended
    proof = json.loads(Path(file).read_text())
    return proof["partitions"]["p2"]["sha256"], proof["sinks"]["fts"]["digest"]


def once_compared(do: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Call `do` once, after the first engine was compared."""
    compared, left = verify._compared, [do]

    def meanwhile(*arguments: Any) -> Any:
        found = compared(*arguments)
        while left:
            left.pop()()
        return found

    monkeypatch.setattr(verify, "_compared", meanwhile)


def test_check_after_a_changed_chunk_names_the_differences(synced: Shell) -> None:
    assert synced("prove", "proof.json").code == Exit.OK
    before = Path("proof.json").read_bytes()
    synced.commit("p2", source("b.md", "a ship", version="2"), at=FEBRUARY)
    assert synced("sync").code == Exit.OK
    ended = synced("prove", "proof.json", "--check")
    assert ended.code == Exit.DRIFT
    places = [line.split(":")[0] for line in ended.err.splitlines()]
    assert places == ["partitions.p2.sha256", "sinks.chroma.digest", "sinks.fts.digest"]
    assert Path("proof.json").read_bytes() == before


def test_index_that_differs_from_the_chunks_is_not_proved(synced: Shell) -> None:
    synced.commit("p3", source("c.md", "a cow"))
    ended = synced("prove", "proof.json")
    assert (ended.code, ended.out) == (Exit.DRIFT, "")
    assert not Path("proof.json").exists()


@pytest.mark.parametrize("flags", [[], ["--check"]])
def test_prove_when_an_engine_is_unreachable_has_the_engine_exit_code(
    flags: list[str], synced: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert synced("prove", "proof.json").code == Exit.OK
    monkeypatch.setenv("CHUNKSINK_SINK_CHROMA_URL", "http://127.0.0.1:9")
    ended = synced("prove", "proof.json", *flags)
    assert (ended.code, ended.out) == (Exit.ENGINE, "")
    assert "http://127.0.0.1:9" in ended.err


@pytest.mark.parametrize("content", ["no json", "{}"])
def test_check_of_a_file_that_is_no_proof_is_a_usage_error(content: str, synced: Shell) -> None:
    Path("proof.json").write_text(content)
    assert synced("prove", "proof.json", "--check").code == Exit.USAGE


@pytest.mark.parametrize("harm", [Shell.remove, Shell.cut_off], ids=["missing", "cut off"])
def test_prove_when_chunks_are_held_is_refused(harm: Callable[[Shell, str], None], synced: Shell) -> None:
    """The index is correct, but could not be reproduced from these chunks."""
    harm(synced, "p2")
    verified = synced("verify")
    assert (verified.code, verified.out.count("matches the chunks")) == (Exit.INVALID_INPUT, 2)
    ended = synced("prove", "proof.json")
    assert (ended.code, ended.out) == (Exit.INVALID_INPUT, "")
    assert "p2" in ended.err
    assert not Path("proof.json").exists()
