"""`chunksink.errors`: one tree, exported and drawn; and what a report looks like when it is printed."""

import inspect
from importlib import import_module

import pytest

import chunksink
from chunksink import errors
from chunksink.errors import ChunksinkError
from tests.chunksink.shell import Shell, write

MODULES = [f"chunksink.{name}.errors" for name in ("chunkbus", "embeddings", "ingest", "rebuild", "search", "sinks")]


@pytest.mark.parametrize("module", [*MODULES, "chunksink.settings.config"])
def test_every_error_is_a_chunksink_error(module: str) -> None:
    found = [one for _, one in inspect.getmembers(import_module(module), inspect.isclass) if issubclass(one, Exception)]
    own = [one for one in found if one.__module__ == module]
    assert own and all(issubclass(one, ChunksinkError) for one in own)


EXPORTED = {name: one for name, one in vars(errors).items() if not name.startswith("_")}


def test_the_docstring_draws_every_exported_error() -> None:
    assert errors.__doc__ is not None
    assert [name for name in EXPORTED if name not in errors.__doc__] == []
    assert [name for name, error in EXPORTED.items() if not issubclass(error, ChunksinkError)] == []
    assert len(EXPORTED) > 40


def test_reports_hits_and_answers_print_as_one_short_line(quick_shell: Shell) -> None:
    write(quick_shell, "docs/a.md", "# Otters\n\n" + "An otter holds hands. " * 40)
    with chunksink.open() as index:
        ingested, synced = index.ingest("docs"), index.sync()
        answer = index.search("otter", mode="keyword")
        printed = [
            repr(one) for one in (ingested, synced, index.plan(), index.verify(), index.status(), answer, answer[0])
        ]
    assert [line for line in printed if "\n" in line or len(line) > 200 or not line.startswith("<")] == []
