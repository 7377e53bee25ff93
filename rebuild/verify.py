"""Asking an engine what it holds, and comparing that with what it confirmed. Receipts are never proof."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice

from sqlite_utils import Database

from rebuild.digest import document_digest, family_digest
from sinks.sink import Build, Stored

_EXAMPLES = 3
_PAGE = 5000


@dataclass(frozen=True)
class Difference:
    """Families of which an engine holds something else than it confirmed."""

    families: int
    examples: tuple[str, ...]


def verify(db: Database, build: Build, build_id: str) -> Difference | None:
    """None where the build holds exactly what its receipts say; reads all its content through its own interface."""
    with db.atomic():
        db.execute("drop table if exists temp.held")
        db.execute("create temp table held (family text, digest text)")
        stored = build.scan(content=True)
        while some := list(islice(stored, _PAGE)):
            db.conn.executemany("insert into held values (?, ?)", [(found.parent_id, _digest(found)) for found in some])
    wrong = _wrong_families(db, build_id)
    examples = tuple(islice(wrong, _EXAMPLES))
    return Difference(len(examples) + sum(1 for _ in wrong), examples) if examples else None


def _digest(found: Stored) -> str:
    """ "" for what no sink has written, which no family can hold."""
    return "" if found.document is None else document_digest(found.document, found.text_hash)


def _wrong_families(db: Database, build_id: str) -> Iterator[str]:
    held = db.execute(
        "select h.family, h.digest, r.digest from held h left join receipt r on r.build = ? and r.family = h.family "
        "order by h.family",
        [build_id],
    )
    for (family, confirmed), documents in groupby(held, key=lambda row: (row[0], row[2])):
        if family_digest(digest for _, digest, _ in documents) != confirmed:
            yield family
    missing = db.execute(
        "select family from receipt where build = ? and digest <> '' and family not in (select family from held)",
        [build_id],
    )
    for (family,) in missing:
        yield family
