"""`chunksink prove`: a file that another machine can make again, and a comparison that tells what differs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chunksink.cli import run
from chunksink.exits import Exit
from chunksink.rebuild import verify
from tests.chunksink.shell import Shell
from tests.support.bus import FEBRUARY, source

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


@pytest.fixture
def synced(shell: Shell) -> Shell:
    return shell.begin("proved", "sync", p1=[A], p2=[B])


def test_what_is_in_it(synced: Shell) -> None:
    ended = synced("prove", "proof.json")
    recall, proved = ended.out.splitlines()
    assert (ended.code, proved, ended.err) == (Exit.OK, "proof.json proves fts, chroma", "")
    assert recall.startswith("chroma finds 100.0% ")
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


def test_two_homes_make_the_same_file(synced: Shell, tmp_path: Path) -> None:
    """The second one is made later, elsewhere, by a rebuild, from a copy of the chunks."""
    shutil.copytree("chunks", tmp_path / "elsewhere" / "copy")
    flags = ["--chunks", "elsewhere/copy", "--home", "elsewhere/home"]
    assert synced("rebuild", *flags).code == Exit.OK
    assert synced("prove", "here.json").code == synced("prove", "there.json", "--deep", *flags).code == Exit.OK
    assert Path("here.json").read_bytes() == Path("there.json").read_bytes()
    assert synced("prove", "here.json", "--check", *flags).out.endswith("\nhere.json matches what the engines hold\n")


@pytest.mark.usefixtures("public_index")
def test_the_settings_of_the_engine_are_proved(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the file, in whatever order it says them."""
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
def test_what_is_committed_meanwhile_is_not_mixed_in(
    commands: list[list[str]], synced: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksums are of the chunks with which the engines were compared."""

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
def test_a_partition_that_comes_back_meanwhile_is_compared(synced: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is missing, what another one does not say any more stays in the engines, and is no fault of theirs."""
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
    """Of what is proved: the checksum of a partition, and what the keyword engine holds."""
    ended = shell("prove", file)
    assert ended.code == Exit.OK, ended
    proof = json.loads(Path(file).read_text())
    return proof["partitions"]["p2"]["sha256"], proof["sinks"]["fts"]["digest"]


def once_compared(do: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """This happens when the first engine has been compared, and never again."""
    compared, left = verify._compared, [do]

    def meanwhile(*arguments: Any) -> Any:
        found = compared(*arguments)
        while left:
            left.pop()()
        return found

    monkeypatch.setattr(verify, "_compared", meanwhile)


def test_a_changed_chunk_is_told(synced: Shell) -> None:
    assert synced("prove", "proof.json").code == Exit.OK
    before = Path("proof.json").read_bytes()
    synced.commit("p2", source("b.md", "a ship", version="2"), at=FEBRUARY)
    assert synced("sync").code == Exit.OK
    ended = synced("prove", "proof.json", "--check")
    assert (ended.code, ended.out.splitlines()[-1]) == (Exit.DRIFT, "proof.json does not match what the engines hold")
    places = [line.split(":")[0] for line in ended.err.splitlines()]
    assert places == ["partitions.p2.sha256", "sinks.chroma.digest", "sinks.fts.digest"]
    assert Path("proof.json").read_bytes() == before


def test_an_index_that_is_not_what_the_chunks_say_is_not_proved(synced: Shell) -> None:
    synced.commit("p3", source("c.md", "a cow"))
    ended = synced("prove", "proof.json")
    assert (ended.code, ended.out) == (Exit.DRIFT, "")
    assert "nothing to prove: see `chunksink verify`" in ended.err
    assert not Path("proof.json").exists()


@pytest.mark.parametrize("flags", [[], ["--check"]])
def test_an_engine_that_cannot_be_asked_is_no_drift(
    flags: list[str], synced: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert synced("prove", "proof.json").code == Exit.OK
    monkeypatch.setenv("CHUNKSINK_SINK_CHROMA_URL", "http://127.0.0.1:9")
    ended = synced("prove", "proof.json", *flags)
    assert (ended.code, ended.out) == (Exit.ENGINE, "")
    assert "http://127.0.0.1:9" in ended.err


@pytest.mark.parametrize(("content", "told"), [("no json", "cannot be read as a proof"), ("{}", "is no proof")])
def test_a_file_that_is_no_proof(content: str, told: str, synced: Shell) -> None:
    Path("proof.json").write_text(content)
    ended = synced("prove", "proof.json", "--check")
    assert (ended.code, told in ended.err) == (Exit.USAGE, True)


@pytest.mark.parametrize("harm", [Shell.remove, Shell.cut_off], ids=["missing", "cut off"])
def test_held_chunks_are_not_proved(harm: Callable[[Shell, str], None], synced: Shell) -> None:
    """They are in the index as they should be, but nobody could make it again from what is here."""
    harm(synced, "p2")
    verified = synced("verify")
    assert (verified.code, verified.out.count("matches the chunks")) == (Exit.INVALID_INPUT, 2)
    ended = synced("prove", "proof.json")
    assert (ended.code, ended.out) == (Exit.INVALID_INPUT, "")
    assert "p2" in ended.err
    assert not Path("proof.json").exists()
