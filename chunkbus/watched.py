"""Whether anybody has written to a SQLite file, for microseconds each time it is asked."""

import sqlite3
from pathlib import Path


class Watched:
    """Stays open between two questions, and any thread may ask. What SQLite raises is the caller's to explain."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)

    def version(self) -> int:
        """Another number after each change that somebody made since."""
        (version,) = self._db.execute("pragma data_version").fetchone()
        return int(version)

    def close(self) -> None:
        self._db.close()
