"""A catalog updated step by step equals one built from the same bus at once."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.chunkbus.reader import read_manifest
from chunksink.rebuild import catalog_rows
from chunksink.rebuild.catalog_rows import CHUNK_COLUMNS, LINE_COLUMNS
from chunksink.rebuild.families import FamilyReader
from chunksink.rebuild.intake import Intake
from chunksink.rebuild.plan import unhashed
from chunksink.rebuild.schema import is_whole
from tests.conftest import examples
from tests.support.bus import commit, document_id, parent_of, source
from tests.support.home import CatalogProbe

KEYS = ("p1", "p2", "p3", "p4")
TIMES = tuple(f"2026-0{month}-01T00:00:00Z" for month in range(1, 6))
NAMES = ("docs/a.md", "docs/b.md", "docs/c.md", "docs/d.md")


@dataclass(frozen=True)
class Copy:
    """A version of a source. `claims` gives its first chunk an id that others may claim too."""

    name: str
    version: int
    chunks: int
    at: str | None
    claims: int | None
    part: int | None
    tenant: str | None
    is_counted: bool

    def records(self) -> list[dict[str, Any]]:
        """With `part`, only one of its chunks. Unless `is_counted`, they have no `chunk_count`."""
        tenant = {"tenant_id": self.tenant} if self.tenant else {}
        texts = [f"{self.name} {self.version} {number}" for number in range(self.chunks)]
        made = source(self.name, *texts, version=str(self.version), at=self.at, ids=self.tenant or "", **tenant)
        if self.claims is not None:
            made[0]["chunk_id"] = f"claimed-{self.claims}"
        if self.part is not None or not self.is_counted:
            for record in made:
                del record["chunk_count"]
        if self.part is not None:
            made = made[self.part % len(made) :][:1]
        return made


@dataclass(frozen=True)
class Write:
    """Writes these copies and tombstones. If `tombstones` is None, the present lines and tombstones stay, except the
    line `without`. With `order`, the lines are shuffled. With `is_settled`, the catalog is refreshed first."""

    key: str
    copies: tuple[Copy, ...]
    tombstones: tuple[Tombstone, ...] | None
    without: int | None
    order: random.Random | None
    is_settled: bool
    at: str


@dataclass(frozen=True)
class Loss:
    """A partition is damaged or removed."""

    key: str
    is_gone: bool


@dataclass(frozen=True)
class Refresh:
    """Refreshes the incremental catalog; with `project`, families are projected as in a run."""

    project: bool
    reread: bool


INTAKE, RETIRE = "a run that is killed before it decides", "one missing partition is retired"
Change = Write | Loss

copies = st.builds(
    Copy,
    name=st.sampled_from(NAMES),
    version=st.integers(1, 3),
    chunks=st.integers(1, 3),
    at=st.sampled_from((*TIMES, None)),
    claims=st.sampled_from((None, None, None, 1, 2)),
    part=st.sampled_from((None, None, None, None, 0, 1)),
    tenant=st.sampled_from((None, None, None, "north")),
    is_counted=st.sampled_from((False, False, True)),
)
tombstones = st.builds(
    lambda name, version, at: (
        Tombstone(document_id=document_id(name, str(version)), at=at)
        if version
        else Tombstone(parent_id=parent_of(name), at=at)
    ),
    st.sampled_from(NAMES),
    st.integers(0, 3),
    st.sampled_from((*TIMES, None)),
)
writes = st.builds(
    Write,
    key=st.sampled_from(KEYS),
    copies=st.lists(copies, max_size=3).map(tuple),
    tombstones=st.none() | st.lists(tombstones, max_size=1).map(tuple),
    without=st.sampled_from((None, None, 0, 1, 2)),
    order=st.none() | st.randoms(use_true_random=False),
    is_settled=st.booleans(),
    at=st.sampled_from(TIMES),
)
steps = st.lists(
    st.one_of(
        *[writes] * 3,
        *[st.builds(Loss, st.sampled_from(KEYS), st.booleans())] * 2,
        st.just(INTAKE),
        st.just(RETIRE),
        *[st.builds(Refresh, st.booleans(), st.booleans())] * 2,
    ),
    min_size=2,
    max_size=14,
)


def carry_out(root: FolderRoot, step: Change) -> None:
    files = (root.chunks_file(step.key), root.manifest_file(step.key))
    if isinstance(step, Write):
        records, tombstones = distinct(step.copies), step.tombstones
        if tombstones is None:
            present = records_of(files[0])
            if step.without is not None:
                del present[step.without : step.without + 1]
            records = list({record["chunk_id"]: record for record in [*records, *present]}.values())
            tombstones = read_manifest(root, step.key).tombstones if files[1].exists() else ()
        if step.order is not None:
            step.order.shuffle(records)
        commit(root, step.key, records, at=step.at, tombstones=tombstones)
    elif not step.is_gone:
        if files[0].exists() and files[0].stat().st_size:
            files[0].write_bytes(files[0].read_bytes()[:-7])
    else:
        for file in files:
            file.unlink(missing_ok=True)


def distinct(copies: Sequence[Copy]) -> list[dict[str, Any]]:
    return list({record["chunk_id"]: record for each in copies for record in each.records()}.values())


def records_of(file: Path) -> list[dict[str, Any]]:
    """The complete lines of a file."""
    records = []
    for line in file.read_bytes().splitlines() if file.exists() else []:
        with suppress(orjson.JSONDecodeError):
            records.append(orjson.loads(line))
    return records


def refresh(probe: CatalogProbe, root: FolderRoot, *, project: bool = False, reread: bool = False) -> None:
    Intake(root, probe.state).refresh(reread=reread)
    if project:
        records = FamilyReader(root, probe.catalog)
        with_damage = {key for (key,) in probe.state.db.execute("select key from partition where state <> 'valid'")}
        for page in list(unhashed(probe.state.db)):
            readable = [f.family for f in probe.catalog.families(page) if f.partition not in with_damage]
            if readable:
                records.hash_families(readable)


def retire_one(root: FolderRoot, probe: CatalogProbe) -> None:
    existing = root.partition_keys()
    for key in probe.catalog.missing_partitions():
        if key not in existing:
            probe.catalog.retire(root, key)
            return


def make_whole(root: FolderRoot, probe: CatalogProbe) -> None:
    """Empties broken partitions and retires missing ones."""
    states = dict(probe.state.db.execute("select key, state from partition").fetchall())
    for key, state in states.items():
        if state == "missing":
            probe.catalog.retire(root, key)
        elif state == "invalid":
            commit(root, key, [])
    refresh(probe, root)


@contextmanager
def closing_probe(home: Path, root: FolderRoot) -> Iterator[CatalogProbe]:
    probe = CatalogProbe(home, root)
    try:
        yield probe
    finally:
        probe.state.db.close()


def tables(probe: CatalogProbe) -> dict[str, list[tuple[object, ...]]]:
    """Every chunk and every decision, without `reading_id` and hashes of held families, which are there only if the
    family was compared before."""
    free = "case when family not in (select family from held) then"
    rows_of_chunks = ", ".join(f"{LINE_COLUMNS}, {CHUNK_COLUMNS}".replace("id, offset", "offset").split(", id, "))
    selects = {
        "chunk join chunk_line using (id)": rows_of_chunks,
        "family_version": "family, partition, document_id, source_checksum, version",
        "last_version": "family, partition, parent_id, source_checksum, chunks, versions, rank",
        "current": f"family, partition, source_checksum, chunks, {free} family_hash end",
        "held": "family, reason, detail",
    }
    return {
        name: sorted(probe.state.db.execute(f"select {columns} from {name}").fetchall(), key=repr)
        for name, columns in selects.items()
    }


@settings(max_examples=examples(120), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps, waiting=st.sampled_from((0, 2, catalog_rows._WAITING)))
def test_incremental_catalog_equals_one_from_nothing(
    tmp_path: Path, steps: Sequence[Change | Refresh | str], waiting: int
) -> None:
    """With any limit on the lines that wait in memory for their match."""
    shutil.rmtree(tmp_path)
    root = FolderRoot(tmp_path / "chunks")
    commit(root, "p0", source("docs/first.md", "first"))
    with patch.object(catalog_rows, "_WAITING", waiting), closing_probe(tmp_path / "kept", root) as kept:
        for step in steps:
            if isinstance(step, Refresh):
                refresh(kept, root, project=step.project, reread=step.reread)
            elif step == INTAKE:
                Intake(root, kept.state).read()
            elif isinstance(step, str):
                retire_one(root, kept)
            else:
                if isinstance(step, Write) and step.is_settled:
                    refresh(kept, root)
                carry_out(root, step)
        refresh(kept, root)
        make_whole(root, kept)
        assert is_whole(kept.state.db)
        refresh(kept, root, project=True)
        with closing_probe(tmp_path / "new", root) as new:
            refresh(new, root, project=True)
            assert tables(kept) == tables(new)
            assert {f.family: f.chunks for f in kept.catalog.families()} == {
                f.family: f.chunks for f in new.catalog.families()
            }
            later = "select count(*) from {} t join partition p on p.key = partition where t.reading_id > p.reading_id"
            for table in ("last_version", "current"):
                assert kept.state.db.execute(later.format(table)).fetchone() == (0,)
