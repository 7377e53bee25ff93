"""Checks of files: the chunks, and the databases of the home (`ingest.db`, `state.db`, the cache)."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from chunksink.chunkbus.errors import (
    ChunkBusError,
    ExtraMissing,
    InvalidManifest,
    NewerStore,
    NotABusRoot,
    StorageError,
    StoreUnreadable,
)
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import decode_manifest
from chunksink.chunkbus.wording import counted, sized, some
from chunksink.doctor import AGAIN, BUCKET, OWNER, CheckProblem, remedies
from chunksink.embeddings.errors import CacheBusy, CacheDamaged, CacheError, CacheTooNew
from chunksink.ingest.errors import IngestRefused
from chunksink.ingest.formats.registry import all_formats
from chunksink.ingest.store import FILE_NAME, IngestStore
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.errors import NoGeneration
from chunksink.rebuild.state import State, cache_file
from chunksink.settings.config import Config
from chunksink.wiring import existing_cache

_SHOWN = 3
_CHECKED_BYTES = 10**9
"""A check for damage reads the whole database, so larger ones are left out."""
_HOME_ID = re.compile("[0-9a-f]{32}")
_VALIDATE = "`chunksink validate` reads every line"
_NO_INDEX = "none yet; `chunksink sync` creates it"
_DISK = "make room where the disk is full, or make the folder and its files writable"
_ADOPT = "run `chunksink sync --adopt`, which takes over the builds that this home made under its former id"
_MOVE_INGEST = (
    "move it away: the next `chunksink ingest` makes a new one and reads all files again; no chunk is lost, only what "
    "`chunksink ledger` lists"
)


def chunks(config: Config) -> str:
    """Whether each partition has its files."""
    with remedies(
        (NotABusRoot, "make chunks with `chunksink ingest`, or name their folder with --chunks"),
        (ExtraMissing, AGAIN),
        (StorageError, BUCKET),
    ):
        root = config.bus.require()
        keys = root.partition_keys()
        flaws = [f"{key} ({flaw})" for key in keys if (flaw := _flaw(root, key))]
    found = f"{root.address}: {counted(len(keys), 'partition')}"
    if not keys:
        raise CheckProblem(found, "`chunksink ingest` creates one", "warn")
    if flaws:
        found = f"{found}, {len(flaws):,} of them incomplete: {some(flaws, _SHOWN)}"
        raise CheckProblem(found, f"write them again, or restore their files; {_VALIDATE}")
    return f"{found}, no file is missing (a quick check; {_VALIDATE})"


def _flaw(root: BusRoot, key: str) -> str | None:
    """What is wrong with a partition, without reading its chunks."""
    try:
        manifest, size = root.manifest_and_size(key)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    if size is None:
        return "its chunks file is missing"
    if manifest is None:
        return "its manifest is missing"
    try:
        emitted = decode_manifest(manifest).counts.chunks_emitted
    except InvalidManifest as error:
        return f"its manifest cannot be read: {error}"
    if (size > 0) != (emitted > 0):
        return f"its manifest counts {counted(emitted, 'chunk')}, its chunks file has {counted(size, 'byte')}"
    return None


def partitions(config: Config) -> str:
    """Whether all partitions of the index still exist, and were valid when they were last read."""
    try:
        with State.existing(config.home_path) as state:
            catalog = Catalog(state)
            missing = sorted(set(catalog.known_partitions()).difference(config.bus.require().partition_keys()))
            broken = [key for key in catalog.unread_partitions() if key not in missing]
    except (ChunkBusError, NoGeneration, OSError):
        return "not compared: see `chunks` and `index`"
    found, remedy = list[str](), list[str]()
    if missing:
        found.append(f"missing: {some(missing, _SHOWN)}")
        remedy.append("bring them back, or run `chunksink retire-partition KEY` for each")
    if broken:
        found.append(f"invalid when last read: {some(broken, _SHOWN)}")
        remedy.append("`chunksink validate` shows why; after the correction run `chunksink sync`")
    if found:
        raise CheckProblem("; ".join(found), "; ".join(remedy))
    return "all partitions of the index exist"


def tenants(config: Config) -> str:
    """Whether all sources have a tenant, which searches require."""
    try:
        with State.existing(config.home_path) as state:
            without = Catalog(state).without_tenant()
    except (ChunkBusError, NoGeneration, OSError):
        return "not counted: see `index`"
    if without:
        found = f"{counted(without, 'source')} without a tenant, which no search finds, as tenants are required"
        remedy = "ingest with --tenant, then remove those without a tenant: docs/tenants.md shows how"
        raise CheckProblem(found, remedy, "warn")
    return "all sources of the index have a tenant"


def ingest(home: Path) -> str:
    """Whether all formats can be loaded, and `ingest.db` can be read: the ledger, and signatures of files."""
    with remedies((IngestRefused, "until then, no `chunksink ingest` works")):
        all_formats()
    path = home / FILE_NAME
    if not path.exists():
        return "none yet; `chunksink ingest` creates it"
    with (
        remedies(
            (StoreUnreadable, _MOVE_INGEST),
            (NewerStore, f"upgrade chunksink; or {_MOVE_INGEST}"),
            (OSError, OWNER),
        ),
        IngestStore(home) as store,
    ):
        unchecked = _require_sound(path, store.db.execute, _MOVE_INGEST)
    return f"{path} can be read{unchecked}"


def _require_sound(path: Path, query: Callable[[str], Iterable[tuple[object, ...]]], remedy: str) -> str:
    """Read all pages of a database. A large database is not read; a note for the finding is returned instead."""
    if path.stat().st_size > _CHECKED_BYTES:
        return f"; over {sized(_CHECKED_BYTES)}, so it was not checked for damage: `chunksink backup` checks it"
    [(found,)] = query("PRAGMA quick_check(1)")
    if found != "ok":
        raise CheckProblem(f"{path} is damaged ({found})", remedy)
    return ""


@dataclass(frozen=True)
class Live:
    """The live builds by sink, and the id of this home."""

    builds: dict[str, str]
    home_id: str


def index(home: Path) -> str:
    """Whether `state.db` can be read, and `home.id`, which marks the builds of this home, is intact."""
    if not (home / "state.db").exists():
        return _NO_INDEX
    file = home / "home.id"
    if not file.exists():  # opening the records would make a new one
        raise CheckProblem(f"{file}, which identifies our builds, is missing", f"restore it; or {_ADOPT}")
    move = (
        "move state.db away and run `chunksink rebuild`: no chunk and no vector is lost, but a rollback is not possible"
    )
    with (
        remedies((OSError, _DISK), (NewerStore, f"upgrade chunksink; or {move}"), (ChunkBusError, move)),
        State.existing(home) as state,
    ):
        live, begun, home_id = state.live_or_none(), state.unfinished(), state.home_id
        unchecked = _require_sound(home / "state.db", state.db.execute, move)
    if not _HOME_ID.fullmatch(home_id):
        remedy = f"copy into it the id that the checks `live in SINK` show; or remove the file and {_ADOPT}"
        raise CheckProblem(f"{file} contains no id", remedy)
    if live is None and begun is not None:
        raise CheckProblem("a rebuild was started and not finished", "`chunksink rebuild` continues it", "warn")
    return _NO_INDEX if live is None else f"{live.id} is live, in {', '.join(live.builds)}{unchecked}"


def live_builds(home: Path) -> Live | None:
    """None if they are unknown; the check of the index reports why."""
    try:
        if not (home / "state.db").exists() or not (home / "home.id").exists():
            return None
        with State.existing(home) as state:
            live = state.live_or_none()
            return Live({} if live is None else dict(live.builds), state.home_id)
    except (ChunkBusError, OSError):
        return None


def cache(config: Config) -> str:
    path = cache_file(config.home_path)
    if not path.exists():
        return _NO_INDEX
    set_aside = "`chunksink cache verify --repair` sets it aside; the next run computes its vectors again"
    with remedies(
        (CacheDamaged, set_aside),
        (CacheTooNew, "upgrade chunksink; or move the file away: the next run computes its vectors again"),
        (CacheError, _DISK),
    ):
        try:
            with existing_cache(config) as cache:
                cache.read("SELECT fingerprint, text_hash FROM vector LIMIT 1")
                unchecked = _require_sound(path, cache.read, set_aside)
        except CacheBusy as error:
            raise CheckProblem(str(error), "wait for the process that uses it", "warn") from error
    damaged = sorted(file.name for file in path.parent.glob(f"{path.name}.damaged-*"))
    kept = f"; damaged files that were set aside and can be deleted: {', '.join(damaged)}" if damaged else ""
    return f"{path} can be read{unchecked}; `chunksink cache verify` checks every vector{kept}"
