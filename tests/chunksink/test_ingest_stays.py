"""`chunksink ingest`: what it leaves as it is, its files being gone or of another tenant, and how it says so."""

from __future__ import annotations

from chunksink.exits import Exit
from tests.chunksink.shell import Shell, write


def test_what_is_not_found_any_more_is_told(shell: Shell) -> None:
    for name in "abcdef":
        write(shell, f"docs/{name}.md", f"# {name}")
    shell("ingest", "docs")
    (shell.folder / "docs" / "b.md").rename(shell.folder / "docs" / "z.md")
    ended = shell("ingest", "docs")
    assert (ended.code, ended.err) == (
        Exit.OK,
        "1 source was not found there any more and keeps its chunks; --prune withdraws it: docs/b.md\n",
    )
    assert "1 file new or changed, 5 unchanged; now 7 chunks of 7 sources, 1 of them not from these files" in ended.out
    for name in "acd":
        (shell.folder / "docs" / f"{name}.md").unlink()
    ended = shell("ingest", "docs")
    assert ended.err == (
        "4 sources were not found there any more and keep their chunks; --prune withdraws them: "
        "docs/a.md, docs/b.md, docs/c.md, ...\n"
    )
    told = shell("ingest", "docs", "--json").json
    assert (told["missing"], told["missing_from"]) == (4, [f"docs/{name}.md" for name in "abcd"])
    assert shell("ingest", "docs", "--prune").err == ""


def test_what_was_read_from_a_folder_that_is_gone_is_told(shell: Shell) -> None:
    for name in "ab":
        write(shell, f"notes/{name}.md", f"# {name}")
        write(shell, f"other/{name}.md", f"# other {name}")
    shell("ingest", "notes", "other")
    (shell.folder / "notes").rename(shell.folder / "renamed")
    told = (
        f"2 sources were read from {shell.folder}/notes, which is not there any more, and keep their chunks; an ingest "
        "of that folder with --prune --allow-deletions 2 withdraws them\n"
    )
    assert shell("ingest", "renamed").err == shell("ingest", "other").err == told
    assert shell("ingest", "renamed", "--json").json["of_gone"] == {f"{shell.folder}/notes": 2}
    withdrawn = shell("ingest", "notes", "--prune", "--allow-deletions", "2")
    assert "2 sources withdrawn; now 4 chunks of 4 sources" in withdrawn.out
    assert shell("ingest", "renamed", "other").err == ""
    (shell.folder / "renamed").rename(shell.folder / "other" / "deeper")
    ended = shell("ingest", "other")
    assert "2 sources were read from" in ended.err
    assert "renamed, which is not there" in ended.err


def test_folders_that_are_gone_are_told_together(shell: Shell) -> None:
    for folder in ("one/docs", "two/docs", "notes", "keep"):
        write(shell, f"{folder}/{folder[:3]}.md", f"# {folder}")
        shell("ingest", folder)
    for folder in ("one", "two", "notes"):
        (shell.folder / folder).rename(shell.folder / f"was-{folder}")
    told = shell("ingest", "keep").err
    assert told.startswith("3 sources were read from ")
    assert "which are not there any more, and keep their chunks; an ingest of each such folder with --prune" in told
    assert f"{shell.folder}/notes" in told
    assert "/docs" in told


def test_a_folder_of_the_same_name_elsewhere_has_what_the_one_that_is_gone_gave(shell: Shell) -> None:
    write(shell, "one/docs/a.md", "# a")
    write(shell, "two/docs/b.md", "# b")
    shell("ingest", "one/docs")
    (shell.folder / "one").rename(shell.folder / "moved")
    assert shell("ingest", "two/docs").err == ""


def test_what_the_same_files_said_for_another_tenant_is_told(shell: Shell) -> None:
    for name in "ab":
        write(shell, f"docs/{name}.md", f"# {name}")
    shell("ingest", "docs", "--tenant", "acme")
    write(shell, "docs/a.md", "# edited")
    ended = shell("ingest", "docs")
    assert "not from these files" not in ended.out
    assert ended.err == (
        "2 sources were read from there for tenant acme and stay as they are: only an ingest with --tenant acme reads "
        "them again, and with --exclude '*' --prune --allow-deletions 2 it withdraws them\n"
    )
    (shell.folder / "docs" / "b.md").unlink()
    assert shell("ingest", "docs", "--prune", "--json").json["of_others"] == {"acme": 2}
    withdrawn = shell("ingest", "docs", *["--tenant", "acme", "--exclude", "*", "--prune", "--allow-deletions", "2"])
    assert "2 sources withdrawn; now 1 chunk of 1 source" in withdrawn.out
    assert "1 source was read from there for no tenant and stays as it is: only an ingest without --tenant" in (
        withdrawn.err
    )
    assert shell("ingest", "docs").err == ""


def test_of_files_named_alone_and_of_several_tenants_less_is_said(shell: Shell) -> None:
    write(shell, "docs/a.md", "# a")
    for tenant in ("acme", "beta"):
        shell("ingest", "docs/a.md", "--tenant", tenant)
    assert shell("ingest", "docs").err == (
        "2 sources were read from there for other tenants (acme 1, beta 1) and stay as they are: only an ingest for "
        "the same tenant reads them again, and with --exclude '*' --prune --allow-deletions NUMBER it withdraws them\n"
    )
    assert shell("ingest", "docs/a.md").err.endswith("only an ingest for the same tenant reads them again\n")
