"""The records of a build: receipts (what it has confirmed), intents (started writes) and dead letters (refusals).

While an intent is open, the family's state in the build is unknown, even if there is a receipt. A new receipt, a
confirmed removal or a scan closes the intent. Receipts are never proof: a scan can recreate them from the engine's
documents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from chunksink.chunkbus.runlog import utc_now
from chunksink.chunkbus.store import write_transaction
from chunksink.rebuild.errors import UnknownSink
from chunksink.rebuild.schema import RECORDS_OF_BUILD, WHOLE, exists, number
from chunksink.rebuild.state import State
from chunksink.sinks.contract import RefusedDocument

if TYPE_CHECKING:
    from sqlite_utils import Database

WITHOUT_VECTOR = "its text has no vector: "
"""Begins the reason of a document that was refused for lack of a vector."""


@dataclass(frozen=True)
class Receipt:
    family: str
    family_hash: str
    """Of the version that the build has confirmed."""
    documents: int
    """Without refused ones."""
    label: str = ""
    """The name of the source."""


@dataclass(frozen=True)
class DeadLetter:
    id: str
    family: str
    source: str
    """The name of its source; empty if unknown."""
    reason: str
    at: str


@dataclass(frozen=True, eq=False)
class Receipts:
    """All records of one build."""

    db: Database
    build_id: str

    def intend(self, families: Iterable[str]) -> None:
        """Record that these families are about to be written. Committed when this returns."""
        with write_transaction(self.db):
            self.db.conn.executemany(
                "insert or ignore into intent values (?, ?)", [(self.build_id, family) for family in families]
            )

    def confirm(self, receipts: Sequence[Receipt], refused: Sequence[RefusedDocument]) -> None:
        """The engine has confirmed these families, except for the refused documents."""
        build, at = self.build_id, utc_now()
        with write_transaction(self.db):
            self.db.conn.executemany(
                "insert or replace into receipt (build, family, family_hash, documents, label) values (?, ?, ?, ?, ?)",
                [(build, *astuple(each)) for each in receipts],
            )
            self._close([each.family for each in receipts])
            self.db.conn.executemany(
                "insert or replace into dead_letter values (?, ?, ?, ?, ?)",
                [(build, each.id, each.parent_id, each.reason, at) for each in refused],
            )

    def confirm_removed(self, families: Sequence[str]) -> None:
        """The engine has confirmed that these families are removed."""
        with write_transaction(self.db):
            self._drop("receipt", families)
            self._close(families)

    def forget_all(self) -> None:
        with write_transaction(self.db):
            for table in RECORDS_OF_BUILD:
                self.db.execute(f"delete from {table} where build = ?", [self.build_id])

    def held_and_missing(self) -> int:
        """Current sources that the build lacks and that are held, so that no run writes them."""
        return number(
            self.db,
            "select count(*) from held join current using (family) "
            "where family not in (select family from receipt where build = ?)",
            [self.build_id],
        )

    def documents(self) -> int:
        return number(self.db, "select coalesce(sum(documents), 0) from receipt where build = ?", [self.build_id])

    def has_intents(self) -> bool:
        return exists(self.db, "intent where build = ?", [self.build_id])

    def has_lasting_intents(self) -> bool:
        """Whether the next plan leaves an intent open: its family is held, or is gone and may not be removed."""
        withheld = f"family not in (select family from current) and not ({WHOLE})"
        lasting = f"intent where build = ? and (family in (select family from held) or {withheld})"
        return exists(self.db, lasting, [self.build_id])

    def refused(self) -> int:
        return number(self.db, "select count(*) from dead_letter where build = ?", [self.build_id])

    def dead_letters(self, limit: int = -1) -> list[DeadLetter]:
        rows = self.db.execute(
            "select id, family, coalesce(label, ''), reason, at from dead_letter "
            "left join receipt using (build, family) where build = ? order by id limit ?",
            [self.build_id, limit],
        )
        return [DeadLetter(*row) for row in rows]

    def next_without_vector(self, limit: int) -> dict[str, set[str]]:
        """Documents to try again, by family: they were refused because their text has no vector. Chooses those whose
        last attempt is the oldest, and notes this attempt."""
        chosen = (
            "select id from dead_letter where build = :build and substr(reason, 1, length(:reason)) = :reason "
            "and family in (select family from current) and family not in (select family from held) "
            "order by at, id limit :limit"
        )
        update = f"update dead_letter set at = :at where build = :build and id in ({chosen}) returning family, id"
        values = {"build": self.build_id, "reason": WITHOUT_VECTOR, "limit": limit, "at": utc_now()}
        documents: dict[str, set[str]] = {}
        with write_transaction(self.db):
            for family, id in self.db.execute(update, values).fetchall():
                documents.setdefault(family, set()).add(id)
        return documents

    def retry_dead_letters(self) -> int:
        """Make the next sync send the families with dead letters again. Returns the number of dead letters."""
        with write_transaction(self.db):
            letters = "select build, family from dead_letter where build = ?"
            self.db.execute(f"insert or ignore into intent {letters}", [self.build_id])
            return self.refused()

    def stamps(self) -> set[str]:
        """The stamps that the marker may have; "" if none is recorded. Older copies of the build have other stamps."""
        rows = self.db.execute("select stamp from stamp where build = ?", [self.build_id]).fetchall()
        return {stamp for (stamp,) in rows} or {""}

    def expect_stamps(self, stamps: Collection[str]) -> None:
        """Replace the stamps that the marker may have."""
        with write_transaction(self.db):
            self.db.execute("delete from stamp where build = ?", [self.build_id])
            self.db.conn.executemany("insert into stamp values (?, ?)", [(self.build_id, stamp) for stamp in stamps])

    def _close(self, families: Sequence[str]) -> None:
        for table in ("intent", "dead_letter", "changed"):
            self._drop(table, families)

    def _drop(self, table: str, families: Sequence[str]) -> None:
        self.db.conn.executemany(
            f"delete from {table} where build = ? and family = ?", [(self.build_id, family) for family in families]
        )


def receipts_of_live(state: State, sink: str | None = None) -> dict[str, Receipts]:
    """The records of the live builds, or of the one in this sink, by sink."""
    builds = state.live().builds
    if sink is not None and sink not in builds:
        raise UnknownSink(f"the live index has no sink {sink!r:.100}, only {', '.join(builds)}")
    return {name: Receipts(state.db, build) for name, build in builds.items() if sink in (None, name)}
