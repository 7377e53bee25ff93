"""Judgements name documents by one of their fields: rows by their ids, files by their names."""

from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.producers.rows.reader import RowReader
from chunksink.search.evaluation.naming import find_naming
from chunksink.sinks.document import Document
from chunksink.sinks.projection import project_family
from tests.producers.reading import read_records


def documents_of(tmp_path: Path, *rows: Record) -> list[Document]:
    produced, left = read_records(RowReader(), tmp_path, rows)
    assert left == []
    return [document for family in produced for document in project_family(list(family.records))]


@pytest.mark.parametrize(
    "beside", [{}, {"url": "https://a.example/x.html"}, {"metadata": {"url": "https://a.example/x"}}]
)
def test_rows_are_named_by_their_ids(tmp_path: Path, beside: Record) -> None:
    rows = [{"_id": name, "title": "A", "text": f"Words of {name}.", **beside} for name in ("d1", "a/b.5")]
    documents = documents_of(tmp_path, *rows)
    naming = find_naming(documents, {"q": {"d1": 1, "a/b.5": 1, "d9": 1}})
    assert (naming.field, naming.missing) == ("filename", {"d9"})
    assert naming.names(documents) == ["d1", "a/b.5"]
