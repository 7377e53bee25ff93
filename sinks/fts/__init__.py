"""The embedded keyword sink on SQLite FTS5: what makes the default need no server."""

from sinks.fts.reader import FtsReader
from sinks.fts.sink import FtsBuild, FtsSink

__all__ = ["FtsBuild", "FtsReader", "FtsSink"]
