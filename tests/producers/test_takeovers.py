"""Two folders of one name in different runs: neither takes over what came from the other, while both are there."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from chunksink.producers.errors import IngestRefused
from tests.producers.bench import LATER, Bench
from tests.producers.lines import kinds, line


@pytest.fixture
def folders(bench: Bench) -> tuple[Path, Path]:
    """Both are called `docs`, and each has a plan."""
    bench.write("work/docs/plan.md", "Work.")
    bench.write("home/docs/plan.md", "Home.")
    return bench.docs / "work" / "docs", bench.docs / "home" / "docs"


@pytest.mark.promise(6)
@pytest.mark.parametrize("rules", [("c2", "c2"), ("c2", "other"), ("c2", "by-type"), ("by-type", "md")])
@pytest.mark.parametrize("is_named_alone", [False, True])
def test_another_file_of_the_same_name_is_refused(
    bench: Bench, folders: tuple[Path, Path], rules: tuple[str, str], is_named_alone: bool
) -> None:
    first, second = (folder / "plan.md" if is_named_alone else folder for folder in folders)
    bench.ingest([first], base=None, to=rules[0])
    before, attempts = bench.bytes_on_bus(), len(bench.attempts())
    with pytest.raises(IngestRefused, match=r"nothing was written") as caught:
        bench.ingest([second], base=None, to=rules[1], now=LATER)
    assert (bench.bytes_on_bus(), len(bench.attempts())) == (before, attempts)
    said = str(caught.value)
    assert f"{folders[0] / 'plan.md'} was read as" in said
    assert f"{folders[1] / 'plan.md'} would be called the same" in said
    assert "--base" in said
    assert "--tenant" in said
    assert "partition" not in said
    assert not bench.ingest([first], base=None, to=rules[0], now=LATER).failed, "whose it is goes on"


@pytest.mark.parametrize("with_base", [False, True])
def test_what_the_refusal_advises_keeps_both(bench: Bench, folders: tuple[Path, Path], with_base: bool) -> None:
    bench.ingest([folders[0]], base=None)
    said: dict[str, Any] = {"base": bench.docs} if with_base else {"base": None, "tenant": "acme"}
    bench.ingest([folders[1]], now=LATER, **said)
    assert sorted(record["text"] for record in bench.records()) == ["Home.", "Work."]
    bench.write("work/docs/plan.md", "Work, edited.")
    assert bench.ingest([folders[0]], base=None, now=LATER).processed == 1


def test_a_folder_that_was_moved_goes_on(bench: Bench, folders: tuple[Path, Path]) -> None:
    work, home = folders
    bench.ingest([work], base=None)
    shutil.rmtree(home)
    shutil.move(work, home)
    bench.write("home/docs/plan.md", "Edited after the move.")
    assert bench.ingest([home], base=None, now=LATER).processed == 1
    bench.write("work/docs/plan.md", "Somebody else's.")
    with pytest.raises(IngestRefused, match="still there"):
        bench.ingest([work], base=None, now=LATER)


def test_the_same_file_is_the_same_by_whatever_link(bench: Bench, folders: tuple[Path, Path]) -> None:
    work, home = folders
    bench.ingest([work], base=None)
    (home / "plan.md").unlink()
    os.link(work / "plan.md", home / "plan.md")
    assert not bench.ingest([home], base=None, now=LATER).written
    (bench.docs / "linked").symlink_to(work.parent)
    assert not bench.ingest([bench.docs / "linked" / "docs"], base=None, now=LATER).written


def test_a_link_that_leads_to_the_next_release_goes_on(bench: Bench) -> None:
    bench.write("1/docs/a.md", "First.")
    bench.write("2/docs/a.md", "Second.")
    current = bench.docs / "current"
    current.symlink_to("1")
    bench.ingest([current / "docs"], base=None)
    current.unlink()
    current.symlink_to("2")
    assert bench.ingest([current / "docs"], base=None, now=LATER).processed == 1
    assert bench.texts("docs/a.md") == ["Second."]


def test_a_new_file_beside_does_not_stop_whose_it_is(bench: Bench) -> None:
    """Both folders were read, and had nothing of the same name then."""
    bench.write("work/docs/a.md", "A.")
    bench.write("home/docs/b.md", "B.")
    work, home = bench.docs / "work" / "docs", bench.docs / "home" / "docs"
    bench.ingest([work], base=None)
    bench.ingest([home], base=None, now=LATER)
    bench.write("work/docs/b.md", "Work's b.")
    with pytest.raises(IngestRefused, match=r"home/docs/b\.md was read as 'docs/b\.md'"):
        bench.ingest([work], base=None, now=LATER)
    bench.write("home/docs/b.md", "Edited.")
    assert bench.ingest([home], base=None, now=LATER).processed == 1


def test_what_stands_nowhere_is_nobodys(bench: Bench, folders: tuple[Path, Path]) -> None:
    bench.ingest([folders[0]], base=None)
    shutil.rmtree(bench.root.path)
    assert bench.ingest([folders[1]], base=None, now=LATER).processed == 1


def test_files_of_records_are_no_others_either(bench: Bench) -> None:
    bench.write("work/docs/x.jsonl", line("x", "Work."))
    bench.write("home/docs/x.jsonl", line("x", "Home."))
    said: dict[str, Any] = {"base": None, "kind": "lines", "kinds": kinds()}
    bench.ingest([bench.docs / "work" / "docs"], **said)
    with pytest.raises(IngestRefused, match="still there"):
        bench.ingest([bench.docs / "home" / "docs"], now=LATER, **said)
    bench.write("work/docs/x.jsonl", line("x", "Edited."))
    assert bench.ingest([bench.docs / "work" / "docs"], now=LATER, **said).processed == 1


def test_many_files_that_were_named_alone_are_looked_up_by_their_names(bench: Bench) -> None:
    paths = [bench.write(f"{number}.md", f"Text {number}.") for number in range(50)]
    bench.ingest(paths[:30], base=None)
    assert bench.ingest(paths, base=None, now=LATER).processed == 20
