"""What the marker of a build may say of the run that wrote to it last, so that an older copy of it is known for one.

A new stamp is noted before the marker bears it: where a kill comes in between, the one that it had is as good.
"""

import secrets
from collections.abc import Callable

from sqlite_utils import Database

from chunksink.chunkbus.store import write_transaction

_NEVER = ""
"""That of a build to which no run has written yet."""


class Stamps:
    """Those of one build."""

    def __init__(self, db: Database, build_id: str) -> None:
        self._db = db
        self._build_id = build_id

    def known(self) -> set[str]:
        rows = self._db.execute("select stamp from stamp where build = ?", [self._build_id]).fetchall()
        return {stamp for (stamp,) in rows} or {_NEVER}

    def renew(self, sign: Callable[[str], object]) -> None:
        new = secrets.token_hex(8)
        with write_transaction(self._db):
            rows = [(self._build_id, stamp) for stamp in (*self.known(), new)]
            self._db.conn.executemany("insert or ignore into stamp values (?, ?)", rows)
        sign(new)
        with write_transaction(self._db):
            self._db.execute("delete from stamp where build = ? and stamp <> ?", [self._build_id, new])
