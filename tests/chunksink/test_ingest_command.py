"""`chunksink ingest` and what it prints: which files it takes, skips or refuses, and how its sync ends."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

import chunksink
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.reader import read_partition
from chunksink.chunkbus.runlog import read_run
from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell, write
from tests.support.bus import source


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("",), ""),
        (("docs", ""), ""),
        (("docs", "--base", "nowhere"), "nowhere"),
        (("docs", "--base", "docs/a.md"), "docs/a.md"),
        (("docs", "--exclude", "!"), "--exclude takes patterns as in a .gitignore file"),
        (("docs", "--tenant", ""), "--tenant"),
        (("docs", "--as", "nonsense"), "nonsense"),
        (("docs", "--field", "body=x"), "the roles are text, html, id, title, address"),
        (("docs", "--field", "text"), "write ROLE=NAME"),
        (("docs", "--field", "text=x", "--as", "markdown"), "--as markdown"),
        (("docs", "--field", "text=x", "--field", "text=y"), "--field sets text twice"),
    ],
)
def test_ingest_with_contradicting_options_is_a_usage_error_and_writes_nothing(
    shell: Shell, arguments: tuple[str, ...], expected: str
) -> None:
    write(shell, "docs/a.md", "# A")
    refused = shell("ingest", *arguments)
    assert (refused.code, refused.out, expected in refused.err) == (Exit.USAGE, "", True)
    assert not shell.root.path.exists()
    assert not shell.home.exists()


def test_addresses_are_not_fetched(shell: Shell) -> None:
    refused = shell("ingest", "https://example.com/a")
    assert (refused.code, refused.out) == (Exit.USAGE, "")
    assert "Error: https://example.com/a is a URL" in refused.err


def test_chunks_of_the_same_files_in_another_partition_are_noted(shell: Shell) -> None:
    write(shell, "docs/a.md", "# A")
    assert shell("ingest", "docs", "--partition", "mine", "--json").json["elsewhere"] == []
    ended = shell("ingest", "docs", "--prune", "--json")
    assert ended.json["elsewhere"] == ["mine"]
    assert "--partition mine" in shell("ingest", "docs").err
    write(shell, "docs/b.md", "# B")
    assert shell("ingest", "docs", "--tenant", "acme", "--partition", "acme", "--json").json["elsewhere"] == []


def test_failure_is_reported_with_code_place_and_reason(shell: Shell) -> None:
    write(shell, "docs/a.md", "# A")
    write(shell, "docs/b.md", b"\xff")
    write(shell, "docs/rows.jsonl", '{"id": 1, "text": "Words."}\n{broken\n')
    ended = shell("ingest", "docs", "--json")
    assert ended.code == Exit.INVALID_INPUT
    codes = [failure["code"] for failure in ended.json["failures"]]
    assert ended.json["left_out"] == dict.fromkeys(codes, 1)
    assert [(failure["source_uri"], failure["line"]) for failure in ended.json["failures"]] == [
        ("docs/b.md", None),
        ("docs/rows.jsonl", 2),
    ]
    printed = shell("ingest", "docs")
    assert printed.code == Exit.INVALID_INPUT
    assert "left out" not in printed.err, "what is printed line by line is not counted too"
    assert f"{codes[1]} docs/rows.jsonl:2 " in printed.err
    (record,) = [path for path in (shell.home / "runs").iterdir() if ended.json["run_id"] in path.name]
    assert [event["code"] for event in read_run(record) if event["event"] == "failure"] == codes


# -- files and folders -------------------------------------------------------------------------------------------------


def test_skipped_files_are_counted_by_suffix(shell: Shell) -> None:
    for suffix, number in ((".log", 9), (".csv", 3), ("", 2), (".PY", 1), (".ipynb", 1), (".7", 1)):
        for n in range(number):
            write(shell, f"docs/{n}/other{suffix}", "x")
    write(shell, "docs/.hidden", "x")
    write(shell, "docs/a.md", "# A")
    ended = shell("ingest", "docs", "docs/1")
    assert ended.code == Exit.OK
    assert ended.err == ""
    assert (
        "skipped 17 files of other kinds (.log 9, .csv 3, no suffix 2, .ipynb 1, .py 1, others 1); to read them: "
        "jupyter nbconvert --to markdown (.ipynb) or --as text (.log, no suffix) "
        "or --include PATTERN (.csv as rows, and other plain text)\n"
    ) in ended.out
    expected = shell("ingest", "docs", "--json").json["other_kinds"]
    assert expected == {".log": 9, ".csv": 3, "no suffix": 2, ".ipynb": 1, ".py": 1, "others": 1}


def test_many_left_out_files_are_counted_by_folder_with_the_remedy(shell: Shell) -> None:
    for name in ("x/1", "x/2", "x/3", "y/z/1", "1"):
        write(shell, f"docs/{name}.json", '{"user": "ann"}')
    write(shell, "docs/a.md", "# A")
    ended = shell("ingest", "docs")
    assert (ended.code, ended.err) == (Exit.OK, "")
    (line,) = (line for line in ended.out.splitlines() if line.startswith("left out: "))
    assert "RECORD_FORM_UNKNOWN 5 (3 in docs/x/, 1 in docs/, 1 in docs/y/z/; " in line
    assert "--field text=NAME" in line
    assert len(line) < 200
    report = shell("ingest", "docs", "--json").json
    assert report["left_out_folders"] == {"RECORD_FORM_UNKNOWN": {"docs/x/": 3, "docs/": 1, "docs/y/z/": 1}}
    write(shell, "docs/z/1.json", '{"user": "ann"}')
    assert "RECORD_FORM_UNKNOWN 6 (3 in docs/x/, 1 in docs/, 1 in docs/y/z/, ...; " in shell("ingest", "docs").out


def test_failures_are_not_counted_as_left_out(shell: Shell) -> None:
    for name in ("a.csv", "x/b.csv", "y/c.csv"):
        write(shell, f"docs/{name}", "user\nann\n")
    command = ("ingest", "docs", "--include", "*.csv")
    assert "left out" not in shell(*command).out
    for name in ("x/1", "x/2", "1"):
        write(shell, f"docs/{name}.json", '{"user": "ann"}')
    ended = shell(*command)
    assert ended.err.count("RECORD_FORM_UNKNOWN docs/") == 3
    assert "left out: RECORD_FORM_UNKNOWN 3 (2 in docs/x/, 1 in docs/; " in ended.out


def test_patterns_that_match_nothing_are_noted_in_one_line(shell: Shell) -> None:
    write(shell, "docs/a.md", "# A")
    command = ("ingest", "docs", "--exclude", "geheim/", "--exclude", "!b.md", "--include", "*.toml")
    expected = ["--exclude geheim/", "--include *.toml"]
    assert shell(*command).err.startswith(f"{', '.join(expected)} matched nothing; ")
    assert shell(*command, "--json").json["unmatched"] == expected


def test_as_text_reads_text_files_of_other_suffixes(shell: Shell) -> None:
    names = ["README", "a.rst", "b.ADOC", "c.org", "d.log", "e.txt"]
    for name in (*names, "f.md", "g.csv", "h.1", ".hidden"):
        write(shell, f"docs/{name}", "Words.")
    assert shell("ingest", "docs", "--json").json["sources"] == 5
    assert "2 files new or changed, 4 files unchanged" in shell("ingest", "docs", "--as", "text").out
    sources = {attempt["source_uri"] for attempt in cast(Any, shell("ledger", "--json").json)}
    assert sources == {f"docs/{name}" for name in (*names, "f.md")}
    again = shell("ingest", "docs", "--prune", "--json").json
    assert (again["pruned"], again["documents"]) == (0, 7), "they are there"


def test_an_invalid_partition_is_refused_with_the_remedy(shell: Shell) -> None:
    for name in ("docs/a.md", "notes/b.md"):
        write(shell, name, f"# {name}")
        shell("ingest", name.partition("/")[0])
    chunks, manifest = shell.root.chunks_file("documents"), shell.root.manifest_file("documents")
    before = chunks.read_bytes()
    chunks.write_bytes(before[:-9])
    refused = shell("ingest", "docs")
    assert refused.code == Exit.USAGE
    names = [str(path.relative_to(shell.folder)) for path in (manifest, chunks)]
    assert f"move {' and '.join(names)} away" in refused.err
    assert "move its files away" in shell("validate").err
    chunks.unlink()
    refused = shell("ingest", "docs")
    assert f"move {names[0]} away" in refused.err
    assert "move the manifest away" in shell("validate").err
    manifest.unlink()
    assert shell("ingest", "docs", "notes", "--json").json["documents"] == 2
    assert shell("validate").code == Exit.OK


def test_chunks_of_a_source_in_two_files_are_reported_with_the_remedy(shell: Shell) -> None:
    for number in (1, 2):
        chunk = {"page_content": f"Text {number}.", "metadata": {"source": "notes.md"}}
        write(shell, f"part{number}.jsonl", json.dumps(chunk) + "\n")
    ended = shell("ingest", "part1.jsonl", "part2.jsonl")
    assert ended.code == Exit.OK
    assert f"left out: SOURCE_IN_ANOTHER_FILE 1 ({shell.folder.name}/part1.jsonl); " in ended.out


def test_validate_with_chunking_finds_breaches(shell: Shell) -> None:
    write(shell, "docs/a.md", "# A\n\nText.")
    shell("ingest", "docs")
    assert shell("validate", "--chunking").code == Exit.OK
    chunks = shell.root.chunks_file("documents")
    manifest = shell.root.manifest_file("documents")
    before = chunks.read_bytes()
    after = before.replace(b'"chunk_path":"/A"', b'"chunk_path":"/B"')
    chunks.write_bytes(after)
    digests = (sha256(data).hexdigest().encode() for data in (before, after))
    manifest.write_bytes(manifest.read_bytes().replace(*digests))
    ended = shell("validate", "--chunking", "--json")
    assert ended.code == Exit.INVALID_INPUT
    assert any(finding["code"] == "CHUNKING_FAILED" for finding in ended.json["findings"])


# -- missing files, and the sync ---------------------------------------------------------------------------------------


def test_prune_of_an_empty_folder_needs_allow_deletions(quick_shell: Shell) -> None:
    """The number also applies to the sync."""
    for number in range(12):
        write(quick_shell, f"docs/{number}.md", f"Text {number}.")
    assert quick_shell("ingest", "docs", "--sync").code == Exit.OK
    for file in (quick_shell.folder / "docs").iterdir():
        file.unlink()
    reported = quick_shell("ingest", "docs")
    assert (reported.code, "--prune removes them" in reported.err) == (Exit.OK, True)
    refused = quick_shell("ingest", "docs", "--prune", "--sync")
    assert (refused.code, "--allow-deletions 12" in refused.err) == (Exit.BRAKE, True)
    ended = quick_shell("ingest", "docs", "--prune", "--sync", "--allow-deletions", "12", "--json")
    assert (ended.code, ended.json["ingest"]["pruned"], quick_shell.texts()) == (Exit.OK, 12, [])


def test_ingest_with_sync_has_the_exit_code_of_the_sync(quick_shell: Shell) -> None:
    for number in range(12):
        write(quick_shell, f"docs/{number}.md", f"Text {number}.")
    quick_shell.commit("theirs", source("theirs.md", "Passed on."))
    assert quick_shell("ingest", "docs", "--sync").code == Exit.OK
    for number in range(11):
        (quick_shell.folder / f"docs/{number}.md").unlink()
    assert quick_shell("ingest", "docs", "--prune", "--sync").code == Exit.BRAKE
    assert len(quick_shell.texts()) == 13, "the brake holds"
    quick_shell.cut_off("theirs")
    write(quick_shell, "docs/11.md", "New text.")
    assert quick_shell("ingest", "docs", "--sync").code == Exit.INVALID_INPUT
    assert {"New text.", "Passed on."} < set(quick_shell.texts())


# -- rows --------------------------------------------------------------------------------------------------------------


def chunks_in(root: Path) -> list[Record]:
    return [record for _, record in read_partition(FolderRoot(root), "documents")]


def test_rows_are_read_from_json_and_from_named_csv_files(shell: Shell) -> None:
    write(shell, "in/rows.jsonl", '{"id": 1, "title": "Whales", "text": "Whales breathe air."}\n')
    write(shell, "in/rows.csv", 'id,title,text\n1,Seals,"Seals sleep, too."\n')
    write(shell, "in/prices.csv", "day,price\n1,2\n")
    first = shell("ingest", "in", "--json").json
    assert (first["documents"], first["failures"], first["other_kinds"]) == (1, [], {".csv": 2})
    assert shell("ingest", "in/rows.csv", "--json").json["documents"] == 2
    refused = shell("ingest", "in/prices.csv", "--chunks", "third")
    assert (refused.code, "RECORD_FORM_UNKNOWN" in refused.err) == (Exit.INVALID_INPUT, True)
    included = shell("ingest", "in", "--include", "*.csv", "--chunks", "other", "--json")
    assert (included.code, included.json["documents"]) == (Exit.INVALID_INPUT, 2)
    assert [failure["source_uri"] for failure in included.json["failures"]] == ["in/prices.csv"]
    assert shell("ingest", "in/prices.csv", "--as", "text", "--chunks", "third").code == Exit.OK
    assert shell("ingest", "in/prices.csv", "--chunks", "third").code == Exit.OK, "it stays what it was"


def test_file_read_as_rows_keeps_its_format(shell: Shell) -> None:
    write(shell, "in/rows.csv", "id,title,text\n1,A,alpha\n2,B,beta\n")
    assert shell("ingest", "in/rows.csv", "--json").json["documents"] == 2
    write(shell, "in/rows.csv", "id,title,story\n1,A,alpha\n2,B,beta\n")
    ended = shell("ingest", "in/rows.csv", "--json")
    assert (ended.code, ended.json["failed"], ended.json["documents"]) == (Exit.INVALID_INPUT, 2, 2)
    assert len(chunks_in(shell.folder / "chunks")) == 2
    framework = '{"id": "7", "text": "Words.", "metadata": {"source": "a.md"}}\n'
    write(shell, "in/framework.jsonl", framework)
    assert shell("ingest", "in/framework.jsonl", "--as", "rows", "--chunks", "b", "--json").json["documents"] == 1
    write(shell, "in/framework.jsonl", framework.replace("Words", "Other words"))
    assert shell("ingest", "in/framework.jsonl", "--chunks", "b", "--json").json["documents"] == 1
    [chunk] = chunks_in(shell.folder / "b")
    assert (chunk["text"], chunk["provenance"]["parser"]["parser_name"]) == ("Other words.", "rows")


def test_field_options_work_with_several_processes(shell: Shell) -> None:
    for number in range(3):
        write(shell, f"in/{number}.csv", f"Job ID,Review Text\n{number},Words of {number}.\n")
    fields = ("--field", "text=Review Text", "--field", "id=Job ID")
    first = shell("ingest", "in", *fields, "--jobs", "2", "--json").json
    assert (first["documents"], first["failures"]) == (3, [])
    assert not shell("ingest", "in", *fields, "--json").json["written"]
    with chunksink.open(chunks=shell.folder / "other", home=shell.folder / "home2") as index:
        report = index.ingest(shell.folder / "in", fields={"text": "Review Text", "id": "Job ID"})
    assert (report.documents, report.failures) == (3, ())


def test_ingest_of_several_formats_reports_how_many_files_each(shell: Shell) -> None:
    write(shell, "in/a.md", "# Words")
    write(shell, "in/b.md", "# More words")
    assert "read as" not in shell("ingest", "in").out
    write(shell, "in/rows.jsonl", '{"id": 1, "text": "Words."}')
    for _ in range(2):  # cron mails what is on standard error
        ended = shell("ingest", "in")
        assert ("read as markdown 2, rows 1\n" in ended.out, ended.err) == (True, "")
    assert shell("ingest", "in", "--json").json["kinds"] == {"markdown": 2, "rows": 1}
