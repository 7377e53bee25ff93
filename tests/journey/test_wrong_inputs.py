"""Wrong input is reported with the documented exit code and changes nothing."""

from pathlib import Path

import pytest

from chunksink.command_line.exits import Exit
from tests.journey.support import chunksink, write
from tests.support.bus import source

NOTE = source("note.md", "A note that nobody has broken yet.")


def test_missing_chunks_and_a_broken_chunk_are_reported(tmp_path: Path) -> None:
    (tmp_path / "chunks").mkdir()
    empty = chunksink(tmp_path, "rebuild")
    assert (empty.code, "neither canonical/ nor manifest/" in empty.err) == (Exit.USAGE, True)
    write(tmp_path / "chunks", "2026-01", NOTE)
    file = tmp_path / "chunks" / "canonical" / "2026-01.jsonl"
    file.write_bytes(file.read_bytes().replace(b"broken yet", b"mended yet"))
    rebuilt = chunksink(tmp_path, "rebuild")
    assert (rebuilt.code, rebuilt.out) == (Exit.INVALID_INPUT, "")
    assert "INTEGRITY_VIOLATION:text_hash_mismatch 2026-01:1" in rebuilt.err
    assert "the index is unchanged" in rebuilt.err
    assert not {"fts", "chroma"} & {entry.name for entry in (tmp_path / ".chunksink").iterdir()}


def test_invalid_model_and_endpoint_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "chunks", "2026-01", NOTE)
    ended = chunksink(tmp_path, "rebuild", "--model", "./no/such/model")
    assert (ended.code, ended.err.splitlines()[-1]) == (Exit.USAGE, "Error: there is no model folder ./no/such/model")
    ended = chunksink(tmp_path, "sync", CHUNKSINK_ENDPOINT="127.0.0.1:1/v1", CHUNKSINK_MODEL="any")
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert "Error: the endpoint's URL must look like http://127.0.0.1:11434/v1, without user, " in ended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "x", "--mode", "magic"], "'magic' is not one of 'hybrid', 'keyword', 'semantic'"),
        (["serach", "x"], "there is no command 'serach'; did you mean search?"),
        (["rebuild-idx"], "there is no command 'rebuild-idx'; did you mean rebuild-index or rebuild?"),
        (["frobnicate"], "No such command 'frobnicate'"),
    ],
)
def test_invalid_options_are_reported(tmp_path: Path, arguments: list[str], message: str) -> None:
    ended = chunksink(tmp_path, *arguments)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert message.replace("'", "") in ended.err.replace("'", "")  # click writes none before 8.4
    assert list(tmp_path.iterdir()) == []


def test_impossible_places_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "chunks", "2026-01", NOTE)
    (tmp_path / "file").write_text("x")
    ended = chunksink(tmp_path, "sync", "--home", "file")
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert "Error: File exists: file;" in ended.err
    assert "a file is where a folder must be: move it away, or name another folder" in ended.err
    assert chunksink(tmp_path, "sync", CHUNKSINK_SINKS="fts").code == Exit.OK
    ended = chunksink(tmp_path, "prove", "no/such/proof.json", CHUNKSINK_SINKS="fts")
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert ended.err.endswith("proof.json; make its folder first, or name another one\n")


def test_argument_that_is_no_text_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "chunks", "2026-01", NOTE)
    assert chunksink(tmp_path, "sync", CHUNKSINK_SINKS="fts").code == Exit.OK
    for command in (["why"], ["retire-partition"], ["search", "x", "--tenant"]):
        ended = chunksink(tmp_path, *command, "caf\udce9", CHUNKSINK_SINKS="fts")
        message = "Error: the argument caf\\udce9 is not in UTF-8: write it in UTF-8\n"
        assert (ended.code, ended.out, ended.err) == (Exit.USAGE, "", message)
