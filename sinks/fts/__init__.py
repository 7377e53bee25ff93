"""The embedded keyword sink on SQLite FTS5: what makes the default need no server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from chunksink.sinks.fts.build import FtsBuild
from chunksink.sinks.fts.reader import FtsReader
from chunksink.sinks.fts.sink import FtsSink
from chunksink.sinks.registry import read_options

__all__ = ["FtsBuild", "FtsOptions", "FtsReader", "FtsSink", "open_sink"]


class FtsOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`folder` of the builds; without it `fts` in the home."""

    folder: str | None = None


def open_sink(home: Path, options: Mapping[str, Any]) -> FtsSink:
    wanted = read_options("fts", FtsOptions, options)
    return FtsSink(Path(wanted.folder) if wanted.folder else home / "fts")
