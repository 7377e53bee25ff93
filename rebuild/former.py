"""What sources were in former versions, or before they were withdrawn: their documents, and their texts, of which the
cache may still have the vectors.

Only forgetting asks for it. Texts are noted until the cache drops all vectors that no chunk refers to.
"""

from sqlite_utils import Database

# All chunks of these families are gone through once, whatever partition they stand in. Joined, for SQLite compares what
# is `not in` with every row.
_NOTE_TEXTS = """
insert or ignore into former_text (family, text_hash)
select gone.family, gone.text_hash from gone left join (
    select distinct family, text_hash from chunk where family in (select family from gone)) as now
    on now.family = gone.family and now.text_hash = gone.text_hash
where now.family is null
"""
_NOTE_DOCUMENTS = """
insert or ignore into former_document (family, document_id, parent_id)
select gone.family, gone.document_id, parent_id from gone left join (
    select distinct family, document_id from chunk where family in (select family from gone)) as now
    on now.family = gone.family and now.document_id = gone.document_id
where now.family is null
"""
# The signs keep SQLite from looking up each family with each text.
_IS_BACK = """
delete from former_text where family in (select family from chunk where id > :last)
and (+family, +text_hash) in (select family, text_hash from chunk where id > :last)
"""


def note_former(db: Database, last: int) -> None:
    """A partition was taken in, in the caller's transaction: of its rows that are in the temporary table `gone` of
    `rebuild/lines.py`, what their families have no more is noted. The rows that came have numbers above `last`."""
    for note in (_NOTE_TEXTS, _NOTE_DOCUMENTS):
        db.execute(note)
    db.execute(_IS_BACK, {"last": last})


def former_documents(db: Database, family: str) -> set[str]:
    documents = db.execute("select document_id from former_document where family = ?", [family])
    return {document for (document,) in documents}


def former_texts(db: Database, family: str) -> set[str]:
    return {text for (text,) in db.execute("select text_hash from former_text where family = ?", [family])}


def drop_former_texts(db: Database) -> None:
    """Of all families: the cache has none of their vectors any more."""
    db.execute("delete from former_text")
