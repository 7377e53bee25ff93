"""`chunksink dead-letters` lists refused documents and marks them for another attempt."""

import json
from typing import Any

import pytest

from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.support.bus import commit, parent_of, source
from tests.support.home import Home, PoisonedEncoder
from tests.support.local_engines import fts, memory


@pytest.fixture
def home(shell: Shell) -> Home:
    """Each of two sources has a document without a vector, which the vector store refuses."""
    home = Home(shell.home, shell.root, fts, memory())
    home.encoder = PoisonedEncoder(dimension=8)
    commit(home.root, "p1", [*source("a.md", "a cat", "a poison"), *source("b.md", "a poison, too", "a boat")])
    home.rebuild()
    return home


def letters(shell: Shell, *more: str) -> list[dict[str, Any]]:
    ended = shell("dead-letters", "--json", *more)
    found: list[dict[str, Any]] = json.loads(ended.out)
    assert ended.code == (Exit.REFUSED if found else Exit.OK)
    return found


@pytest.mark.usefixtures("home")
def test_refused_documents_are_listed_with_source_and_reason(shell: Shell) -> None:
    found = letters(shell)
    assert {(one["sink"], one["source"], one["family"]) for one in found} == {
        ("memory", name, parent_of(name)) for name in ("a.md", "b.md")
    }
    assert all(one["reason"].startswith("its text has no vector: ") and one["at"] for one in found)


@pytest.mark.usefixtures("home")
def test_list_with_sink_and_limit_is_restricted(shell: Shell) -> None:
    assert letters(shell, "--sink", "fts") == []
    assert len(letters(shell, "--limit", "1")) == 1
    assert "1 of 2" in shell("dead-letters", "--limit", "1").err
    unknown = shell("dead-letters", "--sink", "nope")
    assert (unknown.code, "fts, memory" in unknown.err) == (Exit.USAGE, True)
    nothing = shell("dead-letters", "--sink", "fts", "retry")
    assert nothing.code == Exit.OK


@pytest.mark.usefixtures("home")
def test_retry_names_the_sync_of_the_same_home(shell: Shell) -> None:
    ended = shell("dead-letters", "--home", str(shell.home), "retry")
    assert f"`chunksink sync --home {shell.home}`" in ended.out


def test_retried_document_when_accepted_is_not_listed(home: Home, shell: Shell) -> None:
    home.encoder = Home(home.folder, home.root).encoder  # has a vector for every document
    assert shell("dead-letters", "retry").code == Exit.OK
    home.sync()
    assert letters(shell) == []
    assert len(home.contents()["memory"]) == 4
