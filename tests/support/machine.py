"""Random sequences of edits: after each sync the engines' content equals a plain dict's."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.sinks.projection import project_family
from tests.support.bus import commit, parent_of, source
from tests.support.home import Home
from tests.support.local_engines import fts
from tests.support.memory_sink import MemoryContent, MemorySink

PARTITIONS = ("p0", "p1", "p2")
NAMES = tuple(f"docs/{number}.md" for number in range(6))
STOCK = {"p0": NAMES[:2], "p1": NAMES[2:4], "p2": ()}

MEMORY = Path("/dev/shm")
"""Where there is one, homes lie in it: on a disk a sequence takes half as long again."""

Bus = dict[str, dict[str, list[Record]]]
"""Partition to source to its records."""


class Beginning(Protocol):
    """The state in which a sequence begins."""

    @property
    def folder(self) -> Path: ...

    @property
    def bus(self) -> Bus: ...

    def home(self, folder: Path) -> Home:
        """A home with a live index of the bus."""


@dataclass(frozen=True)
class Begun:
    """A home with a live index, made once. Each sequence begins with a copy."""

    folder: Path
    memory: MemorySink
    bus: Bus

    def home(self, folder: Path) -> Home:
        """Copy the home to a folder that does not exist yet."""
        shutil.copytree(self.folder, folder)
        return home_in(folder, copied(self.memory))


def home_in(folder: Path, memory: MemorySink) -> Home:
    return Home(folder / "home", FolderRoot(folder / "chunks"), fts, lambda _home: memory)


def copied(sink: MemorySink) -> MemorySink:
    new = MemorySink()
    new.live = sink.live
    for build_id, content in sink._contents.items():  # tests may read behind the interface
        copy = new._contents[build_id] = MemoryContent()
        copy.marker, copy.documents, copy.vectors = content.marker, dict(content.documents), dict(content.vectors)
    return new


def begin_with(names: dict[str, tuple[str, ...]], folder: Path) -> Begun:
    memory = MemorySink()
    home = home_in(folder, memory)
    bus: Bus = {}
    for partition, of in names.items():
        bus[partition] = {name: source(name, f"{name} at first", "and more", version="0", at=at(0)) for name in of}
        commit(home.root, partition, [record for records in bus[partition].values() for record in records], at=at(0))
    home.rebuild()
    return Begun(folder, memory, bus)


def at(clock: int) -> str:
    return f"2026-01-01T{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}Z"


WHICH = st.integers(0, len(PARTITIONS) * len(NAMES) - 1)
"""One of the existing sources, in any partition."""


class Machine(RuleBasedStateMachine):
    """Random edits, each with a later time than all before it. An id claimed by two families is held."""

    def __init__(self, begun: Callable[[bool], Beginning], done: Counter[str]) -> None:
        super().__init__()
        self._begun = begun
        self._done = done
        self._sound = False

    @initialize(stocked=st.booleans())
    def begin(self, stocked: bool) -> None:
        begun = self._begun(stocked)
        self.folder = Path(tempfile.mkdtemp(dir=begun.folder.parent))
        self.home = begun.home(self.folder / "of")
        self.bus: Bus = {partition: dict(sources) for partition, sources in begun.bus.items()}
        self.withdrawn: dict[str, list[Tombstone]] = {partition: [] for partition in PARTITIONS}
        self.ids = {id: None for _, _, records in self._standing() for id in ids_of(records)}
        self.clock = 0
        self.last_run = ""
        self._sound = True

    def teardown(self) -> None:
        """Every sequence ends with a sync and a comparison of everything that the engines have."""
        try:
            if self._sound:
                self._run("sync")
                assert self.home.verify(deep=True).ok
                self._done["sequences"] += 1
        finally:
            if hasattr(self, "folder"):
                shutil.rmtree(self.folder)

    @rule(
        partition=st.sampled_from(PARTITIONS), name=st.sampled_from(NAMES), chunks=st.integers(1, 4), old=st.booleans()
    )
    def add(self, partition: str, name: str, chunks: int, old: bool) -> None:
        """Add a version of a source. If other partitions have it, too, this later version counts."""
        self._edit(partition, name, chunks, old)

    @rule(which=WHICH, chunks=st.integers(1, 4), old=st.booleans())
    def change(self, which: int, chunks: int, old: bool) -> None:
        partition, name, _ = self._pick(which)
        self._edit(partition, name, chunks, old)

    @rule(which=WHICH, title=st.sampled_from("ABC"))
    def retitle(self, which: int, title: str) -> None:
        """Change only metadata."""
        partition, name, records = self._pick(which)
        self.bus[partition][name] = [record | {"metadata": {"title": title}} for record in records]
        self._write(partition)

    @rule(which=WHICH)
    def delete(self, which: int) -> None:
        partition, name, _ = self._pick(which)
        del self.bus[partition][name]
        self._write(partition)

    @rule(which=WHICH, to=st.sampled_from(NAMES), keeps_ids=st.booleans())
    def rename(self, which: int, to: str, keeps_ids: bool) -> None:
        """Move the texts to another name, which may exist already. The old name disappears."""
        partition, name, records = self._pick(which)
        if to == name:
            return
        self.clock += 1
        texts = [str(record["text"]) for record in records]
        renamed = source(to, *texts, version=str(self.clock), at=at(self.clock))
        self._put(partition, to, renamed, ids_of(records) if keeps_ids else [])
        was_in = [everywhere for everywhere in PARTITIONS if self.bus[everywhere].pop(name, None)]
        self._write(*was_in)

    @rule(which=WHICH, to=st.sampled_from(PARTITIONS))
    def move(self, which: int, to: str) -> None:
        origin, name, records = self._pick(which)
        if to != origin:
            del self.bus[origin][name]
            self.bus[to][name] = records
            self._write(to, origin)

    @rule(partition=st.sampled_from(PARTITIONS), name=st.sampled_from(NAMES))
    def withdraw(self, partition: str, name: str) -> None:
        self.clock += 1
        if name not in self.bus[partition]:
            self.withdrawn[partition].append(Tombstone(parent_id=parent_of(name), at=at(self.clock)))
            self._write(partition)

    @rule()
    def sync(self) -> None:
        self._run("sync")

    @rule(how=st.sampled_from(["sync", "sync", "rebuild", "rebuild without records"]))
    def sync_or_rebuild(self, how: str) -> None:
        self._run(how)

    def _run(self, how: str) -> None:
        if how == self.last_run:
            return  # nothing is new
        self._sound = False  # if it fails, the loss is permanent
        if how == "rebuild without records":
            self.home.lose_records()
        self.home.sync() if how == "sync" else self.home.rebuild()
        wanted = sorted(
            (document for records in self._counts().values() for document in project_family(records)),
            key=lambda document: document.id,
        )
        found = self.home.contents()
        assert found == dict.fromkeys(found, wanted)
        assert len(found) == 2
        self._sound = True
        self.last_run = how
        self._done["runs"] += 1

    def _edit(self, partition: str, name: str, chunks: int, old: bool) -> None:
        """Edit a source. With `old`, its chunks get ids that no other source has now, but may have had at the last
        sync."""
        self.clock += 1
        texts = [f"{name} says {self.clock} in part {part}" for part in range(chunks)]
        records = source(name, *texts, version=str(self.clock), at=at(self.clock))
        taken = {
            id
            for where, of, standing in self._standing()
            if (where, of) != (partition, name)
            for id in ids_of(standing)
        }
        self._put(partition, name, records, [id for id in self.ids if id not in taken] if old else [])
        self._write(partition)

    def _put(self, partition: str, name: str, records: list[Record], ids: list[str]) -> None:
        """Put a version with these ids, as far as they suffice."""
        for record, id in zip(records, ids, strict=False):
            record["chunk_id"] = id
            del record["hashes"]["chunk_object_hash"]
        self.ids |= dict.fromkeys(ids_of(records))
        self.bus[partition][name] = records

    def _standing(self) -> list[tuple[str, str, list[Record]]]:
        return [(partition, name, records) for partition in PARTITIONS for name, records in self.bus[partition].items()]

    def _pick(self, which: int) -> tuple[str, str, list[Record]]:
        """Choose a source. Add one first if there is none."""
        if not any(self.bus.values()):
            self._edit(PARTITIONS[0], NAMES[0], 1, old=False)
        standing = self._standing()
        return standing[which % len(standing)]

    def _counts(self) -> dict[str, list[Record]]:
        """The version of each source that counts: the latest one, unless a later tombstone withdraws it."""
        found: dict[str, tuple[tuple[str, str], list[Record]]] = {}
        for partition, name, records in self._standing():
            rank = (str(records[0]["created_at"]), partition)
            if any(end > rank and end[1] != partition for end in self._ends(name)):
                continue
            if name not in found or rank > found[name][0]:
                found[name] = rank, records
        return {name: records for name, (_, records) in found.items()}

    def _ends(self, name: str) -> list[tuple[str, str]]:
        return [
            (str(tombstone.at), partition)
            for partition, tombstones in self.withdrawn.items()
            for tombstone in tombstones
            if tombstone.parent_id == parent_of(name)
        ]

    def _write(self, *partitions: str) -> None:
        self._done["edits"] += 1
        self.last_run = ""
        for partition in partitions:
            records = [record for records in self.bus[partition].values() for record in records]
            commit(self.home.root, partition, records, at=at(self.clock), tombstones=self.withdrawn[partition])


def ids_of(records: list[Record]) -> list[str]:
    return [str(record["chunk_id"]) for record in records]


@contextmanager
def beginnings() -> Iterator[Callable[[bool], Begun]]:
    """The beginnings for a bus that has sources or is empty."""
    with tempfile.TemporaryDirectory(prefix="machine-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        stocked = begin_with(STOCK, Path(folder) / "stocked")
        empty = begin_with(dict.fromkeys(PARTITIONS, ()), Path(folder) / "empty")
        yield lambda some: stocked if some else empty


def run_sequences(begun: Callable[[bool], Beginning], sequences: int, steps: int) -> Counter[str]:
    """Run the sequences. Returns the numbers of sequences and steps."""
    done: Counter[str] = Counter()
    run_state_machine_as_test(
        lambda: Machine(begun, done),
        settings=settings(
            max_examples=sequences,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert done["sequences"] >= sequences
    return done
