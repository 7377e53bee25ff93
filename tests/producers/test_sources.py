"""Sources: how they are found, named and read."""

import os
from pathlib import Path

import pytest

from chunksink.producers.contents import read_source
from chunksink.producers.errors import IngestRefused, SourceFailed
from chunksink.producers.find import find_sources
from chunksink.producers.tables import open_tables
from tests.producers.bench import LATER, Bench


def test_two_sources_of_one_name_are_refused_before_anything_is_written(bench: Bench) -> None:
    first, second = bench.write("x/notes/readme.md", "# X"), bench.write("y/notes/readme.md", "# Y")
    with pytest.raises(IngestRefused, match=r"would both be called 'notes/readme\.md'"):
        bench.ingest(paths=[first.parent, second.parent], base=None)
    assert not bench.root.path.exists()
    report = bench.ingest(paths=[first.parent, second.parent], base=bench.docs)
    assert report.processed == 2
    assert bench.texts("y/notes/readme.md") == ["# Y"]


def test_a_source_has_the_same_name_from_wherever_its_folder_is_reached(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.write("notes/sub/a.md", "# A")
    folder = bench.docs / "notes"
    seen = []
    for place, named in (
        (bench.docs, Path("notes")),
        (folder, Path()),
        (folder / "sub", Path("..")),
        (bench.docs, folder),
    ):
        monkeypatch.chdir(place)
        seen += [file.uri for file in find_sources([named], open_tables(), suffixes=(".md",)).files]
    assert seen == ["notes/sub/a.md"] * 4
    assert [file.uri for file in find_sources([path], open_tables(), suffixes=(".md",)).files] == ["a.md"]


def test_a_file_named_twice_is_read_once(bench: Bench) -> None:
    path = bench.write("a.md", "# A")
    assert bench.ingest(paths=[bench.docs, path, bench.docs]).sources == 1


def test_a_file_that_is_named_is_read_whatever_its_suffix(bench: Bench) -> None:
    assert bench.ingest(paths=[bench.write("README", "# R")]).processed == 1


@pytest.mark.parametrize(("name", "reason"), [("gone.md", "does not exist"), ("../outside.md", "does not lie below")])
def test_what_cannot_be_found_or_named_is_refused(bench: Bench, name: str, reason: str) -> None:
    bench.write("../outside.md", "# Outside")
    with pytest.raises(IngestRefused, match=reason):
        bench.ingest(paths=[bench.docs / name], base=bench.docs)


def test_a_file_under_several_names_is_one_source_and_the_first_path_names_it(bench: Bench) -> None:
    for name in ("s/a.md", "s/1/b.md", "s/1/c.md"):
        bench.write(name, "# T")
    folder = bench.docs / "s"
    (bench.docs / "link").symlink_to(folder, target_is_directory=True)

    def found(*paths: Path) -> list[str]:
        return [file.uri for file in find_sources(paths, open_tables(), suffixes=(".md",)).files]

    whole = ["s/1/b.md", "s/1/c.md", "s/a.md"]
    assert found(folder, folder / "1", folder / "1" / "b.md", bench.docs / "link") == whole
    assert found(folder / "1" / "b.md", folder / "1", folder) == ["1/c.md", "b.md", "s/a.md"]
    assert found(bench.docs / "link", folder) == ["link/1/b.md", "link/1/c.md", "link/a.md"]
    report = bench.ingest([folder, folder / "1"], base=None)
    assert (report.sources, report.documents) == (3, 3)
    assert bench.ingest([folder, folder / "1"], base=None, prune=True, now=LATER).pruned == 0


def test_links_between_folders_do_not_go_round(bench: Bench) -> None:
    bench.write("sub/a.md", "# A")
    (bench.docs / "sub" / "loop").symlink_to(bench.docs, target_is_directory=True)
    (bench.docs / "alias.md").symlink_to(bench.docs / "sub" / "a.md")
    assert [file.uri for file in find_sources([bench.docs], open_tables(), suffixes=(".md",)).files] == [
        "docs/alias.md",
        "docs/sub/a.md",
    ]


def test_a_linked_folder_is_told_and_is_no_failure(bench: Bench) -> None:
    bench.write("real/a.md", "# A")
    bench.write("s/b.md", "# B")
    linked = bench.docs / "s" / "linked"
    linked.symlink_to(bench.docs / "real", target_is_directory=True)
    (bench.docs / "s" / "loop").symlink_to(".", target_is_directory=True)
    (bench.docs / "s" / ".hidden").symlink_to(".", target_is_directory=True)
    report = bench.ingest([bench.docs / "s"])
    assert (report.failures, report.sources, report.left_out) == ((), 1, {"FOLDER_LINKED": 2})
    assert bench.manifest().errors == {"FOLDER_LINKED": 2}
    rows = {row["source_uri"]: (row["status"], row["error_type"]) for row in bench.attempts()}
    assert rows["s/loop/"] == rows["s/linked/"] == ("processed", "FOLDER_LINKED")
    again = bench.ingest([bench.docs / "s"], prune=True, now=LATER)
    assert (again.written, again.pruned, again.left_out) == (False, 0, {"FOLDER_LINKED": 2})
    named = bench.ingest([bench.docs / "s", linked], now=LATER)
    assert (named.sources, named.left_out) == (2, {"FOLDER_LINKED": 1}), "a link that is named is followed"
    assert bench.texts("s/linked/a.md") == ["# A"]


def test_suffixes_that_are_counted_do_not_grow_without_end(bench: Bench) -> None:
    for number in range(300):
        bench.write(f"log.{number}", "x")
    for name in ("odd. suffix of a sentence", "b.bin", "c.bin", os.fsdecode(b"d.caf\xe9")):
        bench.write(name, "x")
    counts = bench.ingest().other_kinds
    assert (sum(counts.values()), len(counts) <= 202, next(iter(counts))) == (304, True, "others")


def test_what_cannot_be_read_is_recorded_and_the_rest_goes_on(bench: Bench) -> None:
    bench.write("a.md", "# A")
    os.mkfifo(bench.docs / "pipe.md")
    (bench.docs / "dangling.md").symlink_to(bench.docs / "gone")
    (bench.docs / os.fsdecode(b"caf\xe9.md")).write_text("# C")
    report = bench.ingest()
    bench.assert_valid()
    assert bench.texts("a.md") == ["# A"]
    assert {(failure.source_uri, failure.code) for failure in report.failures} == {
        ("pipe.md", "SOURCE_UNREADABLE"),
        ("dangling.md", "SOURCE_UNREADABLE"),
        ("caf\\xe9.md", "SOURCE_NAME_INVALID"),
    }
    assert bench.manifest().errors == {"SOURCE_NAME_INVALID": 1, "SOURCE_UNREADABLE": 2}
    assert {attempt["status"] for attempt in bench.attempts(source="caf")} == {"failed"}


def test_a_source_that_is_written_to_meanwhile_is_left_for_the_next_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.write("a.md", "# A, half")
    real = os.fstat
    calls = []

    def grow(descriptor: int) -> os.stat_result:
        calls.append(descriptor)
        if len(calls) == 2:  # the first one asks whether it is a file at all
            before = real(descriptor)
            path.write_text("# A, half written")
            return before
        return real(descriptor)

    monkeypatch.setattr("chunksink.producers.contents.os.fstat", grow)
    with pytest.raises(SourceFailed, match="was written to while it was read") as caught:
        read_source(path)
    assert caught.value.code == "SOURCE_CHANGED"


def test_markdown_by_every_suffix(bench: Bench) -> None:
    for name in ("a.md", "b.MARKDOWN", "c.mdx", "d.txt.md", "e.qmd", "f.Rmd", "g.mkd", "h.mdown"):
        bench.write(name, f"# {name}")
    bench.write("a.mkdx", "# no")
    report = bench.ingest(kind="auto")
    assert (report.processed, report.other_kinds) == (8, {".mkdx": 1})
    assert bench.texts("c.mdx") == ["# c.mdx"]
