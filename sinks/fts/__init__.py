"""The embedded keyword sink on SQLite FTS5: the default, because it needs no server."""

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
    """`folder` of the builds (default: `fts` in the home)."""

    folder: str | None = None


def open_sink(home: Path, options: Mapping[str, Any]) -> FtsSink:
    folder = read_options("fts", FtsOptions, options).folder
    return FtsSink(Path(folder) if folder else home / "fts")
