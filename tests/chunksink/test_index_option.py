"""`--index NAME` chooses one of several indexes, for every command that has a home."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.support.bus import commit, source
from tests.support.commands import commands

FILE = """\
sinks = ["fts"]
[index.books]
chunks = "books"
[index.notes]
chunks = "notes"
home = "elsewhere"
"""

WITH_HOME = [
    (name, command) for name, command in commands() if any(parameter.name == "home" for parameter in command.params)
]


@pytest.fixture
def library(shell: Shell) -> Shell:
    Path("chunksink.toml").write_text(FILE)
    for name in ("books", "notes"):
        commit(FolderRoot(Path(name)), "p1", source(f"{name}.md", name))
    return shell


def operands(command: click.Command) -> Iterator[str]:
    """A value for each required argument and option."""
    for parameter in command.params:
        if parameter.required:
            yield from [] if isinstance(parameter, click.Argument) else parameter.opts[:1]
            yield "chunksink.toml"


def test_most_commands_have_the_index_option() -> None:
    assert {"sync", "rebuild", "plan", "verify", "search", "cache stats", "settings diff"} <= dict(WITH_HOME).keys()


@pytest.mark.parametrize(("name", "command"), WITH_HOME, ids=[name for name, _ in WITH_HOME])
def test_unknown_index_is_an_error_in_every_command(name: str, command: click.Command, library: Shell) -> None:
    """The error comes before any change. `doctor` reports it as a check."""
    ended = library(*name.split(), *operands(command), "--index", "films")
    assert ended.code == (Exit.ENGINE if name == "doctor" else Exit.USAGE)
    assert "chunksink.toml has no [index.films]; it has: books, notes" in ended.out + ended.err
    assert not list(library.folder.glob("**/state.db"))


def test_index_option_overrides_the_environment_and_home_overrides_it(
    library: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_INDEX", "notes")
    assert library("sync", "--index", "books").code == Exit.OK
    assert not Path("elsewhere").exists()
    assert library("sync").code == Exit.OK
    assert Path("elsewhere/state.db").exists()
    assert library("sync", "--index", "books", "--home", "flagged").code == Exit.OK
    assert Path("flagged/books/state.db").exists()


def test_subcommand_accepts_the_index_option_before_and_after_its_name(library: Shell) -> None:
    assert library("sync", "--index", "books").code == Exit.OK
    for arguments in (
        ["dead-letters", "--index", "books", "retry"],
        ["dead-letters", "retry", "--index", "books"],
        ["dead-letters", "--index", "notes", "retry", "--index", "books"],
    ):
        assert library(*arguments).code == Exit.OK
    assert library("dead-letters", "retry", "--index", "notes").code == Exit.USAGE


def test_missing_index_names_the_command_that_builds_it(library: Shell) -> None:
    ended = library("search", "x", "--index", "books", "--config", "chunksink.toml")
    assert (ended.code, "`chunksink sync --index books --config chunksink.toml`" in ended.err) == (Exit.USAGE, True)
    assert library("sync", "--index", "books", "--config", "chunksink.toml").code == Exit.OK


def test_sink_option_when_unknown_names_the_file(library: Shell) -> None:
    with Path("chunksink.toml").open("a") as file:
        file.write("[sink.fts]\nfoldr = 'x'\n")
    ended = library("sync", "--index", "books")
    assert (ended.code, "chunksink.toml: [sink.fts]: " in ended.err, "folder?" in ended.err) == (Exit.USAGE, True, True)


def test_default_names_of_an_index_are_no_options_of_unused_sinks(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHUNKSINK_SINKS", raising=False)
    Path("chunksink.toml").write_text('[index.acme]\nchunks = "chunks"\n', encoding="utf-8")
    shell.commit("p1", source("a.md", "cat"))
    assert (shell("sync", "--index", "acme").code, shell("status", "--index", "acme").err) == (Exit.OK, "")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_INDEX", "a")
    assert "meilisearch has options, but is not used" in shell("status", "--index", "acme").err
