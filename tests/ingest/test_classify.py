"""Which format reads a file that an earlier run has read."""

import pytest

from chunksink.chunkbus.findings import FIELD_MISSING
from chunksink.chunkbus.signature import Signature, wait_a_tick
from chunksink.ingest.codes import CHUNKING_FAILED, FILE_LINKED, RECORD_FORM_UNKNOWN, SOURCE_EMPTY
from chunksink.ingest.read import checksum_of_file
from tests.ingest.bench import Bench

ROW = '{"key": "a", "passage_body": "Words."}\n'


@pytest.mark.parametrize("partition", ["documents", "others"])
@pytest.mark.parametrize(
    ("name", "data"), [("rows.jsonl", ROW), ("rows.data", ROW), ("rows.csv", "key,passage_body\na,Words.\n")]
)
def test_file_read_with_field_options_is_left_alone_by_runs_without_them(
    bench: Bench, name: str, data: str, partition: str
) -> None:
    fields = {"text": "passage_body", "id": "key"}
    bench.write("a.md", "# A\n")
    bench.write(name, data)
    bench.ingest()
    assert bench.ingest(name, partition=partition, fields=fields).failed == 0
    before = bench.texts()
    assert [failure.code for failure in bench.ingest(name).failures] == [RECORD_FORM_UNKNOWN]
    for _ in range(2):
        report = bench.ingest(prune=True)
        assert (report.failed, report.left_out, report.elsewhere) == (0, {RECORD_FORM_UNKNOWN: 1}, ())
        assert bench.texts() == before
        bench.write(name, data)  # other times, the same content
    for _ in range(2):
        bench.write(name, data.replace("Words.", "Other words."))
        for checksum in (False, True):
            (failure,) = bench.ingest(prune=True, checksum=checksum).failures
            assert (failure.code, failure.source_uri) == (RECORD_FORM_UNKNOWN, f"docs/{name}")
            assert "--field id=key --field text=passage_body" in failure.reason
            assert bench.texts() == before
        bench.write(name, data)
        assert bench.ingest().failed == 0
    bench.write(name, data.replace("Words.", "Other words."))
    assert bench.ingest().failed == 1
    assert bench.ingest(name, partition=partition, fields=fields).failed == 0
    assert bench.texts() == before | {f"docs/{name}#id=a": ["Other words."]}
    assert bench.ingest().failed == 0


def test_file_whose_last_reading_with_field_options_failed_fails_without_them_too(bench: Bench) -> None:
    fields = {"text": "passage_body", "id": "key"}
    bench.write("rows.csv", "key,passage_body\na,Words.\n")
    bench.ingest("rows.csv", fields=fields)
    bench.write("rows.csv", 'key,passage_body\na,"Words.\n')
    assert [failure.code for failure in bench.ingest("rows.csv", fields=fields).failures] == [CHUNKING_FAILED]
    for _ in range(2):
        assert [failure.code for failure in bench.ingest().failures] == [RECORD_FORM_UNKNOWN]


def test_file_that_failed_with_wrong_field_options_does_not_fail_without_them(bench: Bench) -> None:
    bench.write("rows.jsonl", ROW)
    assert [failure.code for failure in bench.ingest(fields={"text": "pasage"}).failures] == [FIELD_MISSING]
    assert bench.ingest().failed == 0


def test_partly_failed_reading_with_field_options_stays_a_failure(bench: Bench) -> None:
    fields = {"text": "passage_body", "id": "key"}
    refused = '{"key": "b"}\n'
    bench.write("rows.jsonl", ROW + refused)
    wait_a_tick()
    assert [failure.code for failure in bench.ingest(fields=fields).failures] == [FIELD_MISSING]
    for data in (None, None, ROW + refused, ROW):
        if data:
            bench.write("rows.jsonl", data)
        assert [failure.code for failure in bench.ingest().failures] == [RECORD_FORM_UNKNOWN]
    assert bench.ingest(fields=fields).failed == 0
    assert bench.ingest().failed == 0


def test_failure_without_field_options_says_whether_the_file_has_changed(bench: Bench) -> None:
    fields = {"text": "passage_body", "id": "key"}
    bench.write("rows.jsonl", ROW)
    bench.ingest(fields=fields)
    (unchanged,) = bench.ingest("rows.jsonl").failures
    bench.write("rows.jsonl", ROW)
    assert bench.ingest("rows.jsonl").failures == (unchanged,)
    bench.write("rows.jsonl", ROW + ROW)
    (changed,) = bench.ingest("rows.jsonl").failures
    assert changed.reason != unchanged.reason


def test_file_that_was_only_touched_is_hashed_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def checksum(path: str) -> tuple[str, Signature]:
        hashed.append(path)
        return checksum_of_file(path)

    monkeypatch.setattr("chunksink.ingest.classify.checksum_of_file", checksum)
    bench.write("rows.jsonl", ROW)
    bench.ingest(fields={"text": "passage_body", "id": "key"})
    bench.write("rows.jsonl", ROW)
    wait_a_tick()
    for _ in range(3):
        assert bench.ingest().failed == 0
    assert len(hashed) == 1


def test_included_json_without_known_records_is_text(bench: Bench) -> None:
    package = bench.write("package.json", {"private": True, "scripts": {"boat": "row"}})
    bench.write("broken.json", '{"private": 1, // why\n}\n')
    bench.write("lines.jsonl", ROW)
    bench.write("none.json", "[]")
    bench.write("rows.json", [{"id": 1, "text": "An otter"}])
    assert bench.ingest().left_out == {RECORD_FORM_UNKNOWN: 3, SOURCE_EMPTY: 1}
    report = bench.ingest(include=("*.json", "*.jsonl"))
    assert (report.failed, report.left_out) == (0, {RECORD_FORM_UNKNOWN: 1, SOURCE_EMPTY: 1})
    assert bench.names() == {"docs/package.json", "docs/broken.json", "docs/rows.json#id=1"}
    assert bench.texts()["docs/package.json"] == [package.read_text().strip()]
    assert bench.ingest().kinds == {"rows": 1, "text": 2}, "it was read once"


def test_included_json_that_was_read_with_field_options_keeps_its_chunks(bench: Bench) -> None:
    bench.write("rows.json", ROW)
    bench.ingest(fields={"text": "passage_body", "id": "key"})
    names = bench.names()
    bench.ingest(include=("*.json",))
    assert bench.names() == names


def test_csv_read_with_field_options_keeps_them_while_its_header_is_broken(bench: Bench) -> None:
    good = "key,passage_body\na,Words.\n"
    bench.write("rows.csv", good)
    bench.ingest("rows.csv", fields={"text": "passage_body", "id": "key"})
    bench.write("rows.csv", 'key,"passage_body\na,Words.\n')
    assert [failure.code for failure in bench.ingest("rows.csv").failures] == [RECORD_FORM_UNKNOWN]
    bench.write("rows.csv", good)
    report = bench.ingest(include=("*.csv",))
    assert (report.failed, report.left_out) == (0, {RECORD_FORM_UNKNOWN: 1})


def test_file_read_with_field_options_keeps_them_while_it_is_unreadable(bench: Bench) -> None:
    path = bench.write("rows.jsonl", ROW)
    bench.ingest(fields={"text": "passage_body", "id": "key"})
    path.unlink()
    path.symlink_to(path.name)
    assert [failure.code for failure in bench.ingest().failures] == [RECORD_FORM_UNKNOWN]
    path.unlink()
    bench.write("rows.jsonl", ROW)
    report = bench.ingest()
    assert (report.failed, report.left_out) == (0, {RECORD_FORM_UNKNOWN: 1})


def test_file_read_with_field_options_fails_without_them_after_it_was_a_link(bench: Bench) -> None:
    fields = {"text": "passage_body", "id": "key"}
    path = bench.write("rows.jsonl", ROW)
    bench.ingest(fields=fields)
    path.rename(bench.folder / path.name)
    path.symlink_to(bench.folder / path.name)
    assert bench.ingest().left_out == {FILE_LINKED: 1}
    path.unlink()
    bench.write("rows.jsonl", ROW)
    assert [failure.code for failure in bench.ingest().failures] == [RECORD_FORM_UNKNOWN]
    assert bench.ingest(fields=fields).failed == 0


def test_csv_that_was_read_as_rows_is_never_text(bench: Bench) -> None:
    bench.write("rows.csv", "id,text\n1,Words.\n")
    bench.ingest("rows.csv")
    bench.write("rows.csv", "id,story\n1,Words.\n")
    assert [failure.code for failure in bench.ingest().failures] == [FIELD_MISSING]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_csv_whose_header_does_not_fit_fails_and_names_its_columns(bench: Bench, name: str) -> None:
    bench.write(name, "Summary,Issue key,Labels,Labels\nAn otter,A-1,x,y\n")
    bench.write("b.md", "# B\n")
    for paths in ((".",), (name,)):
        (failure,) = bench.ingest(*paths, include=("*.csv", "*.tsv")).failures
        assert (failure.code, failure.source_uri) == (RECORD_FORM_UNKNOWN, f"docs/{name}")
        assert " summary, issue_key, labels." in failure.reason
    assert bench.names() == {"docs/b.md"}
    assert bench.ingest().failed == 0, "it is not asked for"
    assert bench.ingest(name, fields={"text": "summary", "id": "issue_key"}).failed == 0
    assert bench.texts()[f"docs/{name}#id=A-1"] == ["An otter"]


@pytest.mark.parametrize("columns", [100, 200])
def test_long_list_of_columns_is_cut_visibly(bench: Bench, columns: int) -> None:
    names = [f"field_{number}" for number in range(columns)]
    bench.write("a.csv", ",".join(names) + "\n")
    (failure,) = bench.ingest("a.csv").failures
    assert "field_80" in failure.reason
    assert ("…" in failure.reason) == (names[-1] not in failure.reason) == (columns == 200)
