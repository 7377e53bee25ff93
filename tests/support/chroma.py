"""The folder of an embedded Chroma build, and families to fill it."""

from functools import cache
from pathlib import Path

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Family


def folder(tmp_path: Path, signed: Marker) -> Path:
    return tmp_path / "chroma" / signed.build_id


@cache
def long() -> list[Family]:
    """Takes long in one call, in which the process has many turns."""
    return [family("long", [f"{place}" for place in range(6000)])]


FEW = [family("few", ["one", "two"])]
