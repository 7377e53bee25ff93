"""`chunksink ingest` as somebody calls it."""

import json
from hashlib import sha256

import pytest

import chunksink
from chunksink.chunkbus.runlog import read_run
from chunksink.errors import IngestRefused
from chunksink.exits import Exit
from tests.chunksink.shell import Shell, write
from tests.ingest.ir.samples import ir_record
from tests.journey.support import document

EVENTS = "".join(
    json.dumps(
        {
            "event_type": "egress_output",
            "pane_id": 1,
            "ordinal": n,
            "occurred_at_ms": 1_700_000_000_000 + n,
            "text": f"$ make step {n}\n",
        }
    )
    + "\n"
    for n in range(3)
)


def test_what_failed_is_told_with_code_place_and_reason(shell: Shell) -> None:
    write(shell, "docs/a.md", "# A")
    write(shell, "docs/b.md", b"\xff")
    write(shell, "docs/events.jsonl", EVENTS + "{broken\n")
    ended = shell("ingest", "docs", "--json")
    assert ended.code == Exit.INVALID_INPUT
    assert ended.json["left_out"] == {"CHUNKING_FAILED": 1, "EVENT_MALFORMED": 1}
    assert [(failure["source_uri"], failure["line"]) for failure in ended.json["failures"]] == [
        ("docs/b.md", None),
        ("docs/events.jsonl", 4),
    ]
    printed = shell("ingest", "docs")
    assert printed.out.startswith("nothing written: chunks holds ")
    assert printed.out.endswith(", 2 files unchanged, 2 failures\n")
    assert "left out" not in printed.err, "what is printed line by line is not counted too"
    assert "EVENT_MALFORMED docs/events.jsonl:4 " in printed.err
    (record,) = [path for path in (shell.home / "runs").iterdir() if ended.json["run_id"] in path.name]
    assert [event["code"] for event in read_run(record) if event["event"] == "failure"] == [
        "CHUNKING_FAILED",
        "EVENT_MALFORMED",
    ]


def test_as_decides_what_is_read(shell: Shell) -> None:
    write(shell, "docs/a.md", "# A")
    write(shell, "docs/c.txt", "# not a heading")
    assert shell("ingest", "docs", "--as", "text", "--json").json["sources"] == 1
    assert shell("ingest", "docs/a.md", "--as", "text", "--json").json["processed"] == 1
    assert shell("ingest", "docs", "--as", "nonsense").code == Exit.USAGE


def test_prune_removes_and_refuses_an_empty_folder(shell: Shell) -> None:
    write(shell, "docs/a.md", "# A")
    path = write(shell, "docs/b.md", "# B")
    shell("ingest", "docs")
    path.unlink()
    ended = shell("ingest", "docs", "--prune")
    assert (ended.code, ", 1 source removed; now 1 chunk of 1 source\n" in ended.out) == (Exit.OK, True)
    (shell.folder / "docs" / "a.md").unlink()
    reported = shell("ingest", "docs")
    assert (reported.code, "--prune removes what is gone" in reported.err) == (Exit.OK, True)
    for allowed in ([], ["--allow-deletions", "0"]):
        refused = shell("ingest", "docs", "--prune", *allowed)
        assert (refused.code, "--allow-deletions 1" in refused.err) == (Exit.INVALID_INPUT, True)
    assert shell("ingest", "docs", "--prune", "--allow-deletions", "1", "--json").json["pruned"] == 1
    assert shell("ingest", "docs", "--prune", "--json").json["written"] is False


def test_addresses_are_not_fetched(shell: Shell) -> None:
    for address in ("https://example.com/a", "s3://bucket/x"):
        refused = shell("ingest", address)
        assert (refused.code, refused.out) == (Exit.INVALID_INPUT, "")
        assert f"Error: {address} is an address" in refused.err


def test_an_ingest_of_nothing_is_refused(shell: Shell) -> None:
    with pytest.raises(IngestRefused):
        chunksink.open().ingest()


def test_what_is_no_pattern_is_refused_before_anything_is_read(shell: Shell) -> None:
    write(shell, "docs/a.md", "# A")
    refused = shell("ingest", "docs", "--exclude", "!")
    assert (refused.code, refused.out) == (Exit.USAGE, "")
    assert refused.err.startswith("Error: --exclude takes patterns as in a .gitignore file")
    assert not shell.root.path.exists()


@pytest.mark.parametrize("tenant", ["", "default"])
def test_a_tenant_that_names_nobody_is_refused(shell: Shell, tenant: str) -> None:
    write(shell, "docs/a.md", "# A")
    shell("ingest", "docs")
    refused = shell("ingest", "docs", "--tenant", tenant)
    assert (refused.code, refused.out) == (Exit.USAGE, "")
    assert "--tenant" in refused.err


def test_what_a_recording_does_not_contain_any_more_leaves_the_index_with_prune(quick_shell: Shell) -> None:
    write(quick_shell, "docs/a.md", "Kept.")
    write(quick_shell, "docs/events.jsonl", EVENTS)
    quick_shell("ingest", "docs", "--sync")
    assert len(quick_shell.texts()) == 2
    write(quick_shell, "docs/events.jsonl", "")
    assert quick_shell("ingest", "docs", "--sync", "--json").json["ingest"]["missing"] == 1
    ended = quick_shell("ingest", "docs", "--sync", "--prune")
    assert (ended.code, quick_shell.texts()) == (Exit.OK, ["Kept."])


def test_a_number_that_may_go_holds_for_the_sync_too(quick_shell: Shell) -> None:
    for number in range(12):
        write(quick_shell, f"docs/{number}.md", f"Text {number}.")
    quick_shell("ingest", "docs", "--sync")
    for file in (quick_shell.folder / "docs").iterdir():
        file.unlink()
    assert quick_shell("ingest", "docs", "--prune", "--sync").code == Exit.INVALID_INPUT
    ended = quick_shell("ingest", "docs", "--prune", "--sync", "--allow-deletions", "12")
    assert (ended.code, quick_shell.texts()) == (Exit.OK, [])


def test_the_exit_code_of_the_sync_counts(quick_shell: Shell) -> None:
    for number in range(12):
        write(quick_shell, f"docs/{number}.md", f"Text {number}.")
    quick_shell("ingest", "docs", "--sync")
    for number in range(11):
        (quick_shell.folder / f"docs/{number}.md").unlink()
    ended = quick_shell("ingest", "docs", "--prune", "--sync")
    assert ended.code == Exit.BRAKE
    assert len(quick_shell.texts()) == 12, "the brake holds"
    write(quick_shell, "docs/bad.md", b"\xff")
    quick_shell("sync", "--allow-deletions", "11")
    assert quick_shell("ingest", "docs", "--sync").code == Exit.INVALID_INPUT


def test_what_the_sync_holds_back_is_told_by_the_exit_code(quick_shell: Shell) -> None:
    write(quick_shell, "docs/a.md", "Text.")
    quick_shell.commit("theirs", document("theirs.md", "Passed on."))
    assert quick_shell("ingest", "docs", "--sync").code == Exit.OK
    quick_shell.cut_off("theirs")
    write(quick_shell, "docs/a.md", "New text.")
    assert quick_shell("ingest", "docs", "--sync").code == Exit.INVALID_INPUT
    assert quick_shell.texts() == ["New text.", "Passed on."]


def test_the_checklist_of_the_specification_is_a_command(shell: Shell) -> None:
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


def test_records_of_other_programs_are_told_by_their_first_line(shell: Shell) -> None:
    parsed = {"doc_id": "d", "source": {"path": "reports/q1.pdf"}, "blocks": [{"type": "paragraph", "text": "Parsed."}]}
    canonical = document("theirs.md", "Passed on.")
    write(shell, "in/parsed.json", json.dumps(parsed, indent=2))
    write(shell, "in/chunks.jsonl", "".join(json.dumps(record) + "\n" for record in canonical))
    write(shell, "in/ir.jsonl", json.dumps(ir_record()) + "\n")
    ended = shell("ingest", "in", "--json")
    assert (ended.code, ended.json["failures"], ended.json["documents"]) == (Exit.OK, [], 3)
    assert shell("validate").code == Exit.OK
    again = shell("ingest", "in", "--json").json
    assert (again["written"], again["unchanged"]) == (False, 3)
    for kind in ("parsed", "ir", "chunks"):
        file = {"parsed": "in/parsed.json", "ir": "in/ir.jsonl", "chunks": "in/chunks.jsonl"}[kind]
        assert shell("ingest", file, "--as", kind, "--chunks", f"only-{kind}", "--json").json["documents"] == 1


def test_chunks_of_a_source_in_two_files_are_reported_with_the_remedy(shell: Shell) -> None:
    for number in (1, 2):
        chunk = {"page_content": f"Text {number}.", "metadata": {"source": "notes.md"}}
        write(shell, f"part{number}.jsonl", json.dumps(chunk) + "\n")
    ended = shell("ingest", "part1.jsonl", "part2.jsonl")
    assert ended.code == Exit.OK
    assert f"left out: SOURCE_IN_ANOTHER_FILE 1 ({shell.folder.name}/part1.jsonl); " in ended.err
