"""Which files of a folder are sources."""

import os
import re
from pathlib import Path

import pytest

from chunksink.ingest.codes import (
    CHUNKING_FAILED,
    FILE_LINKED,
    FOLDER_IS_OUTPUT,
    FOLDER_LINKED,
    FOLDER_OF_TOOL,
    SOURCE_CHANGED,
    SOURCE_NAME_INVALID,
    SOURCE_UNREADABLE,
)
from chunksink.ingest.discover import why_skipped
from chunksink.ingest.errors import IngestRefused
from chunksink.ingest.store import why_no_chunks
from tests.ingest.bench import Bench

CACHE_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"


@pytest.fixture
def filled(bench: Bench) -> Bench:
    for name in (
        "a.md",
        "b.markdown",
        "sub/c.md",
        ".hidden.md",
        "~$open.md",
        ".git/d.md",
        "e.py",
        "f.PNG",
        "Makefile",
        "drafts/g.md",
    ):
        bench.write(name, f"# {name}\n")
    return bench


def found(bench: Bench, **options: object) -> set[str]:
    bench.ingest(**options)
    return {name.removeprefix("docs/") for name in bench.names()}


def test_reason_for_a_file_that_was_skipped(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.write("n.ipynb", {"cells": []})
    filled.ingest(exclude=("drafts/",))
    monkeypatch.chdir(filled.docs)
    for name, reason in {
        "e.py": r"files of its kind.*`chunksink ingest \S*e.py`.*--include '\*\.py'",
        "n.ipynb": "files of its kind.*`jupyter nbconvert --to markdown ",
        "Makefile": "files of its kind.*--include Makefile",
        ".hidden.md": "hidden",
        ".git/d.md": "hidden",
        "~$open.md": "hidden",
        "drafts/g.md": "excluded",
    }.items():
        assert re.search(reason, why_no_chunks(filled.home, filled.bus, f"docs/{name}", why_skipped) or "")
        assert why_skipped(filled.bus, str(filled.docs / name)), "by its path"
    assert "`chunksink why docs/a.md`" in (why_skipped(filled.bus, "a.md") or "")
    assert why_no_chunks(filled.home, filled.bus, "docs/a.md", why_skipped) is None
    assert why_skipped(filled.bus, "nowhere.py") is None
    assert why_skipped(filled.bus, "x" * 5_000) is None


def test_named_file_of_another_kind_is_not_counted_as_skipped(filled: Bench) -> None:
    (filled.docs / "link.csv").symlink_to(filled.write("other.csv", "id,text\n1,x\n"))
    for paths in ((".", "link.csv", "e.py"), ("e.py", "link.csv", ".")):
        report = filled.fresh("-".join(paths)).ingest(*paths)
        assert report.other_kinds == {".csv": 1, ".png": 1, "no suffix": 1}
        assert (report.kinds["rows"], report.kinds["text"]) == (1, 1)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"exclude": ("drafts/", "*.markdown")}, {"a.md", "sub/c.md"}),
        ({"exclude": ("*.md", "!a.md")}, {"a.md", "b.markdown"}),
        ({"exclude": ("/*/",)}, {"a.md", "b.markdown"}),
        ({"include": ("*.py",)}, {"a.md", "b.markdown", "sub/c.md", "drafts/g.md", "e.py"}),
        ({"format": "text"}, {"Makefile"}),
        ({"exclude": ("# from .gitignore\ndrafts/\n\nb.*\n",)}, {"a.md", "sub/c.md"}),
    ],
)
def test_patterns_choose_as_in_a_gitignore_file(filled: Bench, options: dict[str, object], names: set[str]) -> None:
    assert found(filled, **options) == names


def test_patterns_that_match_nothing_are_reported(filled: Bench) -> None:
    exclude = ("# comment", "geheim/", "drafts/", "*.markdown", "b.markdown", "!x.md", ".git/", "docs/a.md")
    report = filled.ingest(exclude=exclude, include=("*.md", "*.toml", "e.py"))
    assert report.unmatched == ("--exclude geheim/", "--exclude docs/a.md", "--include *.toml")
    assert filled.ingest().unmatched == ()
    assert filled.ingest("a.md", exclude=("*.md",)).unmatched == (), "patterns do not apply to named files"


def test_a_file_that_was_included_once_is_read_again_without_the_option(filled: Bench) -> None:
    filled.ingest(include=("*.py",))
    filled.write("e.py", "other words\n")
    report = filled.ingest()
    assert (report.processed, report.missing) == (1, 0)
    assert filled.texts()["docs/e.py"] == ["other words"]


def test_a_file_of_another_kind_is_read_again_only_if_it_was_readable(filled: Bench) -> None:
    filled.write("f.PNG", b"\x89PNG\r\n\x1a\n" + bytes(99))
    assert [failure.code for failure in filled.ingest("f.PNG").failures] == [CHUNKING_FAILED]
    filled.ingest("e.py")
    report = filled.ingest()
    assert (report.failed, report.other_kinds[".png"], report.kinds["text"]) == (0, 1, 1)
    filled.write("e.py", bytes(99))
    for _ in range(2):
        assert [failure.source_uri for failure in filled.ingest().failures] == ["docs/e.py"]
    assert filled.texts()["docs/e.py"] == ["# e.py"]


def test_named_file_is_read_with_any_suffix(filled: Bench) -> None:
    filled.ingest("e.py", ".hidden.md")
    assert filled.names() == {"docs/e.py", "docs/.hidden.md"}


def test_a_link_to_a_file_is_followed_within_the_folders_that_are_named(filled: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("# Elsewhere\n")
    (filled.docs / "inside.md").symlink_to(filled.docs / "a.md")
    (filled.docs / "outside.md").symlink_to(tmp_path / "secret.md")
    report = filled.ingest()
    assert report.left_out[FILE_LINKED] == 1
    assert "docs/outside.md" not in filled.names()
    assert "docs/inside.md" in filled.names()
    filled.ingest(follow_links=True)
    assert "docs/outside.md" in filled.names()


def test_folders_without_sources_are_skipped_unless_named(bench: Bench) -> None:
    bench.write("a.md", "# A\n")
    bench.write("node_modules/b.md", "# B\n")
    bench.write("venv/pyvenv.cfg", "")
    bench.write("venv/c.md", "# C\n")
    bench.write("cache/CACHEDIR.TAG", CACHE_TAG)
    bench.write("cache/d.md", "# D\n")
    bench.write("bus/canonical/e.jsonl", "")
    bench.write("bus/manifest/f.md", "# F\n")
    bench.write("elsewhere/g.md", "# G\n")
    (bench.docs / "link").symlink_to(bench.docs / "elsewhere")
    report = bench.ingest()
    assert bench.names() == {"docs/a.md", "docs/elsewhere/g.md"}
    assert report.left_out == {FOLDER_IS_OUTPUT: 1, FOLDER_LINKED: 1, FOLDER_OF_TOOL: 3}
    assert (report.failed, report.sources) == (0, 2)
    attempts = len(bench.ledger())
    assert bench.ingest().written is False
    assert len(bench.ledger()) == attempts, "a file that is left out is recorded once"
    bench.ingest("node_modules")
    assert "docs/node_modules/b.md" in bench.names()


def test_a_file_by_two_paths_is_one_source(bench: Bench) -> None:
    bench.write("a.md", "# A\n")
    (bench.folder / "again").symlink_to(bench.docs)
    report = bench.ingest(".", "a.md", "../again")
    assert (report.sources, bench.names()) == (1, {"docs/a.md"})


def test_two_files_with_one_name_are_refused(bench: Bench) -> None:
    bench.write("a/x.md", "# A\n")
    bench.write("b/a/x.md", "# B\n")
    with pytest.raises(IngestRefused, match="--base"):
        bench.ingest("a", "b/a")
    bench.ingest("a", "b/a", base=bench.docs)
    assert bench.names() == {"a/x.md", "b/a/x.md"}


def test_link_to_no_file_is_left_out_and_when_named_does_not_exist(filled: Bench) -> None:
    (filled.docs / "dead.md").symlink_to(filled.docs / "nowhere.md")
    report = filled.ingest()
    assert (report.failed, report.left_out_from[FILE_LINKED]) == (0, ("docs/dead.md",))
    with pytest.raises(IngestRefused, match=r"dead\.md does not exist"):
        filled.ingest("dead.md")


@pytest.mark.promise(6)
def test_unreadable_file_is_one_failure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.md", "# A\n")
    (bench.docs / "circle.md").symlink_to(bench.docs / "circle.md")
    os.mkfifo(bench.docs / "pipe.md")
    (bench.docs / "circle.jsonl").symlink_to(bench.docs / "circle.jsonl")
    Path(os.fsdecode(os.fsencode(bench.docs) + b"/\xff.md")).write_text("# Not Unicode\n")
    report = bench.ingest()
    assert sorted((failure.source_uri, failure.code) for failure in report.failures) == [
        ("docs/\\xff.md", SOURCE_NAME_INVALID),
        ("docs/circle.jsonl", SOURCE_UNREADABLE),
        ("docs/circle.md", SOURCE_UNREADABLE),
        ("docs/pipe.md", SOURCE_UNREADABLE),
    ]
    assert bench.names() == {"docs/a.md"}
    assert bench.manifest().counts.failures == 4


def test_a_file_that_is_written_while_it_is_read_is_a_failure_and_keeps_its_chunks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.write("a.md", "# A\n")
    bench.ingest()
    bench.write("a.md", "# B\n")
    from chunksink.ingest.formats.markdown import MarkdownFormat

    real = MarkdownFormat.read

    def slow(self: MarkdownFormat, source: object) -> object:
        path.write_text("# Written meanwhile\n")
        return real(self, source)

    with monkeypatch.context() as patched:
        patched.setattr(MarkdownFormat, "read", slow)
        report = bench.ingest()
    assert [failure.code for failure in report.failures] == [SOURCE_CHANGED]
    assert bench.texts() == {"docs/a.md": ["# A"]}
    bench.ingest()
    assert bench.texts() == {"docs/a.md": ["# Written meanwhile"]}
