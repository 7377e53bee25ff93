"""One ingest after another: what is read, written, carried over and reported."""

import re
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from chunksink.chunkbus.findings import JSON_PARSE, LINE_TOO_LONG
from chunksink.ingest.codes import CHUNKING_FAILED, RECORD_FORM_UNKNOWN, SOURCE_EMPTY
from chunksink.ingest.errors import IngestBusy, IngestRefused
from chunksink.ingest.options import Options
from chunksink.ingest.run import ingest
from chunksink.ingest.store import IngestStore, why_no_chunks
from tests.ingest.bench import Bench
from tests.ingest.chunks.samples import canonical_chunk
from tests.support.bus import commit, source

A, B = "# A\n\nThe cat.\n", "# B\n\nThe dog.\n"


@pytest.fixture
def two(bench: Bench) -> Bench:
    bench.write("a.md", A)
    bench.write("sub/b.md", B)
    return bench


def test_a_first_ingest_writes_every_source_and_a_second_one_reads_and_writes_nothing(two: Bench) -> None:
    report = two.ingest()
    assert (report.written, report.partitions, report.processed) == (True, ("documents",), 2)
    assert two.texts() == {"docs/a.md": [A.strip()], "docs/sub/b.md": [B.strip()]}
    manifest = two.manifest()
    assert (manifest.counts.documents, manifest.counts.chunks_emitted, manifest.errors) == (2, 2, {})
    assert [row["status"] for row in two.ledger()] == ["processed", "processed"]
    assert (report.documents, report.chunks, report.sources) == (2, 2, 2)
    before = two.files()
    report = two.ingest()
    assert (report.written, report.unchanged, report.processed) == (False, 2, 0)
    assert (two.files(), len(two.ledger())) == (before, 2)


def test_an_edit_replaces_its_own_source_and_keeps_the_others_as_they_are(two: Bench) -> None:
    two.ingest()
    stamps = {record["text"]: record["created_at"] for record in two.records()}
    two.write("a.md", "# A\n\nAnother cat.\n")
    report = two.ingest()
    assert (report.processed, report.unchanged) == (1, 1)
    assert two.texts()["docs/a.md"] == ["# A\n\nAnother cat."]
    after = {record["text"]: record["created_at"] for record in two.records()}
    assert after[B.strip()] == stamps[B.strip()]
    assert after["# A\n\nAnother cat."] > stamps[A.strip()]


def test_a_foreign_partition_that_is_dated_far_ahead_dates_no_other_chunk(two: Bench) -> None:
    commit(two.bus, "sensors", source("sensor", "a text"), at="2999-01-01T00:00:00Z")
    two.ingest()
    assert all(record["created_at"] < "2900" for record in two.records())


@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_a_named_file_without_valid_json_names_the_error(name: str, bench: Bench) -> None:
    bench.write(name, "{not json}\n{}}\n")
    (failure,) = bench.ingest(name).failures
    assert (failure.code, failure.line) == (JSON_PARSE, 1)


def test_chunk_longer_than_a_line_of_a_partition_fails_its_source(two: Bench) -> None:
    two.write("wide.md", "# Wide\n\n```\na" + " " * 9_000_000 + "b\n```\n")
    report = two.ingest()
    assert [(one.source_uri, one.code) for one in report.failures] == [("docs/wide.md", LINE_TOO_LONG)]
    assert len(two.names()) == 2


def test_a_touched_file_is_unchanged(two: Bench) -> None:
    two.ingest()
    two.write("a.md", A)
    report = two.ingest()
    assert (report.written, report.unchanged) == (False, 2)


def test_checksum_finds_an_edit_that_left_size_and_times(two: Bench) -> None:
    two.ingest()
    path = two.docs / "a.md"
    # As if the clock stopped: the cache considers the file unchanged.
    path.write_text(A.replace("cat", "cow"))
    with IngestStore(two.home) as store:
        status = path.stat()
        numbers = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        store.db.execute("update source set size=?, mtime_ns=?, ctime_ns=?, inode=? where uri='docs/a.md'", numbers)
        store.db.conn.commit()
    assert two.ingest().processed == 0
    assert two.ingest(checksum=True).processed == 1
    assert two.texts()["docs/a.md"] == ["# A\n\nThe cow."]


def test_a_source_that_fails_keeps_its_last_good_chunks(two: Bench) -> None:
    two.ingest()
    two.write("a.md", b"\xff\xfe broken \x80")
    report = two.ingest()
    assert [(failure.source_uri, failure.code) for failure in report.failures] == [("docs/a.md", CHUNKING_FAILED)]
    assert two.texts()["docs/a.md"] == [A.strip()]
    assert (two.manifest().counts.failures, two.manifest().errors) == (1, {CHUNKING_FAILED: 1})
    assert two.ledger()[-1]["error_type"] == CHUNKING_FAILED
    # It is tried again, reported again, and a run on another file does not clear it.
    assert two.ingest().failed == 1
    two.ingest("sub/b.md")
    assert two.manifest().counts.failures == 1
    two.write("a.md", A)
    two.ingest()
    assert (two.manifest().counts.failures, two.manifest().errors) == (0, {})


def test_a_document_without_text_loses_its_chunks_and_is_no_failure(two: Bench) -> None:
    two.ingest()
    two.write("a.md", "")
    report = two.ingest()
    assert (report.empty, report.failed, report.pruned, report.left_out) == (1, 0, 0, {SOURCE_EMPTY: 1})
    assert two.names() == {"docs/sub/b.md"}
    assert two.ledger()[-1]["error_type"] == SOURCE_EMPTY
    assert two.ingest().written is False


def test_sources_that_a_run_does_not_name_are_carried_over(two: Bench) -> None:
    two.ingest()
    two.write("../other/c.md", "# C\n")
    report = two.ingest("../other")
    assert (report.documents, report.carried_over) == (3, 2)
    assert two.names() == {"docs/a.md", "docs/sub/b.md", "other/c.md"}


def test_the_bytes_are_the_same_with_any_number_of_processes(bench: Bench) -> None:
    for number in range(30):
        bench.write(f"{number % 3}/{number}.md", f"# Note {number}\n\n" + f"Words of note {number}. " * number)
    bench.ingest()
    with ProcessPoolExecutor(2) as pool:

        @contextmanager
        def two_processes(_size: int) -> Any:
            yield pool

        apart = bench.fresh()
        apart.ingest(workers=two_processes)
    assert apart.content() == bench.content()


def test_two_tenants_with_one_folder_are_apart(two: Bench) -> None:
    two.ingest(tenant="ada")
    two.ingest(tenant="bob")
    assert sorted(record["tenant_id"] for record in two.records()) == ["ada", "ada", "bob", "bob"]
    assert len({record["chunk_id"] for record in two.records()}) == 4
    two.write("a.md", "# A\n\nOnly of Ada.\n")
    two.ingest(tenant="ada")
    assert {record["text"] for record in two.records() if record["tenant_id"] == "bob"} == {A.strip(), B.strip()}


# -- records: several families in one file, one family in several files ------------------------------------------------


def row(name: str, text: object) -> dict[str, object]:
    return {"id": name, "text": text}


def test_records_that_vanish_from_a_file_stay_until_they_are_pruned(bench: Bench) -> None:
    bench.write("rows.jsonl", [row("1", "The cat."), row("2", "The dog.")])
    bench.ingest()
    (before,) = [record for record in bench.records() if record["text"] == "The dog."]
    bench.write("rows.jsonl", [row("2", "The dog."), row("3", "The cow.")])
    report = bench.ingest()
    assert before in bench.records(), "an unchanged row keeps its rank"
    assert (report.missing, report.missing_from) == (1, ("docs/rows.jsonl#id=1",))
    assert set(bench.texts()) == {f"docs/rows.jsonl#id={number}" for number in (1, 2, 3)}
    assert bench.ingest().missing == 1, "it is reported until a run prunes"
    assert bench.ingest(prune=True).pruned == 1
    assert set(bench.texts()) == {f"docs/rows.jsonl#id={number}" for number in (2, 3)}
    (tombstone,) = bench.manifest().tombstones
    assert tombstone.reason


def test_json_that_is_no_record_is_counted_in_a_folder_and_a_failure_by_name(bench: Bench) -> None:
    bench.write("package.json", {"name": "x", "version": "1"})
    bench.write("a.md", A)
    report = bench.ingest()
    assert (report.failed, report.left_out) == (0, {RECORD_FORM_UNKNOWN: 1})
    assert bench.manifest().errors == {RECORD_FORM_UNKNOWN: 1}
    assert bench.ingest().written is False
    report = bench.ingest("package.json")
    assert [failure.code for failure in report.failures] == [RECORD_FORM_UNKNOWN]


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        ("id,text\n1,caf\u00e9\n".encode("cp1252"), "iconv -f ENCODING"),
        ("id,text\n1,x\n".encode("utf-16"), "iconv -f UTF-16"),
        (b'id,"text\n1,x\n', ""),
    ],
)
def test_named_csv_whose_header_cannot_be_read_fails_with_the_reason(bench: Bench, data: bytes, remedy: str) -> None:
    bench.write("rows.csv", data)
    for _ in range(2):
        (failure,) = bench.ingest("rows.csv").failures
        assert failure.code == CHUNKING_FAILED and remedy in failure.reason
    bench.write("rows.csv", "id,text\n1,x\n")
    assert bench.ingest("rows.csv").failures == ()
    assert bench.texts() == {"docs/rows.csv#id=1": ["x"]}


# -- what is kept in the home ------------------------------------------------------------------------------------------


def test_without_its_database_the_next_ingest_changes_nothing_in_the_bus(two: Bench) -> None:
    two.write("rows.jsonl", [row("1", "The cat.")])
    two.write("bad.md", b"\x80")
    two.ingest()
    before = two.files()
    for file in two.home.glob("ingest.db*"):
        file.unlink()
    report = two.ingest()
    assert (report.written, report.unchanged, report.failed) == (False, 3, 1)
    assert two.files() == before
    assert two.ingest().unchanged == 3


def test_a_success_does_not_erase_the_failure_before_it(bench: Bench) -> None:
    bench.write("a.md", b"\x80")
    bench.ingest()
    bench.write("a.md", "# A\n")
    bench.ingest()
    failed, succeeded = bench.ledger()
    assert (failed["status"], failed["error_type"], failed["left_out"]) == (
        "failed",
        CHUNKING_FAILED,
        f'{{"{CHUNKING_FAILED}":1}}',
    )
    assert (succeeded["status"], succeeded["error_type"], succeeded["left_out"]) == ("processed", None, None)
    assert failed["run_id"] != succeeded["run_id"] and failed["source_checksum"] != succeeded["source_checksum"]
    (record,) = bench.records()
    parser, canonicalizer = record["provenance"]["parser"], record["provenance"]["canonicalizer"]
    assert parser == {name: succeeded[name] for name in ("parser_name", "parser_version")}
    assert canonicalizer == {name: succeeded[name] for name in ("canonicalizer_name", "canonicalizer_version")}
    assert f"sha256:{succeeded['source_checksum']}" == record["provenance"]["source_checksum"]
    assert (succeeded["processed_at"], succeeded["partition_key"]) == (record["created_at"], "documents")


def test_a_filter_of_the_ledger_is_compared_letter_for_letter(bench: Bench) -> None:
    for name in ("100%.md", "b.md"):
        bench.write(name, A)
    bench.ingest()
    with IngestStore(bench.home) as store:
        assert [row["source_uri"] for row in store.attempts(source="%")] == ["docs/100%.md"]
        assert list(store.attempts(run_id="' or 1=1 --")) == []


def test_another_bus_gets_all_of_it(two: Bench) -> None:
    two.ingest()
    other = two.fresh()
    other.home = two.home
    assert other.ingest().processed == 2
    assert other.content() == two.content()
    assert two.ingest().written is False


def test_second_ingest_with_the_same_home_raises_busy(two: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunksink.ingest.store._LOCK_SECONDS", 0.1)
    with IngestStore(two.home) as store, store.run(two.bus), pytest.raises(IngestBusy):
        two.ingest()


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"tenant": "default"},
        {"format": "nonsense"},
        {"format": "markdown", "fields": {"text": "x"}},
        {"fields": {"colour": "x"}},
    ],
)
def test_meaningless_options_are_refused_before_a_write(two: Bench, options: dict[str, Any]) -> None:
    with pytest.raises(IngestRefused):
        ingest([two.docs], two.bus, two.home, Options(**options))
    assert not two.bus.path.exists()


def test_a_partition_of_another_program_is_refused_and_left_alone(two: Bench) -> None:
    two.ingest()
    manifest = two.bus.manifest_file("documents")
    manifest.write_text(manifest.read_text().replace("chunksink-ingest", "other"))
    before = two.files()
    with pytest.raises(IngestRefused):
        two.ingest()
    assert two.files() == before
    assert two.ingest(partition="mine").partitions == ("mine",)


def test_a_partition_without_a_manifest_is_refused_until_it_is_moved_away(two: Bench) -> None:
    two.ingest()
    texts = two.texts()
    two.bus.manifest_file("documents").unlink()
    with pytest.raises(IngestRefused, match=r"canonical/documents\.jsonl"):
        two.ingest()
    two.bus.chunks_file("documents").rename(two.home / "kept")
    two.ingest()
    assert two.texts() == texts


def test_a_partition_with_a_damaged_manifest_is_refused_until_it_is_moved_away(two: Bench) -> None:
    two.ingest()
    texts = two.texts()
    two.bus.manifest_file("documents").write_bytes(b"{")
    with pytest.raises(IngestRefused) as refused:
        two.ingest()
    for file in two.bus.files("documents"):
        assert str(file) in str(refused.value)
        file.rename(two.home / file.name)
    two.ingest()
    assert two.texts() == texts


@pytest.mark.parametrize("names", [("chunks.jsonl",), ("1.jsonl", "2.jsonl")], ids=["one file", "two files"])
def test_two_families_with_one_chunk_id_cannot_share_a_partition(bench: Bench, names: tuple[str, ...]) -> None:
    chunks = []
    for name in ("cat", "dog"):
        provenance = {**canonical_chunk()["provenance"], "source_uri": name}
        chunks.append(canonical_chunk(document_id=f"d-{name}", text=f"The {name}.", provenance=provenance))
    for number, name in enumerate(names):
        bench.write(name, chunks[number :: len(names)])
    report = bench.ingest()
    assert [failure.code for failure in report.failures] == ["INTEGRITY_VIOLATION:duplicate_ids"]
    assert bench.texts() == {"cat": ["The cat."]}


def test_chunk_of_the_last_possible_moment_does_not_stop_later_runs(bench: Bench) -> None:
    bench.write("a.md", "# A\n")
    bench.ingest()
    records = [record | {"hashes": {}, "created_at": "9999-12-31T23:59:59.999999Z"} for record in bench.records()]
    bench.write("x.jsonl", records)
    bench.ingest()
    bench.write("b.md", "# B\n")
    assert bench.ingest().processed == 1


def test_file_of_rows_names_its_sources_even_if_it_was_read_in_part(bench: Bench) -> None:
    bench.write("rows.jsonl", [row("1", "A cat."), row("2", 5), *(row(str(one), "A mat.") for one in range(3, 7))])
    bench.write("broken.pdf", b"no PDF")
    report = bench.ingest()
    assert (report.documents, len(report.failures)) == (5, 2)
    reason = why_no_chunks(bench.home, bench.bus, "docs/rows.jsonl") or ""
    assert re.findall(r"rows\.jsonl#id=(\d)", reason) == ["1", "3", "4", "1"]
    assert "5 sources" in reason and "and 2 more" in reason
    assert CHUNKING_FAILED in (why_no_chunks(bench.home, bench.bus, "docs/broken.pdf") or "")


def test_removed_file_names_the_time_of_its_tombstone(two: Bench) -> None:
    two.write("rows.jsonl", [row("1", "The cat.")])
    two.ingest()
    assert why_no_chunks(two.home, two.bus, "docs/a.md") is None
    for name in ("a.md", "rows.jsonl"):
        two.remove(name)
    two.ingest(prune=True)
    (removed_at,) = {str(one.at) for one in two.manifest().tombstones}
    for name, is_known in (("docs/a.md", True), ("a.md", True), ("docs/rows.jsonl", False)):
        reason = why_no_chunks(two.home, two.bus, name) or ""
        assert ("no chunks any more" in reason, removed_at in reason) == (True, is_known)
