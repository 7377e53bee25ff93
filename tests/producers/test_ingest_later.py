"""What was read once is gone on with, however it is come upon later: by another name, by its folder, or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chunksink.producers.errors import IngestRefused
from tests.producers.bench import LATER, Bench


def sources(bench: Bench) -> list[str]:
    return sorted(record["provenance"]["source_uri"] for record in bench.records())


@pytest.mark.parametrize("how", ["as text", "included", "named alone"])
def test_what_was_read_as_text_is_read_again_when_it_changes(how: str, bench: Bench) -> None:
    """Its suffix alone would have it passed over: its old text would stay, and nobody would be told."""
    bench.write("docs/a.md", "# A")
    path = bench.write("docs/z.log", "zed")
    folder = bench.docs / "docs"
    if how == "named alone":
        bench.ingest([path], kind="auto", base=None)
    else:
        asked = {"kind": "text"} if how == "as text" else {"kind": "auto", "include": ("*.log",)}
        bench.ingest([folder], base=None, now=LATER, **asked)
    path.write_text("yankee")
    report = bench.ingest([folder], kind="auto", base=None)
    assert report.other_kinds == {}
    assert bench.texts("docs/z.log") == ["yankee"]
    path.unlink()
    assert bench.ingest([folder], kind="auto", base=None, prune=True).pruned == 1
    assert sources(bench) == ["docs/a.md"]


def test_a_file_named_before_the_folder_above_its_own_is_one_source_in_the_end(bench: Bench) -> None:
    bench.write("site/a.md", "# A")
    alone = bench.write("site/logs/app.log", "first")
    bench.ingest([alone], kind="auto", base=None)
    assert sources(bench) == ["logs/app.log"]
    site = bench.docs / "site"
    report = bench.ingest([site], kind="auto", base=None)
    assert (report.missing, report.missing_from) == (1, ("logs/app.log",))
    assert sources(bench) == ["logs/app.log", "site/a.md", "site/logs/app.log"]
    assert bench.ingest([site], kind="auto", base=None, prune=True).pruned == 1
    assert sources(bench) == ["site/a.md", "site/logs/app.log"]
    bench.ingest([alone], kind="auto", base=None)
    assert sources(bench) == ["site/a.md", "site/logs/app.log"], "it is called as its folder calls it"


def test_a_name_that_another_folder_has_too_is_kept(bench: Bench, tmp_path: Path) -> None:
    bench.write("site/logs/a.md", "# A")
    other = tmp_path / "elsewhere" / "logs"
    other.mkdir(parents=True)
    (other / "b.md").write_text("# B")
    bench.ingest([bench.docs / "site" / "logs"], base=None)
    bench.ingest([other], base=None)
    report = bench.ingest([bench.docs / "site"], base=None, prune=True)
    assert report.pruned == 0
    assert sources(bench) == ["logs/a.md", "logs/b.md", "site/logs/a.md"]


def test_a_former_name_that_this_run_reads_by_no_other_is_kept(bench: Bench) -> None:
    """As a folder of notes, of whose parent only the pages are read then."""
    bench.write("site/logs/a.md", "# A")
    bench.write("site/page.html", "<p>Page")
    bench.ingest([bench.docs / "site" / "logs"], base=None)
    report = bench.ingest([bench.docs / "site"], kind="html", base=None)
    assert report.missing == 0
    report = bench.ingest([bench.docs / "site"], kind="html", base=None, prune=True)
    assert (report.pruned, sources(bench)) == (0, ["logs/a.md", "site/page.html"])
    (bench.docs / "site" / "logs" / "a.md").unlink()
    assert bench.ingest([bench.docs / "site" / "logs"], kind="markdown", base=None).missing == 1


def test_a_folder_that_was_read_below_another_base_has_its_new_names_in_the_end(bench: Bench) -> None:
    bench.write("site/logs/a.md", "# A")
    bench.write("site/logs/deep/b.md", "# B")
    bench.ingest([bench.docs / "site" / "logs"], base=None)
    report = bench.ingest([bench.docs / "site"], base=None, prune=True)
    assert (report.pruned, sources(bench)) == (2, ["site/logs/a.md", "site/logs/deep/b.md"])


def test_a_link_to_nothing_is_told_and_pruned(bench: Bench) -> None:
    target = bench.write("elsewhere/t.md", "# T")
    bench.write("docs/k.md", "# K")
    (bench.docs / "docs" / "l.md").symlink_to(target)
    folder = [bench.docs / "docs"]
    assert bench.ingest(folder).documents == 2
    target.unlink()
    report = bench.ingest(folder)
    (failure,) = report.failures
    assert (failure.code, report.documents) == ("SOURCE_UNREADABLE", 2)
    assert failure.reason == "is a link to nothing; remove it, or bring back what it leads to"
    report = bench.ingest(folder, prune=True)
    assert ([failure.reason for failure in report.failures], report.pruned) == ([failure.reason], 1)
    assert bench.texts("docs/l.md") == []


def test_a_folder_that_was_removed_is_withdrawn_where_somebody_says_how_much_goes(bench: Bench) -> None:
    bench.write("one/a.md", "# A")
    bench.write("one/b.md", "# B")
    bench.write("two/c.md", "# C")
    bench.ingest([bench.docs / "one", bench.docs / "two"])
    shutil.rmtree(bench.docs / "one")
    folder = [bench.docs / "one"]
    with pytest.raises(IngestRefused, match="does not exist any more; what was read from it stays, and --prune"):
        bench.ingest(folder)
    with pytest.raises(IngestRefused, match=r"is not there, and --prune would withdraw .* --allow-deletions 2"):
        bench.ingest(folder, prune=True)
    assert bench.ingest(folder, prune=True, allow_deletions=2).pruned == 2
    assert sources(bench) == ["two/c.md"]
    with pytest.raises(IngestRefused, match="does not exist; name a folder or a file"):
        bench.ingest([bench.docs / "three"], prune=True)
