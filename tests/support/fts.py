"""A build of named texts, the marked words of snippets, and damage to the full-text indexes of a build in SQL."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, letters
from chunksink.sinks.fts import schema as layout
from chunksink.sinks.reader import Piece

_COLUMNS = ", ".join(layout.SEARCHED)
_WORDS = ", ".join(map(letters.folded_sql, layout.SEARCHED))
_TRIGRAMS = ", ".join(layout.indexed("documents_trigrams"))
DAMAGES = {
    "emptied": "INSERT INTO documents_fts(documents_fts) VALUES ('delete-all')",
    "one row's postings gone": f"INSERT INTO documents_fts(documents_fts, rowid, {_COLUMNS}) "
    f"SELECT 'delete', row, {_WORDS} FROM documents WHERE row = 7",
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


def run(path: Path, *statements: str) -> None:
    """Change the file of a build, as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        for statement in statements:
            other.execute(statement)


def fill(build: FtsBuild, texts: Mapping[str, str]) -> dict[str, str]:
    """Write a document for each text, with its name as a tag. Returns the names by id."""
    families = {name: family(f"texts/{name}", [text], metadata={"tags": [name]}) for name, text in texts.items()}
    build.replace(list(families.values()))
    return {one.documents[0].id: name for name, one in families.items()}


def marked(pieces: Iterable[Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.match]
