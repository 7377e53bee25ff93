"""A part of what was read before keeps its names: it replaces what stands there and does not stand beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chunksink.producers.naming import root_of
from chunksink.producers.sources import Scope
from tests.producers.bench import LATER, Bench


@pytest.fixture
def notes(bench: Bench) -> Path:
    """A folder that was read."""
    for name in ("a.md", "sub/b.md", "sub/c.md"):
        bench.write(f"notes/{name}", f"# {name}")
    assert bench.ingest(paths=[bench.docs / "notes"], base=None).documents == 3
    return bench.docs / "notes"


def test_one_file_of_a_folder_is_that_of_the_folder(bench: Bench, notes: Path) -> None:
    bench.write("notes/sub/b.md", "# edited")
    report = bench.ingest(paths=[notes / "sub/b.md"], base=None, now=LATER)
    assert (report.processed, report.documents) == (1, 3)
    assert bench.texts("notes/sub/b.md") == ["# edited"]
    assert bench.ingest(paths=[notes], base=None).unchanged == 3


def test_a_part_of_a_folder_is_that_of_the_folder_and_prunes_there(
    bench: Bench, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "sub/b.md").unlink()
    (notes / "a.md").unlink()
    bench.write("notes/sub/new.md", "# new")
    monkeypatch.chdir(notes)
    report = bench.ingest(paths=[Path("sub")], base=None, prune=True, now=LATER)
    assert (report.processed, report.pruned, report.documents) == (1, 1, 3)
    assert bench.texts("notes/sub/new.md") == ["# new"]
    assert bench.texts("notes/a.md") == ["# a.md"]


def test_a_base_need_be_said_once(bench: Bench) -> None:
    bench.write("x/notes/a.md", "# A")
    folder = bench.docs / "x" / "notes"
    assert bench.ingest(paths=[folder], base=bench.docs).processed == 1
    assert bench.ingest(paths=[folder], base=None).unchanged == 1
    assert bench.texts("x/notes/a.md") == ["# A"]
    assert bench.ingest(paths=[folder], base=folder, now=LATER).documents == 2, "another one is as it says"


def test_other_tenants_and_other_buses_name_for_themselves(bench: Bench, notes: Path) -> None:
    report = bench.ingest(paths=[notes / "a.md"], base=None, tenant="acme")
    assert (report.processed, report.documents, bench.texts("notes/a.md")) == (1, 4, ["# a.md", "# a.md"])


def test_a_file_that_was_read_alone_is_that_of_its_folder(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.write("notes/a.md", "# A")
    monkeypatch.chdir(path.parent)
    assert bench.ingest(paths=[Path("a.md")], base=None).processed == 1
    assert bench.texts("notes/a.md") == ["# A"]
    assert bench.ingest(paths=[path.parent], base=None).unchanged == 1


def test_files_of_one_name_in_two_folders_are_two(bench: Bench) -> None:
    paths = [bench.write(f"{folder}/README.md", f"# {folder}") for folder in ("a", "b")]
    assert bench.ingest(paths=paths, base=None).documents == 2


def test_a_file_keeps_the_name_that_it_has(bench: Bench) -> None:
    path = bench.write("notes/a.md", "# A")
    assert bench.ingest(paths=[path], base=path.parent).processed == 1
    bench.write("notes/a.md", "# edited")
    assert bench.ingest(paths=[path], base=None, now=LATER).documents == 1
    assert bench.texts("a.md") == ["# edited"]


def test_other_partitions_name_for_themselves(bench: Bench) -> None:
    """And what is read again by the same words has the same names."""
    bench.write("x/notes/a.md", "# A")
    folder = bench.docs / "x" / "notes"
    assert bench.ingest(paths=[folder], base=None, to="zeta").processed == 1
    assert bench.ingest(paths=[folder], base=bench.docs, to="alpha").processed == 1
    assert bench.ingest(paths=[folder], base=None, to="zeta").unchanged == 1
    assert bench.texts("notes/a.md", "zeta") == ["# A"]
    assert bench.texts("x/notes/a.md", "zeta") == []


def test_below_a_link_names_are_kept_too(bench: Bench) -> None:
    bench.write("real/notes/a.md", "# A")
    link = bench.docs / "link"
    link.symlink_to(bench.docs / "real")
    assert bench.ingest(paths=[link / "notes"], base=None).processed == 1
    assert bench.ingest(paths=[link / "notes" / "a.md"], base=None).unchanged == 1
    assert bench.ingest(paths=[bench.docs / "real" / "notes" / "a.md"], base=None).documents == 1


@pytest.mark.parametrize(
    ("path", "places", "root"),
    [
        ("/d/n/a.md", [], "/d"),
        ("/a.md", [], "/"),
        ("/d/n/a.md", [("n/", "/d/n")], "/d"),
        ("/d/n", [("n/", "/d/n")], "/d"),
        ("/d/n/s/a.md", [("n/", "/d/n"), ("s/", "/d/n/s")], "/d/n"),
        ("/d/n/a.md", [("", "/d/n")], "/d/n"),
        ("/d/n", [("", "/d/n")], "/d/n"),
        ("/d/n", [("d/n/", "/d/n"), ("n/", "/d/n")], "/d"),
        ("/d/n/a.md", [("x/", "/d/n")], "/d"),  # reached by a link of that name
        ("/d/nn/a.md", [("n/", "/d/n")], "/d"),
        ("/d/n/a.md", [("d/n/", "/d/n")], "/"),
        ("/d/n/a.md", [("very/long/d/n/", "/d/n")], "/d"),
    ],
)
def test_the_nearest_folder_decides(path: str, places: list[tuple[str, str]], root: str) -> None:
    known = [Scope(prefix, Path(folder)) for prefix, folder in places]
    assert root_of(Path(path), None, known) == Path(root)
    assert root_of(Path(path), Path("/base"), known) == Path("/base")
