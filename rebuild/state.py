"""`state.db`: the generations of this home, and which one is live.

A flip is committed by one transaction, which sets the live generation (table `pointer`). The file can be lost: a
rebuild recreates it from the chunks.
"""

import errno
import os
import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import orjson

from chunksink.chunkbus.identity import family_key
from chunksink.chunkbus.store import Store, write_transaction
from chunksink.embeddings.encoder import ModelInfo
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild.catalog_rows import ContentOf
from chunksink.rebuild.errors import NothingBuilt
from chunksink.rebuild.schema import RECORDS_OF_BUILD, exists, home_id, migrations

NO_MODEL = ModelInfo(
    name="no model",
    fingerprint="0" * 64,
    dimension=0,
    max_length=None,
    precision="float32",
    requested="auto",
    long_texts="windows",
)
"""The model of a generation without vectors."""
_MUCH_LESS = 10
"""A measurement replaces the recorded one only if its amount of work is more than a tenth of the recorded amount."""
MODEL, EMBEDDED = "model", "embedded"
"""Kinds of work that are measured besides writing to sinks: loading the model, and embedding a byte of text."""
_GENERATION = "select id, created_at, encoder, model from generation"


@dataclass(frozen=True)
class Generation:
    """The builds that readers see together, by sink. `encoder` recreates the encoder of its vectors."""

    id: str
    created_at: str
    encoder: EncoderSettings
    model: ModelInfo
    builds: dict[str, str]

    @property
    def model_fingerprint(self) -> str:
        return self.model.fingerprint

    @property
    def holds_vectors(self) -> bool:
        return self.model_fingerprint != NO_MODEL.fingerprint

    def builds_of(self, sinks: Collection[str]) -> list[str]:
        """The generation's builds in these sinks; all its builds if it has none there."""
        return [build for sink, build in self.builds.items() if sink in sinks] or list(self.builds.values())


FULL_BYTES = 10_000_000
"""With less free space on the disk of a home, a run may be unable to write its record."""


def can_write(path: Path) -> bool:
    """Whether this user can read and write the file or folder."""
    effective = os.access in os.supports_effective_ids
    wanted = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
    return os.access(path, wanted, effective_ids=effective)


def cache_file(home: Path) -> Path:
    return home / "vectors.db"


def segments_folder(home: Path) -> Path:
    """Where vectors that were computed elsewhere wait for their import."""
    return home / "segments"


def live_sinks(home: Path) -> frozenset[str]:
    """The sinks of the live generation; empty if there is none or it cannot be read. Changes nothing in the home."""
    url = f"{(home / 'state.db').absolute().as_uri()}?mode=rw"  # never creates the file
    select = "select sink from build join pointer on generation = live"
    with suppress(sqlite3.Error), closing(sqlite3.connect(url, uri=True)) as db:
        return frozenset(sink for (sink,) in db.execute(select))
    return frozenset()


class State(Store):
    """The home's `state.db`, open."""

    def __init__(self, home: Path) -> None:
        super().__init__(home / "state.db", migrations())
        self.db.register_function(family_key, deterministic=True)
        self.db.conn.create_aggregate("content_of", 1, ContentOf)  # type: ignore[arg-type]  # it takes bytes, too
        self.home_id = home_id(home)

    @classmethod
    def existing(cls, home: Path) -> "State":
        """Open the state of an existing home. Raises NothingBuilt if it has none, OSError if it is not writable."""
        if not (home / "state.db").exists():
            raise NothingBuilt(home)
        if not can_write(home):
            message = "the home must be writable even for searches, since they take locks in it: change its permissions"
            raise OSError(errno.EROFS, f"{message}, or copy it and name the copy with --home", str(home))
        return cls(home)

    @property
    def home(self) -> Path:
        return self.path.parent

    def version(self) -> int:
        """Changes whenever another connection has written."""
        (version,) = self.db.execute("pragma data_version").fetchone()
        return int(version)

    def add_generation(self, generation: Generation) -> None:
        encoder, model = orjson.dumps(generation.encoder).decode(), orjson.dumps(asdict(generation.model)).decode()
        row = [generation.id, generation.created_at, encoder, model, generation.model_fingerprint]
        with write_transaction(self.db):
            self.db.execute("insert into generation values (?, ?, ?, ?, ?, 0)", row)
            self.db.conn.executemany(
                "insert into build (generation, sink, id) values (?, ?, ?)",
                [(generation.id, sink, build) for sink, build in generation.builds.items()],
            )

    def live(self) -> Generation:
        live = self.live_or_none()
        if live is None:
            raise NothingBuilt(self.home)
        return live

    def live_or_none(self) -> Generation | None:
        return self._one(f"{_GENERATION} join pointer on id = live")

    def previous_or_none(self) -> Generation | None:
        return self._one(f"{_GENERATION} join pointer on id = previous")

    def public_builds(self) -> dict[str, str]:
        """The recorded build under each sink's public name. Sinks that were never flipped have none."""
        return dict(self.db.execute("select sink, build from public").fetchall())

    def begin_flip(self, generation: Generation) -> None:
        """Record that a flip to this generation begins. If it is not finished, the next run completes or undoes it."""
        with write_transaction(self.db):
            self.db.execute("insert or replace into flipping values (?)", [generation.id])

    def begun_flip(self) -> Generation | None:
        return self._one(f"{_GENERATION} join flipping on id = generation")

    def flip(self, generation: Generation) -> None:
        """Make `generation` live; the live one becomes the previous one."""
        with write_transaction(self.db):
            self.db.execute("update pointer set previous = live, live = ? where live is not ?", [generation.id] * 2)
            self.db.execute("update generation set shown = 1 where id = ?", [generation.id])
            self.db.conn.executemany("insert or replace into public values (?, ?)", list(generation.builds.items()))
            self.db.execute("delete from flipping")

    def cancel_flip(self) -> None:
        with write_transaction(self.db):
            self.db.execute("delete from flipping")

    def unfinished(self) -> Generation | None:
        """The newest generation that was never shown."""
        return self._one(f"{_GENERATION} where not shown order by id desc limit 1")

    def surplus_generations(self, keep: str | None = None) -> list[Generation]:
        """Generations that are neither live nor previous nor `keep`: older ones, and remains of killed runs."""
        surplus = f"{_GENERATION}, pointer where id is not live and id is not previous and id is not ?"
        return [self._generation(row) for row in self.db.execute(surplus, [keep]).fetchall()]

    def generations(self) -> list[Generation]:
        return [self._generation(row) for row in self.db.execute(f"{_GENERATION} order by id").fetchall()]

    def is_shared(self, build_id: str, generation: Generation) -> bool:
        return exists(self.db, "build where id = ? and generation <> ?", [build_id, generation.id])

    def forget_build(self, generation: Generation, sink: str) -> None:
        """Forget the generation's build in this sink, and its records unless another generation shares it. With its
        last build, the generation itself is forgotten."""
        with write_transaction(self.db):
            self.db.execute("delete from build where generation = ? and sink = ?", [generation.id, sink])
            for table in RECORDS_OF_BUILD:
                unused = "build = ? and build not in (select id from build)"
                self.db.execute(f"delete from {table} where {unused}", [generation.builds[sink]])
            self.db.execute(
                "delete from generation where id = ? and id not in (select generation from build)", [generation.id]
            )

    def model_fingerprints(self) -> set[str]:
        """The models of all builds: live, previous and unfinished."""
        rows = self.db.execute(
            "select model_fingerprint from generation where model_fingerprint <> ?", [NO_MODEL.fingerprint]
        )
        return {fingerprint for (fingerprint,) in rows}

    def note_projection(self, build: str, projection: str) -> None:
        with write_transaction(self.db):
            self.db.execute("insert or replace into projected values (?, ?)", [build, projection])

    def projections(self) -> dict[str, str]:
        """By build, the projection by which all its documents were written."""
        return dict(self.db.execute("select build, projection from projected").fetchall())

    def note_pace(self, pace: Mapping[str, tuple[int, float]]) -> None:
        """Record how long work took, for forecasts. Small amounts are not representative: work starts slowly."""
        with write_transaction(self.db):
            self.db.conn.executemany(
                "insert into pace values (?, ?, ?) on conflict (what) do update set amount = excluded.amount, "
                f"seconds = excluded.seconds where excluded.amount * {_MUCH_LESS} > pace.amount",
                [(what, *took) for what, took in pace.items()],
            )

    def pace(self) -> dict[str, float]:
        """Seconds to load the model, to embed a byte of text, to write a document to a sink (by its name)."""
        rows = self.db.execute("select what, seconds / amount from pace where amount > 0")
        return dict(rows.fetchall())

    def add_totals(self, work: Mapping[tuple[str, str], float]) -> None:
        """Add the work of a run, by kind and part, to that of earlier runs."""
        with write_transaction(self.db):
            self.db.conn.executemany(
                "insert into total values (?, ?, ?) on conflict do update set amount = amount + excluded.amount",
                [(*kind, amount) for kind, amount in work.items() if amount],
            )

    def totals(self) -> dict[tuple[str, str], float]:
        return {(what, part): amount for what, part, amount in self.db.execute("select * from total")}

    def _one(self, select: str) -> Generation | None:
        row = self.db.execute(select).fetchone()
        return None if row is None else self._generation(row)

    def _generation(self, row: tuple[str, str, str, str]) -> Generation:
        id, created_at, encoder, model = row
        builds = self.db.execute("select sink, id from build where generation = ? order by rowid", [id]).fetchall()
        info = msgspec.json.decode(model, type=ModelInfo)
        return Generation(id, created_at, EncoderSettings(**orjson.loads(encoder)), info, dict(builds))
