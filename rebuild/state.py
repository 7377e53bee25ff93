"""`state.db`: who this home is, which generations it has built, and which one readers see.

The pointer's transaction is the commit of a flip. All of it can be lost: a rebuild makes it again from the chunks.
"""

import secrets
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import orjson
from sqlite_utils import Database, Migrations

from chunkbus.errors import StoreUnreadable
from chunkbus.store import open_store
from embeddings.settings import EncoderSettings
from rebuild.errors import NoGeneration

_migrations = Migrations("chunksink.state")


@_migrations()
def create_home(db: Database) -> None:
    db.table("home").create({"id": str}, pk="id")
    db.table("home").insert({"id": secrets.token_hex(16)})


@_migrations()
def create_generations(db: Database) -> None:
    columns = {"id": str, "created_at": str, "encoder": str, "model_fingerprint": str}
    db.table("generation").create(columns, pk="id")
    # A generation may share a build with another: then both name it.
    columns = {"generation": str, "sink": str, "id": str}
    db.table("build").create(columns, pk=("generation", "sink"), foreign_keys=["generation"])
    # What each sink shows under its public name, also of sinks that are not written any more.
    db.table("public").create({"sink": str, "build": str}, pk="sink")
    db.table("flipping").create({"generation": str}, pk="generation")
    db.table("pointer").create({"live": str, "previous": str})
    db.table("pointer").insert({"live": None, "previous": None})


@_migrations()
def create_catalog(db: Database) -> None:
    # A manifest can change, with its tombstones, while the chunks stay the same: both have a digest.
    db.table("partition").create({"key": str, "manifest": str, "checksum": str, "created_at": str}, pk="key")
    db.table("chunk").create(
        {
            "partition": str,
            "offset": int,
            "length": int,
            "family": str,
            "parent_id": str,
            "document_id": str,
            "chunk_id": str,
            "text_hash": str,
            "source_checksum": str,
            "created_at": str,
        },
        pk=("partition", "offset"),
    )
    db.table("chunk").create_index(["family", "partition"])
    db.table("tombstone").create({"partition": str, "parent_id": str, "document_id": str, "at": str})
    db.table("tombstone").create_index(["parent_id"])
    db.table("tombstone").create_index(["document_id"])


@_migrations()
def create_receipts(db: Database) -> None:
    columns = {"build": str, "family": str, "family_hash": str, "documents": int, "refused": str, "digest": str}
    db.table("receipt").create(columns, pk=("build", "family"))


@dataclass(frozen=True)
class Generation:
    """The builds that readers see together; `builds` maps a sink's name to its build's id.

    `encoder` makes the encoder of its vectors again; the fingerprint proves that it is the same.
    """

    id: str
    created_at: str
    encoder: EncoderSettings
    model_fingerprint: str
    builds: dict[str, str]


class State:
    """The home's `state.db`, open."""

    def __init__(self, home: Path) -> None:
        self.path = home / "state.db"
        self.db = open_store(self.path, _migrations)

    @classmethod
    def existing(cls, home: Path) -> "State":
        """For readers, who make nothing."""
        if not (home / "state.db").exists():
            raise NoGeneration(f"no index in {home} yet; build one with `chunksink rebuild`")
        return cls(home)

    def __enter__(self) -> "State":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.db.close()
        if type(error) is sqlite3.DatabaseError:  # the class itself: a subclass of it is a bug, or a full disk
            raise StoreUnreadable(f"{self.path} is damaged ({error}); move it away and rebuild") from error

    @property
    def home(self) -> Path:
        return self.path.parent

    @property
    def home_id(self) -> str:
        home_id: str = self.db.execute("select id from home").fetchone()[0]
        return home_id

    def add_generation(self, generation: Generation) -> None:
        with self.db.atomic():
            row = {
                "id": generation.id,
                "created_at": generation.created_at,
                "encoder": orjson.dumps(generation.encoder).decode(),
                "model_fingerprint": generation.model_fingerprint,
            }
            self.db.table("generation").insert(row)
            self.db.table("build").insert_all(
                {"id": build, "generation": generation.id, "sink": sink} for sink, build in generation.builds.items()
            )

    def live(self) -> Generation:
        """The generation that readers see."""
        row = self.db.execute(
            "select id, created_at, encoder, model_fingerprint from generation join pointer on id = live"
        ).fetchone()
        if row is None:
            raise NoGeneration(f"no index in {self.path.parent} yet; build one with `chunksink rebuild`")
        return self._generation(row)

    def has_generation(self, generation_id: str) -> bool:
        return self.db.execute("select 1 from generation where id = ?", [generation_id]).fetchone() is not None

    def public_builds(self) -> dict[str, str]:
        """What each sink shows under its public name, as far as it was ever flipped."""
        return dict(self.db.execute("select sink, build from public").fetchall())

    def begin_flip(self, generation: Generation) -> None:
        """From here on sinks may show this generation; whoever finds it so goes on with the flip."""
        with self.db.atomic():
            self.db.table("flipping").insert({"generation": generation.id}, replace=True)

    def begun_flip(self) -> Generation | None:
        """The generation whose flip was not ended."""
        row = self.db.execute(
            "select id, created_at, encoder, model_fingerprint from generation join flipping on id = generation"
        ).fetchone()
        return None if row is None else self._generation(row)

    def flip(self, generation: Generation) -> None:
        """Readers see `generation` from now on; what they saw before becomes the previous one."""
        with self.db.atomic():
            self.db.execute("update pointer set previous = live, live = ? where live is not ?", [generation.id] * 2)
            rows = [{"sink": sink, "build": build} for sink, build in generation.builds.items()]
            self.db.table("public").insert_all(rows, replace=True)
            self.db.execute("delete from flipping")

    def surplus_generations(self) -> list[Generation]:
        """Those that are neither live nor previous: older ones, and unfinished ones of runs that died."""
        rows = self.db.execute(
            "select id, created_at, encoder, model_fingerprint from generation, pointer "
            "where id is not live and id is not previous"
        ).fetchall()
        return [self._generation(row) for row in rows]

    def is_shared(self, build_id: str, generation: Generation) -> bool:
        """Whether another generation has this build too."""
        others = "select 1 from build where id = ? and generation <> ?"
        return self.db.execute(others, [build_id, generation.id]).fetchone() is not None

    def forget_build(self, generation: Generation, sink: str) -> None:
        """The generation has no build in this sink any more; with its last build it is gone itself."""
        with self.db.atomic():
            self.db.execute("delete from build where generation = ? and sink = ?", [generation.id, sink])
            self.db.execute("delete from receipt where build not in (select id from build)")
            self.db.execute(
                "delete from generation where id = ? and id not in (select generation from build)", [generation.id]
            )

    def model_fingerprints(self) -> set[str]:
        """The models of all builds that are there: live, previous and unfinished."""
        return {fingerprint for (fingerprint,) in self.db.execute("select model_fingerprint from generation")}

    def _generation(self, row: tuple[str, str, str, str]) -> Generation:
        number, created_at, encoder, fingerprint = row
        builds = self.db.execute("select sink, id from build where generation = ?", [number]).fetchall()
        return Generation(number, created_at, EncoderSettings(**orjson.loads(encoder)), fingerprint, dict(builds))
