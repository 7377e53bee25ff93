"""Installed packages and caches among the sources are nobody's documents."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.producers.bench import Bench

TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a tool\n"
FILLED = {
    "web/node_modules/left-pad/README.md": "# left-pad",
    "web/env/pyvenv.cfg": "home = /usr/bin",
    "web/env/lib/site-packages/some/notes.md": "# Some",
    "target/CACHEDIR.TAG": TAG,
    "target/doc/index.md": "# Built",
}


@pytest.fixture
def project(bench: Bench) -> Bench:
    bench.write("a.md", "# Mine")
    for name, text in FILLED.items():
        bench.write(name, text)
    return bench


def test_they_are_passed_over_and_told(project: Bench) -> None:
    report = project.ingest(kind="auto")
    assert (report.sources, report.left_out, report.failures) == (1, {"FOLDER_OF_TOOL": 3}, ())
    assert project.manifest().errors == {"FOLDER_OF_TOOL": 3}
    told = {row["source_uri"]: row["error_type"] for row in project.attempts() if row["error_type"]}
    assert told == dict.fromkeys(["target/", "web/env/", "web/node_modules/"], "FOLDER_OF_TOOL")
    again = project.ingest(kind="auto")
    assert (again.written, again.processed, again.left_out) == (False, 0, {"FOLDER_OF_TOOL": 3})


def test_who_names_one_has_it_read(project: Bench) -> None:
    packages = project.docs / "web" / "node_modules"
    assert project.ingest(paths=[packages]).sources == 1
    report = project.ingest(paths=[project.docs, packages])
    assert (report.sources, report.left_out) == (2, {"FOLDER_OF_TOOL": 2})


@pytest.mark.parametrize("name", ["node_modules.md", "my_node_modules/a.md"])
def test_what_is_only_called_alike_is_read(bench: Bench, name: str) -> None:
    bench.write(name, "# Mine")
    report = bench.ingest()
    assert (report.sources, report.left_out) == (1, {})


def none_that_can_be_read(folder: Path) -> None:
    os.mkfifo(folder / "CACHEDIR.TAG")


def a_folder(folder: Path) -> None:
    (folder / "CACHEDIR.TAG").mkdir()


def of_something_else(folder: Path) -> None:
    (folder / "CACHEDIR.TAG").write_text("Signature: 0000")


@pytest.mark.parametrize("tag", [none_that_can_be_read, a_folder, of_something_else])
def test_any_other_tag_says_nothing(bench: Bench, tag: Callable[[Path], None]) -> None:
    bench.write("notes/a.md", "# Mine")
    tag(bench.docs / "notes")
    report = bench.ingest()
    assert (report.sources, report.left_out) == (1, {})


def test_what_was_read_there_before_stays_until_somebody_says_otherwise(bench: Bench) -> None:
    """It may have been named as a source of its own."""
    bench.write("a.md", "# Mine")
    bench.write("build/b.md", "# Built")
    assert bench.ingest().sources == 2
    bench.write("build/CACHEDIR.TAG", TAG)
    assert bench.ingest(prune=True).pruned == 0
    assert bench.ingest(exclude=("build/",), prune=True).pruned == 1
