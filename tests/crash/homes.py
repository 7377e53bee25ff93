"""Homes for runs that are killed: two generations, a bus with newer chunks, and the expected result."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from chunksink.chunkbus.canonical import text_hash
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.references import raw_key
from chunksink.sinks.contract import Sink
from chunksink.sinks.fts import FtsSink
from tests.support.bus import FEBRUARY, MARCH, commit, parent_of, source
from tests.support.home import Home, PoisonedEncoder
from tests.support.local_engines import eager as fts
from tests.support.local_engines import eager_jsonl as jsonl
from tests.support.watched_sinks import Moment, watching


def home_in(folder: Path, root: FolderRoot) -> Home:
    home = Home(folder, root, fts, jsonl, engines={"fts": fts, "jsonl": jsonl})
    home.encoder = PoisonedEncoder(dimension=8)
    return home


OLD = [source(f"docs/{number}.md", f"okapi {number}", f"lemur {number}") for number in range(6)]
KEPT = source("docs/kept.md", "kept as it is", "and this too")
EDITED = [source(f"docs/{number}.md", f"tapir {number}", version="2", at=FEBRUARY) for number in range(3)]
ADDED = source("docs/new.md", "brand new", "zebra", at=FEBRUARY)
GONE = source("docs/gone.md", "will be gone")


def prepare(folder: Path) -> Home:
    """Two generations of the earlier bus."""
    home = home_in(folder / "home", FolderRoot(folder / "chunks"))
    commit(home.root, "p1", [*(record for records in OLD for record in records), *KEPT])
    commit(home.root, "gone", GONE)
    home.rebuild()
    home.rebuild()
    return home


def move_on(home: Home, scenario: str) -> None:
    """Change the bus: three sources are edited, one is added, two are removed."""
    unchanged = [*KEPT, *OLD[3]]
    commit(home.root, "p1", [*(record for records in EDITED for record in records), *unchanged, *ADDED], at=FEBRUARY)
    if scenario in ("held", "retire"):
        (home.root.chunks_file("gone")).unlink()
        (home.root.manifest_file("gone")).unlink()
    if scenario == "held":
        commit(home.root, "bad", source("docs/bad.md", "cut off"))
        file = home.root.chunks_file("bad")
        file.write_bytes(file.read_bytes()[:-9])


def settle(home: Home, scenario: str) -> None:
    """Do what a user does before the next run, so that the bus is complete."""
    if scenario == "held":
        commit(home.root, "bad", source("docs/bad.md", "whole again"))
    if scenario in ("held", "retire"):
        commit(home.root, "gone", GONE)
    if scenario == "recovered":
        home.rebuild()  # no live generation that a sync could continue


def undo(home: Home) -> None:
    """Restores the bus's earlier content."""
    commit(home.root, "p1", [*(record for records in OLD for record in records), *KEPT])


def rewrite_one(home: Home) -> None:
    """Edit one source, which keeps its number of chunks."""
    edited = source("docs/0.md", "tapir 0", "zebra 0", version="2", at=FEBRUARY)
    commit(home.root, "p1", [*edited, *(record for records in OLD[1:] for record in records), *KEPT], at=FEBRUARY)


def withdraw(home: Home) -> None:
    """Remove a source that the killed run was writing."""
    commit(home.root, "p3", [], at=MARCH, tombstones=[Tombstone(parent_id=parent_of("docs/new.md"))])


def move_on_meanwhile(home: Home) -> Callable[[Sink], Any]:
    """Rewrite the partition while the run reads it."""

    def rewrite() -> None:
        edited = [record for records in EDITED for record in records]
        commit(home.root, "p1", [*ADDED, *KEPT, *OLD[3], *edited], at=MARCH)

    return watching("fts", Moment("marker", 1, rewrite))


def copied(home: Home, folder: Path) -> Home:
    shutil.copytree(home.folder.parent, folder, symlinks=True)
    return home_in(folder / "home", FolderRoot(folder / "chunks"))


def found_by_readers(home: Home) -> dict[str, set[str]]:
    """The texts of each family that a reader of the live generation finds by word."""
    found: dict[str, set[str]] = {}
    with closing(FtsSink(home.folder / "fts").reader(home.live().builds["fts"])) as words:
        for word in ("okapi", "lemur", "tapir", "kept", "brand", "gone"):
            for document in words.get([hit.id for hit in words.search(word, 100)]):
                found.setdefault(document.parent_id, set()).add(document.text)
    return found


def committed_texts(home: Home, texts: set[str]) -> set[str]:
    hashes = {raw_key(text_hash(text)): text for text in texts}
    with VectorCache.open(home.folder / "vectors.db") as cache:
        found = cache.lookup(home.encoder.fingerprint, list(hashes), dimension=8)
    return {list(hashes.values())[position] for position in found.positions}
