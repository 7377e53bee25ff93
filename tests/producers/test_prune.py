"""Sources that vanished are withdrawn where that is asked for, and only where it is sure that they did."""

import json
import os
import shutil
from pathlib import Path

import pytest

from chunksink.producers.errors import IngestRefused
from chunksink.producers.families import key_of_source
from tests.producers.bench import LATER, Bench
from tests.producers.lines import kinds, line
from tests.producers.parsed.samples import parsed


def names(bench: Bench, key: str = "markdown") -> list[str]:
    return [record["provenance"]["source_uri"] for record in bench.records(key)]


def test_vanished_sources_become_tombstones(bench: Bench) -> None:
    for name in ("a.md", "b.md", "sub/c.md"):
        bench.write(name, f"# {name}")
    bench.ingest(tenant="acme")
    (bench.docs / "b.md").unlink()
    shutil.rmtree(bench.docs / "sub")
    report = bench.ingest(tenant="acme", prune=True, now=LATER)
    bench.assert_valid()
    assert names(bench) == ["a.md"]
    assert (report.pruned, report.unchanged, report.carried_over) == (2, 1, 0)
    stones = {stone.parent_id: (stone.reason, stone.at) for stone in bench.manifest().tombstones}
    gone = {key_of_source(name, "acme") for name in ("b.md", "sub/c.md")}
    assert stones == dict.fromkeys(gone, ("its source vanished", LATER))
    again = bench.ingest(tenant="acme", prune=True, now=LATER)
    assert (again.written, again.pruned) == (False, 0)


def test_a_source_that_comes_back_is_read_again(bench: Bench) -> None:
    bench.write("a.md", "# A")
    path = bench.write("b.md", "# B")
    bench.ingest()
    path.unlink()
    bench.ingest(prune=True, now=LATER)
    bench.write("b.md", "# B")
    bench.ingest(now=LATER)
    assert names(bench) == ["a.md", "b.md"]
    stone = bench.manifest().tombstones[0]
    assert stone.at is not None
    assert bench.records()[1]["created_at"] > stone.at, "its rank is above the tombstone's"


def test_only_what_lies_below_the_folders_named_is_withdrawn(bench: Bench) -> None:
    for name in ("notes/a.md", "notes/gone.md", "docs/b.md", "docs/gone.md", "c.md"):
        bench.write(name, "# T")
    folders = [bench.docs / "notes", bench.docs / "docs", bench.docs / "c.md"]
    bench.ingest(folders, base=None)
    bench.ingest(folders, base=None, tenant="other")
    for name in ("notes/gone.md", "docs/gone.md", "c.md"):
        (bench.docs / name).unlink()
    report = bench.ingest([bench.docs / "notes"], base=None, prune=True, now=LATER)
    assert report.pruned == 1
    others = ["docs/b.md", "docs/b.md", "docs/c.md", "docs/c.md", "docs/gone.md", "docs/gone.md"]
    assert names(bench) == [*others, "notes/a.md", "notes/a.md", "notes/gone.md"]


def test_what_is_still_there_is_kept_though_this_run_does_not_read_it(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.write("x.jsonl", line("x", "X"))
    bench.ingest(kind="auto", kinds=kinds())
    report = bench.ingest(kind="markdown", kinds=kinds(), prune=True, now=LATER)
    assert (report.pruned, names(bench)) == (0, ["a.md", "x"])


def test_a_source_that_fails_is_not_withdrawn(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.write("b.md", "# B")
    bench.write("x.jsonl", line("x", "X") + line("y", "Y"))
    bench.ingest(kind="auto", kinds=kinds())
    bench.write("b.md", b"\xff")
    bench.write("x.jsonl", line("x", "X") + "{broken\n")
    report = bench.ingest(kind="auto", kinds=kinds(), prune=True, now=LATER)
    assert (report.pruned, names(bench)) == (0, ["a.md", "b.md", "x", "y"])


def test_a_record_that_vanished_from_its_file_is_withdrawn(bench: Bench) -> None:
    bench.write("x.jsonl", line("x", "X") + line("y", "Y"))
    bench.write("z.jsonl", line("z", "Z"))
    bench.ingest(kind="lines", kinds=kinds())
    bench.write("x.jsonl", line("x", "X"))
    bench.forget()
    report = bench.ingest(kind="lines", kinds=kinds(), prune=True, now=LATER)
    assert (report.pruned, names(bench)) == (1, ["x", "z"])
    (bench.docs / "x.jsonl").unlink()
    assert bench.ingest(kind="lines", kinds=kinds(), prune=True, now=LATER).pruned == 1
    assert names(bench) == ["z"]


@pytest.mark.parametrize("every_file", [False, True])
@pytest.mark.parametrize("kept", [line("x", "X"), ""])
def test_a_record_that_vanished_before_an_ordinary_run_is_withdrawn_by_the_next(
    bench: Bench, kept: str, every_file: bool
) -> None:
    bench.write("x.jsonl", line("x", "X") + line("y", "Y"))
    bench.write("z.jsonl", line("z", "Z"))
    bench.grow_old()
    bench.ingest(kind="lines", kinds=kinds())
    bench.write("x.jsonl", kept)
    bench.grow_old()
    assert bench.ingest(kind="lines", kinds=kinds(), now=LATER).pruned == 0
    assert names(bench) == ["x", "y", "z"]
    bench.ingest(kind="lines", kinds=kinds(), prune=True, every_file=every_file, now=LATER)
    assert names(bench) == (["x", "z"] if kept else ["z"])
    assert {stone.reason for stone in bench.manifest().tombstones} == {"its file does not hold it any more"}


def test_all_partitions_of_a_rule_are_pruned(bench: Bench) -> None:
    bench.write("a.md", "# A")
    path = bench.write("b.md", "# B")
    bench.ingest(to="by-prefix")
    path.unlink()
    assert bench.ingest(to="by-prefix", prune=True, now=LATER).pruned == 1
    bench.assert_valid()
    key = key_of_source("b.md", None)
    assert names(bench, key[:2]) == []
    assert [stone.parent_id for stone in bench.manifest(key[:2]).tombstones] == [key]


@pytest.mark.promise(6)
@pytest.mark.parametrize("state", ["empty", "missing", "unreadable"])
def test_a_folder_that_is_empty_or_cannot_be_read_withdraws_nothing(bench: Bench, state: str) -> None:
    bench.write("a.md", "# A")
    bench.write("sub/b.md", "# B")
    bench.ingest()
    before = bench.bytes_on_bus()
    paths = [bench.docs]
    if state == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        (bench.docs / "sub").chmod(0)
    else:
        shutil.rmtree(bench.docs)
        if state == "empty":
            bench.docs.mkdir()
    try:
        with pytest.raises(IngestRefused, match=r"holds no source|is not there|cannot be listed"):
            bench.ingest(paths, prune=True, now=LATER)
    finally:
        if state == "unreadable":
            (bench.docs / "sub").chmod(0o700)
    assert bench.bytes_on_bus() == before


def test_a_folder_that_was_emptied_goes_where_the_number_is_said(bench: Bench) -> None:
    kept, emptied = bench.write("kept/a.md", "# A"), bench.write("emptied/b.md", "# B")
    bench.write("emptied/c.md", "# C")
    folders = [kept.parent, emptied.parent]
    bench.ingest(folders)
    before = bench.bytes_on_bus()
    for file in emptied.parent.iterdir():
        file.unlink()
    for paths in (folders, folders[1:]):
        with pytest.raises(IngestRefused, match=r"emptied holds no source.*--allow-deletions 2"):
            bench.ingest(paths, prune=True, allow_deletions=1, now=LATER)
    assert bench.bytes_on_bus() == before
    report = bench.ingest(folders[1:], prune=True, allow_deletions=2, now=LATER)
    assert (report.pruned, names(bench)) == (2, ["kept/a.md"])
    bench.assert_valid()
    assert not bench.ingest(folders[1:], prune=True, now=LATER).written, "there is nothing more to lose"


@pytest.mark.promise(6)
def test_a_folder_that_never_held_a_source_is_nothing_to_prune_by(bench: Bench) -> None:
    bench.write("full/a.md", "# A")
    bench.write("other/x.bin", b"no source")
    folders = [bench.docs / "full", bench.docs / "other"]
    with pytest.raises(IngestRefused, match="other holds no source, and nothing was ever read from it"):
        bench.ingest(folders, prune=True)
    assert not bench.root.partition_keys()
    assert bench.ingest(folders).processed == 1
    assert bench.ingest(folders, prune=True).unchanged == 1, "now it is known"


def test_an_unlistable_folder_is_told_by_its_name_and_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the test above, where everybody may read everything."""
    bench.write("a.md", "# A")
    bench.write("sub/b.md", "# B")
    bench.ingest()
    real = os.scandir

    def deny(path: str) -> object:
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr("os.scandir", deny)
    with pytest.raises(IngestRefused, match=r"^sub/ cannot be listed"):
        bench.ingest(prune=True, now=LATER)
    report = bench.ingest(now=LATER)
    assert [(failure.source_uri, failure.code) for failure in report.failures] == [("sub/", "SOURCE_UNREADABLE")]
    assert names(bench) == ["a.md", "sub/b.md"]


def folders(bench: Bench) -> tuple[Path, Path]:
    """Two that are both called `docs`; each has a document of its own."""
    for name in ("x/docs/a.md", "x/docs/only.md", "y/docs/b.md"):
        bench.write(name, f"# {name}")
    return bench.docs / "x" / "docs", bench.docs / "y" / "docs"


@pytest.mark.promise(6)
@pytest.mark.parametrize("rules", [("c2", "c2"), ("c2", "by-type"), ("by-type", "md")])
@pytest.mark.parametrize("is_read_first", [False, True])
def test_another_folder_of_the_same_name_is_not_what_vanished(
    bench: Bench, rules: tuple[str, str], is_read_first: bool
) -> None:
    x, y = folders(bench)
    bench.ingest([x], base=None, to=rules[0])
    if is_read_first:
        bench.ingest([y], base=None, to=rules[1], now=LATER)
    before = bench.bytes_on_bus()
    with pytest.raises(IngestRefused, match=rf"docs/ was read from {x} too.*nothing was written"):
        bench.ingest([y], base=None, to=rules[1], prune=True, now=LATER)
    assert bench.bytes_on_bus() == before
    (x / "only.md").unlink()
    assert bench.ingest([x, y], base=None, to=rules[1], prune=True, now=LATER).pruned == 1, "both of them are"


def test_the_same_folder_is_the_same_however_it_is_called(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = folders(bench)
    bench.ingest([x], base=None)
    (bench.docs / "link").symlink_to(x.parent)
    (x / "only.md").unlink()
    monkeypatch.chdir(x.parent)
    for path in (Path("docs"), bench.docs / "link" / "docs"):
        assert not bench.ingest([path], base=None, now=LATER).failed
    assert bench.ingest([Path("docs")], base=None, prune=True, now=LATER).pruned == 1


def test_other_partitions_tenants_and_names_stay_apart(bench: Bench) -> None:
    x, y = folders(bench)
    bench.ingest([x], base=None, to="one")
    bench.ingest([x], base=None, to="two", tenant="acme")
    bench.ingest([x], base=bench.docs, to="two")
    bench.ingest([y], base=None, to="two", prune=True, now=LATER)
    bench.ingest([y], base=bench.docs, to="two", prune=True, now=LATER)
    assert names(bench, "one") == ["docs/a.md", "docs/only.md"]


@pytest.mark.parametrize(("before", "after"), [("one", "one"), ("one", "by-type"), ("by-type", "md")])
def test_a_folder_that_was_moved_is_taken_by_an_ordinary_run(bench: Bench, before: str, after: str) -> None:
    x, y = folders(bench)
    bench.ingest([x], base=None, to=before)
    shutil.rmtree(y)
    shutil.move(x, y)
    (y / "only.md").unlink()
    with pytest.raises(IngestRefused, match="ingest once without --prune"):
        bench.ingest([y], base=None, to=after, prune=True, now=LATER)
    bench.ingest([y], base=None, to=after, now=LATER)
    assert bench.ingest([y], base=None, to=after, prune=True, now=LATER).pruned == 1
    assert bench.ingest([y], base=None, to=after, prune=True, now=LATER).documents == 1


def test_a_folder_inside_another_has_its_place_too(bench: Bench) -> None:
    bench.write("x/docs/sub/a.md", "# A")
    bench.write("y/docs/sub/b.md", "# B")
    bench.ingest([bench.docs / "x" / "docs"], base=None)
    y = bench.docs / "y"
    with pytest.raises(IngestRefused, match=r"docs/ was read from"):
        bench.ingest([y / "docs" / "sub"], base=y, prune=True, now=LATER)
    x = bench.docs / "x"
    assert not bench.ingest([x / "docs" / "sub"], base=x, prune=True, now=LATER).written


def test_a_file_that_was_named_by_itself_has_its_place_too(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.write("sub/b.md", "# B")
    sub = bench.docs / "sub"
    bench.ingest([bench.docs / "a.md", sub / "b.md"], base=None)
    with pytest.raises(IngestRefused, match=r"a\.md was read from .*a\.md too"):
        bench.ingest([sub], base=sub, prune=True, now=LATER)
    assert names(bench) == ["docs/a.md", "sub/b.md"]


@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_in_place_of_a_file_is_not_that_file(bench: Bench, linked: bool) -> None:
    bench.write("a.md", "# A")
    path = bench.write("c.md", "# C")
    bench.ingest()
    path.unlink()
    if linked:
        path.symlink_to(bench.docs.parent, target_is_directory=True)
    else:
        bench.write("c.md/d.md", "# D")
    assert bench.ingest(prune=True, now=LATER).pruned == 1
    assert names(bench) == (["a.md"] if linked else ["a.md", "c.md/d.md"])


@pytest.mark.parametrize("named", [False, True])
def test_a_folder_in_place_of_which_a_link_stands_is_there_if_it_is_named(bench: Bench, named: bool) -> None:
    bench.write("a.md", "# A")
    bench.write("sub/deep/b.md", "# B")
    bench.ingest()
    shutil.move(bench.docs / "sub", bench.docs.parent / "elsewhere")
    (bench.docs / "sub").symlink_to(bench.docs.parent / "elsewhere", target_is_directory=True)
    paths = [bench.docs, bench.docs / "sub"] if named else [bench.docs]
    assert bench.ingest(paths, prune=True, now=LATER).pruned == (not named)
    assert names(bench) == (["a.md", "sub/deep/b.md"] if named else ["a.md"])


def test_a_folder_of_records_is_there_while_it_is_a_folder(bench: Bench) -> None:
    bench.write("a.md", "# A")
    for name in ("x", "y"):
        bench.write(f"records/{name}.json", json.dumps(parsed(f"{name}.pdf")))
    bench.ingest(kind="auto")
    assert bench.ingest(prune=True, now=LATER).pruned == 0
    shutil.rmtree(bench.docs / "records")
    bench.write("records", "now a file of no kind")
    assert bench.ingest(prune=True, now=LATER).pruned == 2


def test_what_is_not_found_any_more_is_told(bench: Bench) -> None:
    bench.write("a.md", "# A")
    for name in ("b.md", "sub/c.md", "x.jsonl"):
        bench.write(name, line("x", "X") + line("y", "Y") if name == "x.jsonl" else "# T")
    assert bench.ingest(kind="auto", kinds=kinds()).missing == 0
    (bench.docs / "b.md").rename(bench.docs / "renamed.md")
    (bench.docs / "x.jsonl").write_text(line("x", "X"))
    report = bench.ingest(kind="auto", kinds=kinds(), now=LATER)
    assert (report.missing, report.missing_from, report.pruned) == (2, ("b.md", "y"), 0)
    (bench.docs / "x.jsonl").unlink()
    report = bench.ingest(kind="auto", kinds=kinds(), now=LATER)
    assert (report.missing, report.missing_from) == (3, ("b.md", "x.jsonl"))
    assert not report.written
    pruned = bench.ingest(kind="auto", kinds=kinds(), prune=True, now=LATER)
    assert (pruned.missing, pruned.pruned) == (0, 3)
    assert bench.ingest(kind="auto", kinds=kinds(), now=LATER).missing == 0


def test_nothing_is_said_to_be_missing_where_nobody_knows_or_asked(bench: Bench) -> None:
    x, y = folders(bench)
    bench.ingest([x], base=None)
    assert bench.ingest([y], base=None, now=LATER).missing == 0, "another folder of that name"
    (x / "only.md").unlink()
    assert bench.ingest([x / "a.md"], base=None, now=LATER).missing == 0, "only a file was named"
    assert bench.ingest([x, y], base=None, now=LATER).missing_from == ("docs/only.md",)
    bench.write("z/gone.md", "# Z")
    bench.ingest([bench.docs / "z"], base=None)
    (bench.docs / "z" / "gone.md").unlink()
    assert bench.ingest([bench.docs / "z"], base=None, now=LATER).missing_from == ("z/gone.md",), "also if it is empty"
