"""Where a build lies."""

from pathlib import Path

from chunksink.sinks.sink import Marker


def folder(tmp_path: Path, signed: Marker) -> Path:
    return tmp_path / "chroma" / signed.build_id
