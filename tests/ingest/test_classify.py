"""Which format reads a file that an earlier run has read."""

import pytest

from chunksink.chunkbus.findings import FIELD_MISSING
from chunksink.ingest.codes import CHUNKING_FAILED, RECORD_FORM_UNKNOWN
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
        assert "summary, issue_key, labels, column_4" in failure.reason
    assert bench.names() == {"docs/b.md"}
    assert bench.ingest().failed == 0, "it is not asked for"
    assert bench.ingest(name, fields={"text": "summary", "id": "issue_key"}).failed == 0
    assert bench.texts()[f"docs/{name}#id=A-1"] == ["An otter"]
