"""The tables of a keyword build: one SQLite file that any SQLite tool can read.

    documents            one row per document, one column per field (lists as JSON), and `spaceless`
    documents_fts        FTS5 over the searched columns: words, stemmed (porter, unicode61)
    documents_trigrams   the same with trigrams, only for rows that contain a script without spaces (`spaceless`)
    documents_places     the positions of each trigram
    letters              the letters that are replaced in the word index, and their replacements
    documents_folded     a view: the texts with these replacements
    documents_searched   a view, from which FTS5 reads the texts of `documents_fts`
    marker               which home and build it belongs to
    writing              has a row during our transactions; then the triggers do nothing

Neither index stores text: both refer to `documents`. In the word index, some letters are replaced (`letters`). So
`documents_searched` shows folded texts while we check or rebuild that index, and original texts otherwise, for
snippets. Our transactions update both indexes with one statement for many rows. Triggers update them after foreign
writes, row by row, which takes four times as long.
"""

import json
import sqlite3
import unicodedata
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import orjson
import sqlite_utils

from chunksink.sinks.document import LISTS, Document
from chunksink.sinks.errors import BuildBroken, BuildMissing, on_failure
from chunksink.sinks.fts import letters
from chunksink.sinks.fts.errors import translate_errors

T = TypeVar("T")

LAYOUT = 9  # PRAGMA user_version

# In the order of meilisearch-settings.json.
WEIGHTS = {
    "title": 4.0,
    "headings": 2.0,
    "text": 1.0,
    "filename": 2.0,
    "authors": 1.0,
    "tags": 2.0,
    "source_folder": 1.0,
    "document_id": 1.0,
    "fields_text": 1.0,
}
SEARCHED = tuple(WEIGHTS)
INDEXES = ("documents_fts", "documents_trigrams")
_VOWEL_SIGNS = "".join(char for char in map(chr, range(0x900, 0xE00)) if unicodedata.category(char).startswith("M"))
"""Marks in the scripts of India and Sri Lanka, mostly vowel signs. By default FTS5 splits words at them."""
TOKENIZER = f"porter unicode61 remove_diacritics 2 tokenchars {_VOWEL_SIGNS}{letters.SIGNS}"
"""The tokenizer of the word index."""
TEXT_COLUMN = SEARCHED.index("text")
SUFFIX = "\n\n"
"""Appended to every text in the trigram index. Then every character begins a trigram, so short words are found."""
JSON_MEMBERS = "(SELECT value FROM json_each(?))"
"""The members of a JSON list. Not for text that may contain U+0000: SQLite before 3.45 cuts it there."""
_FOLDED = "chunksink_folded"
_WRITING = "EXISTS (SELECT 1 FROM writing)"
# FTS5's own tables.
_SHADOWS = tuple(f"{index}_{part}" for index in INDEXES for part in ("data", "idx", "docsize", "config"))
ALL_TABLES = ("documents", "marker", "writing", "letters", *INDEXES, "documents_places", *_SHADOWS)

AS_JSON = (*LISTS, "fields")
_TYPES: dict[type, type] = {str: str, int: int, float: float, bool: int, tuple: str}


def _column_types() -> dict[str, type]:
    """SQLite's type for each field. The long text is last: to read a column, SQLite passes all columns before it."""
    types: dict[str, type] = {}
    for name, hint in get_type_hints(Document).items():
        plain = next((part for part in get_args(hint) if part in _TYPES), hint)
        types[name] = _TYPES.get(plain, str)
    types["spaceless"] = int
    types["text"] = types.pop("text")
    return types


COLUMN_TYPES = _column_types()
BOOLEANS = frozenset(name for name, hint in get_type_hints(Document).items() if bool in get_args(hint))


def create_tables(path: Path) -> None:
    """Create an empty build in a new file."""
    connection = connect(path, "rwc")
    try:
        connection.execute("PRAGMA journal_mode = WAL")  # readers continue during writes
        database = sqlite_utils.Database(connection)
        documents = database.table("documents")
        documents.create({"row": int, **COLUMN_TYPES}, pk="row", not_null={"id", "parent_id"})
        documents.create_index(["id"], unique=True)
        documents.create_index(["parent_id", "document_hash"])
        documents.create_index(["filename"])
        connection.execute("CREATE INDEX documents_tenant_key ON documents (tenant_key) WHERE tenant_key IS NOT NULL")
        columns, weights = ", ".join(SEARCHED), ", ".join(map(str, WEIGHTS.values()))
        connection.execute("CREATE TABLE writing (begun)")
        connection.execute("CREATE TABLE letters (number INTEGER PRIMARY KEY, letter TEXT, plain TEXT)")
        pairs = "INSERT INTO letters (letter, plain) SELECT key, value FROM json_each(?)"
        connection.execute(pairs, [json.dumps(letters.REPLACEMENTS)])
        folded = [f"{letters.folded_sql(name)} AS {name}" for name in SEARCHED]
        searched = [f"iif({_WRITING}, {letters.folded_sql(name)}, {name}) AS {name}" for name in SEARCHED]
        for view, texts in (("documents_folded", folded), ("documents_searched", searched)):
            connection.execute(f"CREATE VIEW {view} AS SELECT row, {', '.join(texts)} FROM documents")
        connection.execute(
            f"CREATE VIRTUAL TABLE documents_fts USING fts5({columns}, content=documents_searched, content_rowid=row, "
            f"tokenize='{TOKENIZER}')"
        )
        connection.execute(
            f"CREATE VIRTUAL TABLE documents_trigrams USING fts5({columns}, content=documents, tokenize='trigram')"
        )
        for table in INDEXES:
            connection.execute(f"INSERT INTO {table}({table}, rank) VALUES ('rank', ?)", [f"bm25({weights})"])
        connection.execute("CREATE VIRTUAL TABLE documents_places USING fts5vocab(documents_trigrams, instance)")
        database.table("marker").create({"home_id": str, "build_id": str, "projection_version": int, "stamp": str})
        for statement in _triggers():
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
    finally:
        connection.close()


def _triggers() -> Iterator[str]:
    columns = ", ".join(SEARCHED)
    changed = " OR ".join(f"old.{name} IS NOT new.{name}" for name in SEARCHED)
    differs = f"({changed} OR old.spaceless IS NOT new.spaceless)"
    foreign = f"NOT {_WRITING}"
    for table, old, new in ((INDEXES[0], "1", "1"), (INDEXES[1], "old.spaceless", "new.spaceless")):
        folded = table == INDEXES[0]  # the view also has the old values, until the row is changed
        source, texts = ("documents_folded", columns) if folded else ("documents", ", ".join(indexed(table)))
        insert = f"INSERT INTO {table}(rowid, {columns}) SELECT row, {texts} FROM {source} WHERE row = new.row;"
        delete = (
            f"INSERT INTO {table}({table}, rowid, {columns}) SELECT 'delete', row, {texts} FROM {source} "
            "WHERE row = old.row;"
        )
        yield f"CREATE TRIGGER {table}_insert AFTER INSERT ON documents WHEN {new} AND {foreign} BEGIN {insert} END"
        yield f"CREATE TRIGGER {table}_delete BEFORE DELETE ON documents WHEN {old} AND {foreign} BEGIN {delete} END"
        old_differs, new_differs = (f"{row} AND {differs} AND {foreign}" for row in (old, new))
        yield f"CREATE TRIGGER {table}_before BEFORE UPDATE ON documents WHEN {old_differs} BEGIN {delete} END"
        yield f"CREATE TRIGGER {table}_after AFTER UPDATE ON documents WHEN {new_differs} BEGIN {insert} END"


def indexed(table: str) -> list[str]:
    """The expressions that an index stores for the searched columns of `documents`. See `prepare`."""
    if table == INDEXES[0]:
        return [f"{_FOLDED}({name})" for name in SEARCHED]
    after = ", ".join(str(ord(character)) for character in SUFFIX)
    return [f"{name} || char({after})" for name in SEARCHED]


def add_to_indexes(connection: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Add rows to both indexes. They must be in neither."""
    for table in INDEXES:
        _insert(connection, table, f"{table}(rowid, {', '.join(SEARCHED)}) SELECT row", rows)


def remove_from_indexes(connection: sqlite3.Connection, rows: Sequence[int]) -> None:
    """Call it before these rows are changed or deleted: FTS5 needs their old values."""
    for table in INDEXES:
        _insert(connection, table, f"{table}({table}, rowid, {', '.join(SEARCHED)}) SELECT 'delete', row", rows)


def prepare(connection: sqlite3.Connection) -> None:
    """Register the function of our writes, which is ten times as fast as the expressions of the triggers."""
    connection.create_function(_FOLDED, 1, lambda text: letters.fold_whole(text) if isinstance(text, str) else text)


def _insert(connection: sqlite3.Connection, table: str, head: str, rows: Sequence[int]) -> None:
    """Insert in row order: then FTS5 collects many rows before it writes."""
    among = f"row IN {JSON_MEMBERS}{' AND spaceless' if table == INDEXES[1] else ''}"
    columns = ", ".join(indexed(table))
    statement = f"INSERT INTO {head}, {columns} FROM documents WHERE {among} ORDER BY row"
    connection.execute(statement, [json.dumps(rows)])


class Connection(sqlite3.Connection):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._version: tuple[int, int] | None = None
        self._cache: dict[Hashable, Any] = {}

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, which is called again after a change of the database."""
        version = self.execute("PRAGMA data_version").fetchone()[0], self.total_changes
        if version != self._version:
            self._version, self._cache = version, {}
        if key not in self._cache:
            self._cache[key] = make()
        result: T = self._cache[key]
        return result


def connect(
    path: Path, mode: str = "rw", prepare: Callable[["Connection"], None] = lambda connection: None
) -> Connection:
    """Open the file; `rw` never creates it. There are no implicit transactions.

    `prepare` is called with the new connection, which is closed if that fails.
    """
    if mode == "rw" and not path.is_file():
        raise BuildMissing(f"no keyword index at {path}")
    with translate_errors(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=30,
            factory=Connection,
        )
        with on_failure(connection.close):
            connection.row_factory = sqlite3.Row
            if mode == "rw":
                _check_layout(connection, path)
            prepare(connection)
        return connection


def _check_layout(connection: sqlite3.Connection, path: Path) -> None:
    layout = connection.execute("PRAGMA user_version").fetchone()[0]
    if layout == 0:
        raise BuildBroken(f"{path} is not a keyword index")
    if layout != LAYOUT:
        raise BuildMissing(f"{path} was written by another version of chunksink (layout {layout}, not {LAYOUT})")


def by_id(connection: sqlite3.Connection, columns: str, ids: Sequence[str]) -> sqlite3.Cursor:
    """The rows of these documents, in any order."""
    return connection.execute(f"SELECT {columns} FROM documents WHERE id IN {JSON_MEMBERS}", [json.dumps(list(ids))])


def fields_of(row: sqlite3.Row) -> dict[str, Any]:
    """The columns of a row that are not null, decoded."""
    # By position: `row[name]` searches all columns for each name.
    fields = {name: value for name, value in zip(row.keys(), row, strict=True) if value is not None}
    for name in AS_JSON:
        if name in fields:
            fields[name] = orjson.loads(fields[name])
    for name in BOOLEANS:
        if name in fields:
            fields[name] = bool(fields[name])
    return fields
