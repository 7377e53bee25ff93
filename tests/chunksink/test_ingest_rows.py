"""`chunksink ingest` of rows: JSON and CSV, fields of the user's own, and what stays as it was read before."""

from pathlib import Path

import pytest

import chunksink
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import read_partition
from chunksink.exits import Exit
from tests.chunksink.shell import Shell, write


def chunks_in(root: Path) -> list[Record]:
    return [record for _, record in read_partition(BusRoot(root), "documents")]


def test_rows_are_found_in_json_and_where_it_is_named_in_csv(shell: Shell) -> None:
    write(shell, "in/rows.jsonl", '{"id": 1, "title": "Whales", "text": "Whales breathe air."}\n')
    write(shell, "in/rows.csv", 'id,title,text\n1,Seals,"Seals sleep, too."\n')
    write(shell, "in/prices.csv", "day,price\n1,2\n")
    first = shell("ingest", "in", "--json").json
    assert (first["documents"], first["failures"], first["other_kinds"]) == (1, [], {".csv": 2})
    assert shell("ingest", "in/rows.csv", "--json").json["documents"] == 2
    assert not shell("ingest", "in/rows.csv", "--json").json["written"]
    refused = shell("ingest", "in/prices.csv", "--chunks", "third")
    assert (refused.code, "RECORD_FORM_UNKNOWN" in refused.err) == (Exit.INVALID_INPUT, True)
    included = shell("ingest", "in", "--include", "*.csv", "--chunks", "other", "--json").json
    assert (included["documents"], included["failures"]) == (3, [])
    kinds = {chunk["source"]["source_type"] for chunk in chunks_in(shell.folder / "other")}
    assert kinds == {"rows", "txt"}
    assert shell("ingest", "in/prices.csv", "--as", "text", "--chunks", "third").code == Exit.OK
    assert shell("ingest", "in/prices.csv", "--chunks", "third").code == Exit.OK, "it stays what it was"
    refused = shell("ingest", "in/prices.csv", "--as", "rows", "--chunks", "fourth")
    assert refused.code == Exit.INVALID_INPUT
    assert shell("validate").code == Exit.OK


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--field", "body=x"], "a role of text, id, title, address"),
        (["--field", "text"], "write ROLE=NAME"),
        (["--field", "text=x", "--as", "markdown"], "leave one out"),
        (["--field", "text=x", "--field", "text=y"], "--field names text twice"),
    ],
)
def test_what_names_no_field_is_refused(shell: Shell, options: list[str], told: str) -> None:
    write(shell, "in/rows.jsonl", '{"id": 1, "text": "Words."}\n')
    ended = shell("ingest", "in", *options)
    assert (ended.code, told in ended.err) == (Exit.USAGE, True)


def test_what_was_read_as_rows_stays_that(shell: Shell) -> None:
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


def test_fields_of_the_users_own_are_read_by_several_processes_and_once(shell: Shell) -> None:
    for number in range(3):
        write(shell, f"in/{number}.csv", f"Job ID,Review Text\n{number},Words of {number}.\n")
    fields = ("--field", "text=Review Text", "--field", "id=Job ID")
    first = shell("ingest", "in", *fields, "--jobs", "2", "--json").json
    assert (first["documents"], first["failures"]) == (3, [])
    assert not shell("ingest", "in", *fields, "--json").json["written"]
    with chunksink.open(chunks=shell.folder / "other", home=shell.folder / "home2") as index:
        report = index.ingest(shell.folder / "in", fields={"text": "Review Text", "id": "Job ID"})
    assert (report.documents, report.failures) == (3, ())


def test_what_files_of_several_kinds_were_read_as_is_told(shell: Shell) -> None:
    write(shell, "in/a.md", "# Words")
    write(shell, "in/b.md", "# More words")
    assert "read as" not in shell("ingest", "in").err
    write(shell, "in/rows.jsonl", '{"id": 1, "text": "Words."}')
    assert "read as markdown 2, rows 1\n" in shell("ingest", "in").err
    assert shell("ingest", "in", "--json").json["kinds"] == {"markdown": 2, "rows": 1}
