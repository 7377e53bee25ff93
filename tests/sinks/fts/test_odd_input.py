"""No input is an error: what no text and no column can hold simply finds nothing."""

from __future__ import annotations

import sqlite3

import msgspec

from chunksink.sinks.conformance.samples import family, with_vectors
from chunksink.sinks.fts import FtsBuild, FtsReader


def test_more_hits_than_a_statement_has_variables(build: FtsBuild, reader: FtsReader) -> None:
    most = sqlite3.connect(":memory:").getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    build._connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?) "
        "INSERT INTO documents (id, parent_id, family_hash, text) SELECT 'n' || i, 'p', 'h', 'many' FROM n",
        [min(most, 40_000) + 1],
    )
    assert len(reader.search("many", 2**64)) == min(most, 40_000) + 1


def test_what_stands_after_a_nul_is_found(build: FtsBuild, reader: FtsReader) -> None:
    [first, second] = family("b", ["東京", "latin"]).documents
    title = 'before\x00after \\u0000 "quoted"\n京\x00都寺院beside'
    changed = with_vectors(
        [msgspec.structs.replace(first, title=title), msgspec.structs.replace(second, title="one\x00two 奈良")]
    )
    build.replace([changed])
    for typed in ("after", "before", "寺", "都寺院", "寺院 after", "quoted", "zebra beside"):
        assert [hit.id for hit in reader.search(typed)] == [first.id], typed
    assert [hit.id for hit in reader.search("two")] == [second.id]
    assert [hit.id for hit in reader.search("奈")] == [second.id]
    assert reader.get([first.id])[0].title == title
    build.delete([first.parent_id])
    assert reader.search("寺") == reader.search("after") == []
    build._connection.execute("INSERT INTO documents_trigrams(documents_trigrams) VALUES ('integrity-check')")
