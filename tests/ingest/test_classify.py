"""Which format reads a file that an earlier run has read."""

import pytest

from chunksink.chunkbus.findings import FIELD_MISSING
from chunksink.ingest.codes import RECORD_FORM_UNKNOWN
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
    for _ in range(3):
        report = bench.ingest(prune=True)
        assert (report.failed, report.left_out, report.elsewhere) == (0, {RECORD_FORM_UNKNOWN: 1}, ())
        assert bench.texts() == before
        bench.write(name, data.replace("Words.", "Other words."))
    assert [failure.code for failure in bench.ingest(name).failures] == [RECORD_FORM_UNKNOWN]
    assert bench.ingest(name, partition=partition, fields=fields).failed == 0
    assert bench.texts() == before | {f"docs/{name}#id=a": ["Other words."]}


def test_file_that_failed_with_wrong_field_options_does_not_fail_without_them(bench: Bench) -> None:
    bench.write("rows.jsonl", ROW)
    assert [failure.code for failure in bench.ingest(fields={"text": "pasage"}).failures] == [FIELD_MISSING]
    assert bench.ingest().failed == 0


def test_csv_that_was_read_as_rows_is_never_text(bench: Bench) -> None:
    bench.write("rows.csv", "id,text\n1,Words.\n")
    bench.ingest("rows.csv")
    bench.write("rows.csv", "id,story\n1,Words.\n")
    assert [failure.code for failure in bench.ingest().failures] == [FIELD_MISSING]
