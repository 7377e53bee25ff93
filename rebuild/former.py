"""Texts that a source said in former versions, or before it was withdrawn: the cache may still have their vectors.

Only forgetting asks for them. What drops all vectors that nothing refers to drops these notes, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlite_utils import Database


@contextmanager
def noting_former(db: Database, partition: str) -> Iterator[None]:
    """Notes what families have no more after what is done meanwhile with a partition. In the caller's transaction."""
    db.execute("create temp table if not exists was (family text, parent_id text, document_id text, text_hash text)")
    db.execute(
        "insert into was select family, parent_id, document_id, text_hash from chunk where partition = ?",
        [partition],
    )
    yield
    db.execute(
        "insert or ignore into former select family, text_hash, parent_id, document_id from was where not exists "
        "(select 1 from chunk where chunk.family = was.family and chunk.text_hash = was.text_hash)"
    )
    db.execute("delete from was")


def former_texts(db: Database, family: str) -> Iterator[tuple[str, str]]:
    """Each with the document that said it."""
    yield from db.execute("select document_id, text_hash from former where family = ?", [family])


def drop_former(db: Database) -> None:
    db.execute("delete from former")
