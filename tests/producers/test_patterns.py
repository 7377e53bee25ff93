"""What somebody wants passed over is neither read nor counted, and is gone for a run that prunes."""

from __future__ import annotations

import pytest

from chunksink.producers.errors import IngestRefused
from chunksink.producers.patterns import Patterns
from tests.producers.bench import Bench


@pytest.fixture
def project(bench: Bench) -> Bench:
    for name in ("a.md", "draft.md", "docs/b.md", "docs/drafts/c.md", "x/third_party/p/README.md", "keep/draft.md"):
        bench.write(name, f"# About {name}")
    return bench


@pytest.mark.parametrize(
    ("patterns", "read"),
    [
        (("third_party/",), {"a.md", "draft.md", "docs/b.md", "docs/drafts/c.md", "keep/draft.md"}),
        (("/third_party/", "draft*"), {"a.md", "docs/b.md", "x/third_party/p/README.md"}),
        (("/docs", "x"), {"a.md", "draft.md", "keep/draft.md"}),
        (("*.md", "!a.md"), {"a.md"}),
        (("docs/*", "!docs/b.md", "**/p"), {"a.md", "draft.md", "docs/b.md", "keep/draft.md"}),
        ((), {"a.md", "draft.md", "docs/b.md", "docs/drafts/c.md", "x/third_party/p/README.md", "keep/draft.md"}),
    ],
)
def test_patterns_mean_what_they_mean_for_git(patterns: tuple[str, ...], read: set[str], project: Bench) -> None:
    report = project.ingest(exclude=patterns, base=project.docs)
    assert {uri for uri in read if project.texts(uri)} == read
    assert report.processed == len(read)


def test_below_each_folder_that_is_named_and_never_that_folder(project: Bench) -> None:
    folder = project.docs / "x" / "third_party"
    assert project.ingest(paths=[folder], exclude=("third_party", "x")).processed == 1
    assert project.ingest(paths=[project.docs / "draft.md"], exclude=("draft.md",)).processed == 1


def test_a_run_that_prunes_withdraws_it(project: Bench) -> None:
    assert project.ingest().documents == 6
    assert project.ingest(exclude=("third_party",)).documents == 6
    pruned = project.ingest(exclude=("third_party",), prune=True)
    assert (pruned.pruned, pruned.documents) == (1, 5)


def test_what_a_folder_hides_is_withdrawn_though_a_pattern_would_have_it(project: Bench) -> None:
    """As git has it: below a folder that is passed over nothing is taken back."""
    assert project.ingest().documents == 6
    pruned = project.ingest(exclude=("docs", "!docs/b.md"), prune=True)
    assert (pruned.pruned, pruned.documents) == (2, 4)


def test_what_is_included_is_read_whatever_its_suffix(project: Bench) -> None:
    for name in ("x/table.csv", "x/setup.cfg", "top.csv", "x/more.md", ".hidden.csv", "drafts/d.csv"):
        project.write(name, f"words of {name}")
    report = project.ingest(kind="auto", include=("*.csv", "!top.csv", "/x/*.cfg"), exclude=("drafts/",))
    assert report.processed == 8
    assert report.other_kinds == {".csv": 1}
    assert project.texts("x/table.csv") == ["words of x/table.csv"]
    assert project.texts("x/setup.cfg") == ["words of x/setup.cfg"]
    assert {record["source"]["source_type"] for record in project.records()} == {"md", "txt"}


def test_what_was_included_once_stays_until_it_is_gone(project: Bench) -> None:
    path = project.write("x/table.csv", "words")
    assert project.ingest(kind="auto", include=("*.csv",)).documents == 7
    assert project.ingest(kind="auto", prune=True).documents == 7
    path.unlink()
    assert project.ingest(kind="auto", prune=True).documents == 6


def test_what_is_no_pattern_is_refused() -> None:
    with pytest.raises(IngestRefused, match="--exclude takes patterns"):
        Patterns(["!"])
    with pytest.raises(IngestRefused, match="--include takes patterns"):
        Patterns(["!"], "--include")
