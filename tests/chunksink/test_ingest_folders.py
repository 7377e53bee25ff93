"""`chunksink ingest`: which files and folders it takes, passes over, or refuses."""

import builtins
from typing import Any, cast

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell, write


@pytest.mark.parametrize(
    "arguments", [("",), ("docs", ""), ("docs", "--base", "nowhere"), ("docs", "--base", "docs/a.md")]
)
def test_paths_that_cannot_be_meant_are_refused_before_anything_is_begun(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    write(shell, "docs/a.md", "# A")
    refused = shell("ingest", *arguments)
    assert (refused.code, refused.out) == (Exit.USAGE, "")
    assert not shell.root.path.exists()
    assert not shell.home.exists()


def test_the_current_folder_can_be_ingested_though_its_bus_is_in_it(
    quick_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_HOME", "state")
    write(quick_shell, "a.md", "Old.")
    write(quick_shell, "gone.md", "Gone.")
    assert quick_shell("ingest", ".").code == Exit.OK
    write(quick_shell, "a.md", "New.")
    write(quick_shell, "b.md", "Another.")
    (quick_shell.folder / "gone.md").unlink()
    ended = quick_shell("ingest", ".", "--prune")
    here = quick_shell.folder.name
    assert (ended.code, ended.err) == (Exit.OK, f"left out: FOLDER_IS_OUTPUT 2 ({here}/chunks/, {here}/state/)\n")
    assert "2 files new or changed, 0 unchanged, 1 source removed; now 2 chunks of 2 sources\n" in ended.out
    assert quick_shell("ingest", ".").out.startswith("nothing to do: ")
    assert quick_shell("validate").code == Exit.OK


def test_what_cannot_be_read_is_told_where_it_is_named_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shell, "good.md", "Good.")
    write(shell, "bad.md", "Bad.")
    real = builtins.open

    def deny(path: Any, *more: Any, **said: Any) -> Any:
        if str(path).endswith("bad.md"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *more, **said)

    monkeypatch.setattr("os.access", lambda path, *_: not str(path).endswith("bad.md"))
    monkeypatch.setattr("builtins.open", deny)
    ended = shell("ingest", "good.md", "bad.md", "--jobs", "1")
    assert (ended.code, "1 file new or changed, 0 unchanged, 1 failure" in ended.out) == (Exit.INVALID_INPUT, True)
    assert "SOURCE_UNREADABLE" in ended.err


def test_files_of_other_kinds_are_counted_by_their_suffix(shell: Shell) -> None:
    for suffix, number in ((".log", 9), (".csv", 3), ("", 2), (".PY", 1), (".c", 1), (".7", 1)):
        for n in range(number):
            write(shell, f"docs/{n}/other{suffix}", "x")
    write(shell, "docs/.hidden", "x")
    write(shell, "docs/a.md", "# A")
    ended = shell("ingest", "docs", "docs/1")
    assert ended.code == Exit.OK
    assert ended.err == (
        "skipped 17 files of other kinds (.log 9, .csv 3, no suffix 2, .c 1, .py 1, others 1); "
        "--as text reads .log, no suffix here too; --include PATTERN reads any file as text\n"
    )
    told = shell("ingest", "docs", "--json").json["other_kinds"]
    assert told == {".log": 9, ".csv": 3, "no suffix": 2, ".c": 1, ".py": 1, "others": 1}
    assert list(told)[:3] == [".log", ".csv", "no suffix"]
    (shell.folder / "docs" / "0" / "other.7").unlink()
    assert "other.7" not in shell("ingest", "docs/a.md").err


def test_what_people_call_text_is_read_as_such(shell: Shell) -> None:
    names = ["README", "a.rst", "b.ADOC", "c.org", "d.log", "e.txt"]
    for name in (*names, "f.md", "g.csv", "h.1", ".hidden"):
        write(shell, f"docs/{name}", "Words.")
    assert shell("ingest", "docs", "--json").json["sources"] == 5
    told = shell("ingest", "docs", "--as", "text")
    assert told.err == (
        "skipped 3 files of other kinds (.csv 1, .md 1, others 1); --include PATTERN reads any file as text\n"
    )
    assert "2 files new or changed, 4 unchanged" in told.out
    sources = {attempt["source_uri"] for attempt in cast(Any, shell("ledger", "--json").json)}
    assert sources == {f"docs/{name}" for name in (*names, "f.md")}
    again = shell("ingest", "docs", "--prune", "--json").json
    assert (again["pruned"], again["documents"]) == (0, 7), "they are there"


def test_an_invalid_partition_is_refused_with_the_remedy(shell: Shell) -> None:
    for name in ("docs/a.md", "notes/b.md"):
        write(shell, name, f"# {name}")
        shell("ingest", name.partition("/")[0])
    chunks, manifest = shell.root.chunks_file("documents"), shell.root.manifest_file("documents")
    before = chunks.read_bytes()
    chunks.write_bytes(before[:-9])
    refused = shell("ingest", "docs")
    assert refused.code == Exit.INVALID_INPUT
    names = [str(path.relative_to(shell.folder)) for path in (manifest, chunks)]
    assert f"move {' and '.join(names)} away" in refused.err
    assert "move its files away" in shell("validate").err
    chunks.unlink()
    refused = shell("ingest", "docs")
    assert f"move {names[0]} away" in refused.err
    assert "move the manifest away" in shell("validate").err
    manifest.unlink()
    assert shell("ingest", "docs", "notes", "--json").json["documents"] == 2
    assert shell("validate").code == Exit.OK
