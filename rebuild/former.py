"""What sources were in former versions, or before they were withdrawn: their documents, and their texts, of which the
cache may still have the vectors.

Only forgetting asks for it. Texts are noted until the cache drops all vectors that no chunk refers to.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlite_utils import Database

_BEFORE = """
insert into before select line, family, parent_id, document_id, text_hash from chunk where partition = ?
"""
_STANDS = """
delete from before where line in (select line from chunk where partition = ?)
"""
# All chunks of these families are gone through once, whatever partition they stand in. Joined, for SQLite compares what
# is `not in` with every row.
_NOTE_TEXTS = """
insert or ignore into former_text (family, text_hash)
select before.family, before.text_hash from before left join (
    select distinct family, text_hash from chunk where family in (select family from before)) as now
    on now.family = before.family and now.text_hash = before.text_hash
where now.family is null
"""
_NOTE_DOCUMENTS = """
insert or ignore into former_document (family, document_id, parent_id)
select before.family, before.document_id, parent_id from before left join (
    select distinct family, document_id from chunk where family in (select family from before)) as now
    on now.family = before.family and now.document_id = before.document_id
where now.family is null
"""
# The signs keep SQLite from looking up each family with each text.
_IS_BACK = """
delete from former_text where (+family, +text_hash) in (
    select family, text_hash from chunk where partition = ?)
"""


@contextmanager
def noting_former(db: Database, partition: str) -> Iterator[None]:
    """A partition is read anew, or dropped, meanwhile: what its families have no more after that is noted. Within the
    caller's transaction."""
    columns = "line blob, family text, parent_id text, document_id text, text_hash text"
    db.execute(f"create temp table if not exists before ({columns})")
    db.execute(_BEFORE, [partition])
    yield
    db.execute(_STANDS, [partition])  # mostly nearly all of it
    for note in (_NOTE_TEXTS, _NOTE_DOCUMENTS):
        db.execute(note)
    db.execute("delete from before")
    if db.execute("select 1 from former_text limit 1").fetchone() is not None:
        db.execute(_IS_BACK, [partition])


def former_documents(db: Database, family: str) -> set[str]:
    documents = db.execute("select document_id from former_document where family = ?", [family])
    return {document for (document,) in documents}


def former_texts(db: Database, family: str) -> set[str]:
    return {text for (text,) in db.execute("select text_hash from former_text where family = ?", [family])}


def drop_former_texts(db: Database) -> None:
    """Of all families: the cache has none of their vectors any more."""
    db.execute("delete from former_text")
