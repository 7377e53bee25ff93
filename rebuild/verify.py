"""Asking an engine what it holds, and comparing that with what it confirmed. Receipts are never proof."""

from dataclasses import dataclass
from itertools import islice

from sqlite_utils import Database

from sinks.sink import Build

_EXAMPLES = 3


@dataclass(frozen=True)
class Difference:
    """Families of which an engine holds something else than it confirmed."""

    families: int
    examples: tuple[str, ...]


def verify(db: Database, build: Build, build_id: str) -> Difference | None:
    """None where the build holds exactly what its receipts say; reads the whole build through its own interface."""
    db.execute("drop table if exists temp.held")
    db.execute("create temp table held (family text, family_hash text)")
    stored = build.scan()
    while some := list(islice(stored, 5000)):
        db.conn.executemany("insert into held values (?, ?)", [(found.parent_id, found.family_hash) for found in some])
    wrong = [
        row[0]
        for row in db.execute(
            """
            with held_counts as (select family, family_hash, count(*) as documents from held group by 1, 2),
            expected as (
                select family, family_hash,
                    documents - case refused when '' then 0 else 1 + length(refused) - length(replace(refused, ' ', ''))
                    end as documents
                from receipt where build = :build)
            select family from (select * from expected where documents > 0 except select * from held_counts)
            union
            select family from (select * from held_counts except select * from expected)
            """,
            {"build": build_id},
        )
    ]
    return Difference(len(wrong), tuple(wrong[:_EXAMPLES])) if wrong else None
