"""Judgements name documents by one of their fields: rows by their ids, files by their names."""

from itertools import groupby
from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.search.evaluation.naming import find_naming
from chunksink.sinks.document import Document
from chunksink.sinks.projection import project_family
from tests.ingest.bench import Bench


def documents_of(tmp_path: Path, *rows: Record) -> list[Document]:
    bench = Bench(tmp_path)
    bench.write("rows.jsonl", list(rows))
    assert bench.ingest(format="rows").failed == 0
    families = groupby(bench.records(), key=lambda record: record["parent_id"])
    return [document for _, records in families for document in project_family(list(records))]


@pytest.mark.parametrize(
    "beside", [{}, {"url": "https://a.example/x.html"}, {"metadata": {"url": "https://a.example/x"}}]
)
def test_rows_are_named_by_their_ids(tmp_path: Path, beside: Record) -> None:
    rows = [{"_id": name, "title": "A", "text": f"Words of {name}.", **beside} for name in ("d1", "a/b.5")]
    documents = documents_of(tmp_path, *rows)
    naming = find_naming(documents, {"q": {"d1": 1, "a/b.5": 1, "d9": 1}})
    assert (naming.field, naming.missing) == ("filename", {"d9"})
    assert sorted(naming.names(documents)) == ["a/b.5", "d1"]
