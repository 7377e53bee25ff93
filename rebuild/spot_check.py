"""Spot checks: every sync compares the next part of each live build with the chunks.

The marker and the number of documents of a build stay the same when another program overwrites documents. Spot checks
find that. A part is a hundredth of the build, rounded up, within `MIN_DOCUMENTS` and `MAX_DOCUMENTS`; for some builds
ten times as much. A pass over the whole build is a round: about a hundred syncs, more for large builds. Rounds skip
sources that are held, that the next plan writes anyway, or that have more than `MAX_CHUNKS` documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chunksink.chunkbus.runlog import utc_now
from chunksink.chunkbus.store import write_transaction
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.schema import exists
from chunksink.sinks.capabilities import SupportsUnchanged, capability
from chunksink.sinks.contract import Build

if TYPE_CHECKING:
    from sqlite_utils import Database

    from chunksink.rebuild.scan import Scan

SHARE = 100
MIN_DOCUMENTS, MAX_DOCUMENTS = 20, 200
"""Documents of one part, unless a single source has more."""
MAX_CHUNKS = 2000
"""Sources with more documents are left to `verify`: reading one takes longer than an idle sync."""
AT_REST_FACTOR = 10
"""For builds with `SupportsUnchanged`, parts are this many times larger. An idle sync opens such a build only for this
check, and opening it takes as long as comparing a part of this size."""
_ROUNDS_AFTER_A_WRITE = 2
"""Two, because the current round may already be past the documents that another program has written."""

# Families that differ from their receipts are left out: a sync writes them anyway, or they are held.
_COMPARABLE = """
select r.family, r.documents, r.family_hash is c.family_hash and c.family_hash is not null
    and r.family not in (select family from held)
    and r.family not in (select family from intent where build = r.build)
from receipt r left join current c using (family)
where r.build = ? and r.family > ? order by r.family limit ?
"""


@dataclass(frozen=True)
class Coverage:
    """The progress of the rounds over one build."""

    compared_since: str | None
    """When the last complete round or scan began: each source was compared with the engine then or later, except held
    ones and, in a round, very large ones. None before the end of the first round or scan."""
    syncs_a_round: int
    """The most syncs that a round takes."""
    leaves_out: bool
    """Whether rounds leave out sources, because they are very large."""


class SpotCheck:
    """Compares the next part of one build, and records the progress of the rounds."""

    def __init__(self, db: Database, build_id: str) -> None:
        self._db = db
        self._build_id = build_id
        select = "select family, began, since, due from coverage where build = ?"
        row: tuple[str, str, str | None, int] | None = db.execute(select, [build_id]).fetchone()
        self._position, self._began, self._since, self._due = row or ("", utc_now(), None, 1)

    def coverage(self) -> Coverage:
        documents = Receipts(self._db, self._build_id).documents()
        leaves_out = exists(self._db, "receipt where build = ? and documents > ?", [self._build_id, MAX_CHUNKS])
        return Coverage(self._since, -(-documents // _size(documents)), leaves_out)

    def finds_drift(self, build: Build, scan: Scan) -> bool:
        """Compare the next part. If it differs, the caller must scan the whole build and then call `note_scan`.

        A build that can show that nobody has written to it is skipped once its rounds are done.
        """
        at_rest = capability(build, SupportsUnchanged)
        if at_rest is not None:
            if not at_rest.is_unchanged():
                self._due = _ROUNDS_AFTER_A_WRITE
            if self._due == 0:
                return False
        part = _size(Receipts(self._db, self._build_id).documents())
        families = self._next_families(part if at_rest is None else part * AT_REST_FACTOR)
        if families and scan.finds_drift_in(families):
            return True
        self._save()
        return False

    def note_scan(self, began: str) -> None:
        """Record that a scan has compared the whole build."""
        self._position, self._began, self._since, self._due = "", utc_now(), began, 0
        self._save()

    def _next_families(self, part: int) -> list[str]:
        """The next families, which together have at least `part` documents. At the end of the build, starts the next
        round."""
        families, documents = list[str](), 0
        rows = self._db.execute(_COMPARABLE, [self._build_id, self._position, part + 1]).fetchall()
        for family, size, is_comparable in rows:
            self._position = family
            if is_comparable and size <= MAX_CHUNKS:
                families.append(family)
                documents += size
            if documents >= part:
                break
        if len(rows) <= part and (not rows or rows[-1][0] == self._position):  # the end of the build
            self._position, self._since, self._began = "", self._began, utc_now()
            self._due = max(0, self._due - 1)
        return families

    def _save(self) -> None:
        with write_transaction(self._db):
            self._db.execute(
                "insert or replace into coverage values (?, ?, ?, ?, ?)",
                [self._build_id, self._position, self._began, self._since, self._due],
            )


def _size(documents: int) -> int:
    return min(MAX_DOCUMENTS, max(MIN_DOCUMENTS, -(-documents // SHARE)))
