"""Damages to the full-text indexes of a build, as SQL."""

from chunksink.sinks.fts import schema as layout

_COLUMNS = ", ".join(layout.SEARCHED)
_TRIGRAMS = ", ".join(layout.indexed("documents_trigrams", "documents"))
DAMAGES = {
    "emptied": "INSERT INTO documents_fts(documents_fts) VALUES ('delete-all')",
    "one row's postings gone": f"INSERT INTO documents_fts(documents_fts, rowid, {_COLUMNS}) "
    f"SELECT 'delete', row, {_COLUMNS} FROM documents WHERE row = 7",
    "leaves gone": "DELETE FROM documents_fts_data WHERE id > 1000",
    "structure overwritten": "UPDATE documents_fts_data SET block = zeroblob(20) WHERE id = 10",
    "sizes gone": "DELETE FROM documents_fts_docsize",
    "trigrams emptied": "INSERT INTO documents_trigrams(documents_trigrams) VALUES ('delete-all')",
    "one row's trigrams gone": f"INSERT INTO documents_trigrams(documents_trigrams, rowid, {_COLUMNS}) "
    f"SELECT 'delete', row, {_TRIGRAMS} FROM documents WHERE row = 2",
    "trigrams of something else": f"INSERT INTO documents_trigrams(rowid, {_COLUMNS}) "
    f"VALUES (2, {', '.join(repr('大阪城') for _ in layout.SEARCHED)})",
    "leaves of trigrams gone": "DELETE FROM documents_trigrams_data WHERE id > 1000",
    "one size of trigrams gone": "DELETE FROM documents_trigrams_docsize WHERE id = 2",
}
