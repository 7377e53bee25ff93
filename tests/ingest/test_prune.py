"""Sources that vanished keep their chunks until a run prunes."""

import errno
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from chunksink.ingest.codes import FILE_LINKED, SOURCE_UNREADABLE
from chunksink.ingest.errors import IngestBrake, IngestRefused
from chunksink.ingest.reconcile import _MISSING_FAMILIES
from chunksink.ingest.store import IngestStore
from tests.ingest.bench import Bench
from tests.support.users import as_nobody


@pytest.fixture
def three(bench: Bench) -> Bench:
    for name in ("a", "b", "sub/c"):
        bench.write(f"{name}.md", f"# {name}\n")
    bench.ingest()
    return bench


@pytest.mark.promise(6)
def test_a_vanished_source_stays_until_prune_removes_it_with_a_tombstone(three: Bench) -> None:
    three.remove("a.md")
    report = three.ingest()
    assert (report.missing, report.missing_from, report.written) == (1, ("docs/a.md",), False)
    assert "docs/a.md" in three.names()
    report = three.ingest(prune=True)
    assert (report.pruned, report.missing, report.partitions) == (1, 0, ("documents",))
    assert three.names() == {"docs/b.md", "docs/sub/c.md"}
    assert len(three.manifest().tombstones) == 1
    assert three.ingest(prune=True).written is False


@pytest.mark.promise(6)
def test_link_whose_target_vanished_stays_until_prune_removes_it(three: Bench) -> None:
    (three.docs / "link.md").symlink_to(three.docs / "a.md")
    three.ingest()
    three.remove("a.md")
    report = three.ingest()
    assert (report.failed, report.missing, report.missing_from) == (0, 2, ("docs/a.md", "docs/link.md"))
    assert "docs/link.md" in three.names()
    with pytest.raises(IngestRefused, match=r"link\.md no longer exists.* --allow-deletions 1"):
        three.ingest("link.md")
    report = three.ingest(prune=True)
    assert (report.failed, report.pruned, report.left_out) == (0, 2, {})
    assert three.names() == {"docs/b.md", "docs/sub/c.md"}
    report = three.ingest(prune=True)
    assert (report.failed, report.left_out) == (0, {FILE_LINKED: 1})


@pytest.mark.promise(6)
def test_folder_of_links_to_a_disk_that_is_not_mounted_is_not_pruned(bench: Bench) -> None:
    disk = bench.folder / "disk"
    bench.docs.mkdir()
    for name in ("a.md", "b.md"):
        bench.write(f"../disk/{name}", f"# {name}\n")
        (bench.docs / name).symlink_to(disk / name)
    bench.ingest(follow_links=True)
    disk.rename(bench.folder / "unmounted")
    with pytest.raises(IngestBrake, match="--allow-deletions 2"):
        bench.ingest(follow_links=True, prune=True)
    assert bench.ingest(prune=True, allow_deletions=2).pruned == 2


@pytest.mark.parametrize("name", ["aaa.md", "zzz.md"])
def test_chunks_passed_on_unchanged_stay_when_the_home_was_lost(name: str, bench: Bench) -> None:
    """Their partition does not name the file that contains them, only their source, which is no file."""
    bench.write(name, "# A\n\nText.\n")
    bench.ingest()
    records = [record | {"hashes": {}} for record in bench.records()]
    for record in records:
        record["provenance"]["inputs"] = []
    bench.remove(name)
    bench.write("export.jsonl", records)
    assert bench.ingest(prune=True).missing == 0
    shutil.rmtree(bench.home)
    for _ in range(2):
        report = bench.ingest(prune=True)
        assert (report.missing, report.pruned, report.documents) == (0, 0, 1)


def test_the_tombstone_of_a_source_that_came_back_is_older_than_it(three: Bench) -> None:
    three.remove("a.md")
    three.ingest(prune=True)
    three.write("a.md", "# a\n")
    three.ingest()
    (tombstone,) = three.manifest().tombstones
    (record,) = [record for record in three.records() if record["provenance"]["source_uri"] == "docs/a.md"]
    assert tombstone.at is not None and record["created_at"] > tombstone.at


@pytest.mark.promise(6)
def test_a_folder_without_any_source_is_not_pruned_unless_the_number_is_given(three: Bench) -> None:
    """The folder may not be mounted."""
    for name in ("a.md", "b.md", "sub"):
        three.remove(name)
    before = three.files()
    with pytest.raises(IngestBrake, match="--allow-deletions 3"):
        three.ingest(prune=True, allow_deletions=2)
    assert three.files() == before
    assert three.ingest(prune=True, allow_deletions=3).pruned == 3
    assert three.records() == []


def test_an_excluded_source_counts_as_vanished(three: Bench) -> None:
    assert three.ingest(exclude=("sub/",)).missing == 1
    assert three.ingest(exclude=("sub/",), prune=True).pruned == 1


@pytest.mark.parametrize("skips", [{"exclude": ("*.csv",)}, {"format": "docx"}])
def test_skipped_file_is_not_forgotten(skips: dict[str, Any], bench: Bench) -> None:
    """A run without the fields that it needs keeps its chunks, and reports no failure."""
    rows = bench.write("hours.csv", "day,note\n1,Closed.\n")
    assert bench.ingest(rows, fields={"text": "note", "id": "day"}).failures == ()
    bench.ingest(**skips)
    assert bench.ingest().failures == ()
    assert [record["text"] for record in bench.records()] == ["Closed."]


def test_failure_of_an_excluded_file_is_forgotten(three: Bench) -> None:
    three.write("broken.pdf", "no PDF")
    assert three.ingest().failures
    assert three.ingest(exclude=("*.pdf",)).failures == ()
    three.write("a.md", "# other\n")
    three.ingest(exclude=("*.pdf",))
    assert three.manifest().counts.failures == 0


def test_file_that_was_excluded_and_pruned_is_read_again(three: Bench) -> None:
    three.ingest(exclude=("sub/",), prune=True)
    before = len(three.records())
    three.ingest()
    assert len(three.records()) == before + 1


def test_source_that_became_a_folder_has_vanished(three: Bench) -> None:
    three.remove("a.md")
    three.write("a.md/inner.md", "# inner\n")
    report = three.ingest(prune=True)
    assert (report.pruned, report.processed) == (1, 1)
    assert three.names() == {"docs/a.md/inner.md", "docs/b.md", "docs/sub/c.md"}


def test_other_folders_and_other_tenants_are_left_alone(three: Bench) -> None:
    three.ingest(tenant="ada")
    three.write("../other/d.md", "# d\n")
    three.ingest("../other")
    for name in ("a.md", "b.md"):
        three.remove(name)
    assert three.ingest(prune=True).pruned == 2
    assert sorted(record["text"] for record in three.records() if "tenant_id" in record) == ["# a", "# b", "# sub/c"]
    assert "other/d.md" in three.names()


@pytest.mark.promise(6)
def test_folders_that_cannot_be_listed_keep_their_sources_and_others_are_pruned(
    three: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    three.write("more/d.md", "# d\n")
    three.ingest()
    for name in ("a.md", "sub/c.md", "more/d.md"):
        three.remove(name)
    scandir = os.scandir

    def failing(folder: Any) -> Any:
        if str(folder).endswith(("/sub", "/more")):
            raise OSError(errno.EIO, "Input/output error")
        return scandir(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", failing)
        assert three.ingest().missing_from == ("docs/a.md",)
        report = three.ingest(prune=True)
    assert {(one.source_uri, one.code) for one in report.failures} == {
        ("docs/sub/", SOURCE_UNREADABLE),
        ("docs/more/", SOURCE_UNREADABLE),
    }
    assert (report.pruned, three.names()) == (1, {"docs/b.md", "docs/sub/c.md", "docs/more/d.md"})
    assert three.ingest(prune=True).pruned == 2


@pytest.mark.promise(6)
def test_sources_without_permission_have_vanished_only_if_they_are_excluded() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)  # another user cannot enter pytest's folders
        with as_nobody():
            bench = Bench(Path(folder))
            bench.write("a.md", "# a\n")
            bench.write("sub/in/c.md", "# c\n")
            bench.ingest("sub/in")
            bench.ingest()
            (bench.docs / "sub").chmod(0)
            try:
                report = bench.ingest(prune=True)
                assert [(one.source_uri, one.code) for one in report.failures] == [("docs/sub/", SOURCE_UNREADABLE)]
                assert (report.pruned, report.gone) == (0, {})
                report = bench.ingest(prune=True, exclude=("sub/",))
                assert (report.pruned, report.failed, bench.names()) == (1, 0, {"docs/a.md"})
            finally:
                (bench.docs / "sub").chmod(0o755)


def test_errors_of_a_vanished_source_leave_the_manifest(three: Bench) -> None:
    three.write("bad.md", b"\x80")
    three.ingest()
    assert three.manifest().counts.failures == 1
    three.remove("bad.md")
    three.ingest()
    assert (three.manifest().counts.failures, three.manifest().errors) == (0, {})


def test_renamed_files_that_are_not_included_any_more_stop_the_run_and_name_the_option(bench: Bench) -> None:
    for name in ("a.py", "b.toml", "c.py", "Makefile"):
        bench.write(name, f"{name} words")
    bench.ingest(include=("*",))
    (bench.docs / "src").mkdir()
    for name in ("a.py", "c.py", "Makefile"):
        (bench.docs / name).rename(bench.docs / "src" / name)
    bench.write("src/d.log", "words")
    bench.remove("b.toml")
    with pytest.raises(IngestBrake, match=r" skipped: --include '\*\.py'\. To remove them: --allow-deletions 4"):
        bench.ingest(prune=True)
    assert bench.ingest(prune=True, include=("*.py",)).pruned == 4


@pytest.mark.promise(6)
def test_a_folder_with_nothing_but_files_of_no_format_counts_as_empty(three: Bench) -> None:
    for name in ("a.md", "b.md", "sub"):
        three.remove(name)
    three.write("node_modules/x.md", "# x\n")
    three.write("package.json", {"name": "x"})
    with pytest.raises(IngestBrake, match="--allow-deletions 3"):
        three.ingest(prune=True)


def test_an_empty_folder_beside_another_one_does_not_stop_its_pruning(three: Bench) -> None:
    (three.folder / "empty").mkdir()
    three.ingest("../empty")
    three.remove("a.md")
    assert three.ingest(".", "../empty", prune=True).pruned == 1


def test_failures_of_another_tenant_stay_in_the_manifest(three: Bench) -> None:
    three.write("bad.md", b"\x80")
    three.ingest(tenant="one")
    three.write("good.md", "# good\n")
    three.ingest("good.md", tenant="two")
    three.remove("bad.md")
    three.ingest(tenant="two")
    assert three.manifest().counts.failures == 1


def test_many_changes_cost_no_more_than_few(three: Bench) -> None:
    """The diff looks families up; it never scans the changes for each of them."""
    with IngestStore(three.home) as store:
        store.db.conn.create_function("has_vanished", 1, lambda _name: True)
        values = {"vanished": "", "not_in_file": "", "tenant": ""}
        plan = [row[3] for row in store.db.conn.execute(f"explain query plan {_MISSING_FAMILIES}", values)]
    assert [
        step for step in plan if step.startswith(("SCAN arrival", "SCAN departure", "SCAN draft", "SCAN stored"))
    ] == []


def test_existing_file_without_a_recorded_reading_has_not_vanished(three: Bench) -> None:
    three.write("e.py", "words\n")
    three.ingest(include=("*.py",))
    for file in three.home.glob("ingest.db*"):
        file.unlink()
    three.write("e.py", "other words\n")
    assert three.ingest(prune=True).pruned == 0
    assert three.texts()["docs/e.py"] == ["other words"]


def test_an_emptied_document_leaves_a_tombstone_for_copies_in_other_partitions(three: Bench) -> None:
    three.ingest(partition="other")
    three.write("a.md", "")
    three.ingest()
    assert len(three.manifest().tombstones) == 1


def test_two_folders_in_turn_write_nothing_when_nothing_changed(three: Bench) -> None:
    three.bus = type(three.bus)(three.docs / "chunks")
    for _ in range(2):
        three.ingest()
        three.ingest("sub")
    before = three.files()
    three.ingest()
    three.ingest("sub")
    assert three.files() == before


@pytest.mark.promise(6)
def test_a_file_without_any_record_is_not_pruned_unless_the_number_is_given(bench: Bench) -> None:
    """An export that was cut off after its header."""
    header = "id,text\n"
    bench.write("rows.csv", header + "".join(f"{number},The cat {number}.\n" for number in range(3)))
    bench.ingest("rows.csv")
    before = bench.files()
    bench.write("rows.csv", header)
    with pytest.raises(IngestBrake, match=r"docs/rows\.csv.*--allow-deletions 3"):
        bench.ingest("rows.csv", prune=True, allow_deletions=2)
    assert bench.files() == before
    assert bench.ingest("rows.csv", prune=True, allow_deletions=3).pruned == 3


def test_records_that_another_file_has_are_not_pruned_with_an_emptied_file(bench: Bench) -> None:
    chunks = [{"page_content": f"The cat {n}.", "metadata": {"source": f"doc-{n}"}} for n in range(3)]
    bench.write("a.jsonl", chunks)
    bench.write("z.jsonl", chunks)
    bench.ingest()
    bench.write("z.jsonl", "")
    report = bench.ingest(prune=True)
    assert (report.pruned, report.documents) == (0, 3)


@pytest.mark.promise(6)
def test_pruned_records_that_are_a_large_share_of_all_chunks_stop_the_run(bench: Bench) -> None:
    rows = [f"{number},The cat {number}.\n" for number in range(200)]
    bench.write("rows.csv", "id,text\n" + "".join(rows))
    bench.ingest("rows.csv")
    bench.write("rows.csv", "id,text\n" + "".join(rows[:50]))
    assert bench.ingest("rows.csv").missing == 150
    with pytest.raises(IngestBrake, match="--allow-deletions 150"):
        bench.ingest("rows.csv", prune=True)
    assert bench.ingest("rows.csv", prune=True, allow_deletions=150).pruned == 150


def sections(number: int) -> str:
    """A document of at least so many chunks."""
    return "".join(f"# Part {part}\n\n{' '.join(f'word{part}' for _ in range(200))}\n\n" for part in range(number))


@pytest.mark.promise(6)
@pytest.mark.parametrize("left", ["# All that is left\n", ""])
def test_sources_that_lose_most_of_their_chunks_stop_the_run_unless_their_number_is_given(
    left: str, bench: Bench
) -> None:
    """A truncated file is as suspicious as a missing one."""
    bench.write("large.md", sections(120))
    bench.write("small.md", "# Small\n")
    bench.ingest(partition="other")
    bench.ingest()
    before = bench.files()
    number = len(bench.records("documents"))
    assert number > 100
    bench.write("large.md", left)
    in_reach = (
        rf"of the {number} chunks in the partitions of this run.*from 1 source .*docs/large\.md.*--allow-deletions 1"
    )
    with pytest.raises(IngestBrake, match=in_reach):
        bench.ingest()
    assert bench.files() == before
    bench.ingest(allow_deletions=1)
    assert len(bench.records("documents")) <= 2


def test_a_small_share_of_all_chunks_may_shrink(bench: Bench) -> None:
    for number in range(6):
        bench.write(f"{number}.md", sections(120))
    bench.ingest()
    bench.write("0.md", "# All that is left\n")
    bench.ingest()
    assert bench.texts()["docs/0.md"] == ["# All that is left"]


def test_prune_of_large_sources_needs_no_flag(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.write(f"{name}.md", sections(120))
    bench.ingest()
    bench.remove("a.md")
    assert bench.ingest(prune=True).pruned == 1
