"""Families before and after a change, and their expected files."""

from pathlib import Path

from chunksink.chunkbus.canonical import canonical_json
from chunksink.sinks.conformance.samples import family
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Family
from chunksink.sinks.jsonl import JsonlBuild, JsonlSink
from chunksink.sinks.jsonl.build import FAMILIES, PENDING

OLD, NEW = family("a", ["old one", "old two"], version="1"), family("a", ["new"] * 3, version="2")
GOING, ADDED, UNTOUCHED = family("going", ["x", "y"]), family("added", ["z"]), family("untouched", ["u"])
BEFORE, AFTER = [OLD, GOING, UNTOUCHED], [NEW, ADDED, UNTOUCHED]


def prepared(root: Path) -> None:
    build = JsonlSink(root).create(Marker("home", "b1", 1))
    fill(build, BEFORE)
    build.close()


def fill(build: JsonlBuild, families: list[Family]) -> None:
    build.replace(families)
    assert build.flush() == []


def change(build: JsonlBuild) -> None:
    """The files after the change from BEFORE to AFTER."""
    build.replace([NEW, ADDED])
    build.delete([GOING.parent_id])
    assert build.flush() == []


def file_of(folder: Path, one: Family) -> Path:
    return folder / FAMILIES / one.parent_id[:2] / f"{one.parent_id}.jsonl"


def content_of(one: Family) -> bytes:
    return b"".join(canonical_json(document.as_dict()) + b"\n" for document in one.documents)


def visible(folder: Path) -> dict[str, bytes]:
    """The files that another system reads."""
    return {path.name: path.read_bytes() for path in folder.rglob("*.jsonl")}


def as_files(families: list[Family]) -> dict[str, bytes]:
    return {f"{one.parent_id}.jsonl": content_of(one) for one in families}


def pending(folder: Path) -> list[Path]:
    return list((folder / PENDING).iterdir()) if (folder / PENDING).is_dir() else []
