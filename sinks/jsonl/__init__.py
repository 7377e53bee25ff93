"""The jsonl sink: projected documents as plain files, for any other system. No engine, no server.

<root>/current -> <build_id>                         the live build; changed in one step
<root>/<build_id>/marker.json                        which home and build it belongs to
<root>/<build_id>/families/ab/ab...<64 digits>.jsonl a family: its documents in order, one line of canonical JSON each
<root>/<build_id>/.pending/                          files that are not flushed yet
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from chunksink.sinks.jsonl.build import JsonlBuild
from chunksink.sinks.jsonl.sink import JsonlSink
from chunksink.sinks.registry import read_options

__all__ = ["JsonlBuild", "JsonlOptions", "JsonlSink", "open_sink"]


class JsonlOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`folder` of the builds (default: `jsonl` in the home)."""

    folder: str | None = None


def open_sink(home: Path, options: Mapping[str, Any]) -> "JsonlSink":
    folder = read_options("jsonl", JsonlOptions, options).folder
    return JsonlSink(Path(folder) if folder else home / "jsonl")
