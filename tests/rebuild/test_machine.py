"""Whatever people do to their bus, in whatever order: after each sync the engines hold what a plain dict says."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from chunkbus.chunk import Record
from chunkbus.layout import BusRoot
from chunkbus.manifest import Tombstone
from sinks.projection import project_family
from tests.rebuild.engines import fts, memory
from tests.rebuild.support import Home, commit, parent_of, source

pytestmark = [pytest.mark.promise(1), pytest.mark.promise(3)]

PARTITIONS = ("p0", "p1", "p2")
NAMES = tuple(f"docs/{number}.md" for number in range(6))
STEPS = int(os.environ.get("CHUNKSINK_SOAK_STEPS", "0"))


class Machine(RuleBasedStateMachine):
    """The bus as dicts: partition to source to its records. Every edit has a later rank than all before."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.home = Home(self.folder / "home", BusRoot(self.folder / "chunks"), fts, memory())
        self.bus: dict[str, dict[str, list[Record]]] = {partition: {} for partition in PARTITIONS}
        self.withdrawn: dict[str, list[Tombstone]] = {partition: [] for partition in PARTITIONS}
        self.clock = 0
        self.synced = False
        for partition in PARTITIONS:
            self._write(partition)
        self.home.rebuild()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @rule(partition=st.sampled_from(PARTITIONS), name=st.sampled_from(NAMES), chunks=st.integers(1, 4))
    def edit(self, partition: str, name: str, chunks: int) -> None:
        """Comes, or is edited; where it stands elsewhere too, this later version counts."""
        self.clock += 1
        texts = [f"{name} says {self.clock} in part {part}" for part in range(chunks)]
        self.bus[partition][name] = source(name, *texts, version=str(self.clock), at=self._now())
        self._write(partition)

    @rule(partition=st.sampled_from(PARTITIONS), name=st.sampled_from(NAMES), title=st.sampled_from("ABC"))
    def retitle(self, partition: str, name: str, title: str) -> None:
        """Nothing but its metadata changes."""
        if name in self.bus[partition]:
            for record in self.bus[partition][name]:
                record["metadata"] = {"title": title}
            self._write(partition)

    @rule(partition=st.sampled_from(PARTITIONS), name=st.sampled_from(NAMES))
    def leave(self, partition: str, name: str) -> None:
        if self.bus[partition].pop(name, None) is not None:
            self._write(partition)

    @rule(origin=st.sampled_from(PARTITIONS), to=st.sampled_from(PARTITIONS), name=st.sampled_from(NAMES))
    def move(self, origin: str, to: str, name: str) -> None:
        if origin != to and name in self.bus[origin]:
            self.bus[to][name] = self.bus[origin].pop(name)
            self._write(to)
            self._write(origin)

    @rule(partition=st.sampled_from(PARTITIONS), name=st.sampled_from(NAMES))
    def withdraw(self, partition: str, name: str) -> None:
        self.clock += 1
        if name not in self.bus[partition]:
            self.withdrawn[partition].append(Tombstone(parent_id=parent_of(name), at=self._now()))
            self._write(partition)

    @rule()
    def sync(self) -> None:
        self.home.sync()
        self.synced = True

    @rule()
    def rebuild(self) -> None:
        self.home.rebuild()
        self.synced = True

    @rule()
    def lose_the_records(self) -> None:
        for file in self.home.folder.glob("state.db*"):
            file.unlink()
        self.home.rebuild()
        self.synced = True

    @invariant()
    def holds_what_the_dict_says(self) -> None:
        if getattr(self, "synced", False):
            self.synced = False
            wanted = sorted(
                (document for records in self._counts().values() for document in project_family(records)),
                key=lambda document: document.id,
            )
            assert self.home.contents() == {"fts": wanted, "memory": wanted}
            assert self.home.verify(deep=True).ok

    def _counts(self) -> dict[str, list[Record]]:
        """The version of each source that counts: the latest, unless it was withdrawn later elsewhere."""
        found: dict[str, tuple[tuple[str, str], list[Record]]] = {}
        for partition, records_of in self.bus.items():
            for name, records in records_of.items():
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

    def _now(self) -> str:
        return f"2026-01-01T{self.clock // 3600:02}:{self.clock // 60 % 60:02}:{self.clock % 60:02}Z"

    def _write(self, partition: str) -> None:
        records = [record for records in self.bus[partition].values() for record in records]
        commit(self.home.root, partition, records, at=self._now(), tombstones=self.withdrawn[partition])


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=STEPS // 50 or 12,
    stateful_step_count=50 if STEPS else 20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
