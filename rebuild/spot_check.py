"""A part of a live build, compared with its receipts at every sync: another part each time.

Marker and count do not show documents that somebody else wrote over. A part has a hundredth of the build's documents,
at most `MOST_DOCUMENTS`, so after a known number of syncs every source was compared: a round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chunksink.chunkbus.runlog import utc_now
from chunksink.chunkbus.store import write_transaction
from chunksink.rebuild.receipts import Receipts
from chunksink.sinks.capabilities import SupportsUnchanged, capability
from chunksink.sinks.contract import Build

if TYPE_CHECKING:
    from sqlite_utils import Database

SHARE = 100
LEAST_DOCUMENTS, MOST_DOCUMENTS = 20, 200
"""In one part, unless a single source has more."""
LARGEST = 2000
"""Documents of a source. To read a larger one takes longer than a sync that has nothing to do: `verify` does."""
_AFTER_A_TOUCH = 2
"""Rounds: the one that has begun may have passed what was written over."""

# What the chunks do not say as it was confirmed is written anyway, or held.
_COMPARABLE = """
select r.family, r.documents, r.family_hash is c.family_hash and c.family_hash is not null
    and r.family not in (select family from held)
    and r.family not in (select family from intent where build = r.build)
from receipt r left join current c using (family)
where r.build = ? and r.family > ? order by r.family limit ?
"""


@dataclass(frozen=True)
class Coverage:
    """How far the rounds over one build have come."""

    compared_since: str | None
    """Every source was compared with what the engine holds at this time or later; None before the first round ends."""
    syncs_a_round: int


class SpotCheck:
    """The part of one build whose turn it is."""

    def __init__(self, db: Database, build_id: str) -> None:
        self._db = db
        self._build_id = build_id
        known = "select position, began, since, due from coverage where build = ?"
        row: tuple[str, str, str | None, int] | None = db.execute(known, [build_id]).fetchone()
        self._position, self._began, self._since, self._due = row or ("", utc_now(), None, 1)

    def coverage(self) -> Coverage:
        documents = Receipts(self._db, self._build_id).documents()
        return Coverage(self._since, -(-documents // _size(documents)))

    def is_due(self, build: Build) -> bool:
        """False where the build knows that nobody has written to it since the last round."""
        unchanged = capability(build, SupportsUnchanged)
        if unchanged is None:
            return True
        if not unchanged.is_unchanged():
            self._due = _AFTER_A_TOUCH
        return self._due > 0

    def families(self) -> list[str]:
        """Those to compare now. Moves on: call `note` when they were compared."""
        families, documents, wanted = list[str](), 0, _size(Receipts(self._db, self._build_id).documents())
        rows = self._db.execute(_COMPARABLE, [self._build_id, self._position, wanted + 1]).fetchall()
        for family, size, is_comparable in rows:
            self._position = family
            if is_comparable and size <= LARGEST:
                families.append(family)
                documents += size
            if documents >= wanted:
                break
        if len(rows) <= wanted and (not rows or rows[-1][0] == self._position):  # the end of the build
            self._position, self._since, self._began = "", self._began, utc_now()
            self._due = max(0, self._due - 1)
        return families

    def note(self) -> None:
        """Keep how far it has come."""
        with write_transaction(self._db):
            self._db.execute(
                "insert or replace into coverage values (?, ?, ?, ?, ?)",
                [self._build_id, self._position, self._began, self._since, self._due],
            )

    def note_scan(self, began: str) -> None:
        """All of it was compared by a scan."""
        self._position, self._began, self._since, self._due = "", utc_now(), began, 0
        self.note()


def _size(documents: int) -> int:
    return min(MOST_DOCUMENTS, max(LEAST_DOCUMENTS, documents // SHARE))
