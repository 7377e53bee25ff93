"""Opens the session of a run (engines, state, model), and single parts of it for commands that are not runs.

What a session opened is closed in reverse order when the run ends.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from chunksink.chunkbus.errors import ChunksinkError, NotABusRoot, StorageError
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import RunLog
from chunksink.chunkbus.wording import counted
from chunksink.embeddings.encoder import ModelInfo
from chunksink.embeddings.errors import CacheUnavailable
from chunksink.embeddings.references import embedding_ref
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.errors import InvalidBus, NoGeneration, RebuildError
from chunksink.rebuild.intake import Intake, Workers, ignore
from chunksink.rebuild.locks import RebuildLock, WriterLock
from chunksink.rebuild.state import State, cache_file, live_sinks
from chunksink.settings.config import CONFIG_FILE, MEILI_URL, Config, variable
from chunksink.settings.errors import ConfigError
from chunksink.settings.sink_tables import sink_names
from chunksink.sinks import registry
from chunksink.sinks.contract import Sink
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.document import Document
from chunksink.sinks.errors import Refused, SinkError
from chunksink.sinks.retry import Fault, RetryPolicy, naming_bugs, with_retries

if TYPE_CHECKING:
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.pool import EncoderPool
    from chunksink.rebuild.compute import Compute
    from chunksink.rebuild.session import Session, Stage
    from chunksink.rebuild.status import HomeStatus
    from chunksink.search.question import Mode


@contextmanager
def open_session(
    config: Config,
    command: str,
    *,
    encoders: "EncoderPool",
    on_fault: Callable[[Fault], object],
    stage: "Stage | None" = None,
    tolerant: bool = False,
    reads_chunks: bool = True,
    makes_home: bool = True,
    only: tuple[str, ...] = (),
) -> Iterator["Session"]:
    """A session with all configured engines, or only with those named in `only`.

    With `tolerant` an engine may be unreachable. With `reads_chunks` the chunks must exist. Without `makes_home` the
    home must exist, so that a misspelt name creates no new one.
    """
    from chunksink.rebuild.embedder import Embedders
    from chunksink.rebuild.families import FamilyReader
    from chunksink.rebuild.session import Session

    require_configured(config, only)
    home = config.home_path
    root = require_chunks(config, command) if reads_chunks else config.bus
    if not makes_home:
        with State.existing(home):
            pass
    with ExitStack() as stack:
        log = stack.enter_context(RunLog(home, command))
        # Sinks are opened first, so that a misspelt sink name leaves no new `state.db`.
        report = partial(_report_fault, log, on_fault)
        sinks, unreachable = _open_sinks(config, only or config.sinks, stack, report, tolerant=tolerant)
        state = stack.enter_context(State(home))
        catalog = Catalog(state)
        compute = _open_compute(config, stack)
        session = Session(
            config=config,
            state=state,
            catalog=catalog,
            intake=open_intake(config, state, log, None if compute is None else compute.workers),
            reader=FamilyReader(root, catalog, FieldSet.of(config.fields)),
            sinks={sink.name: sink for sink in sinks},
            open_sink=partial(_open_former_sink, config, stack),
            embedders=Embedders(config, stack, encoders),
            lock=WriterLock(home),
            rebuild_lock=RebuildLock(home),
            log=log,
            unreachable=unreachable,
            stage=stage,
            compute=compute,
        )
        try:
            yield session
        finally:
            with suppress(sqlite3.Error, OSError, ChunksinkError):  # the outcome of the run is more important
                session.note_totals()


def open_intake(config: Config, state: State, log: RunLog | None = None, workers: Workers | None = None) -> Intake:
    """An intake that reads the configured chunks into `state`. Findings go to `log`."""
    from chunksink.workers import worker_processes

    return Intake(
        config.bus,
        state,
        require_source_checksum=config.require_source_checksum,
        fields=FieldSet.of(config.fields),
        workers=workers or worker_processes,
        on_finding=log.finding if log is not None else ignore,
    )


def require_chunks(config: Config, command: str) -> BusRoot:
    """Returns the bus root. Raises InvalidBus if its folder is gone and had partitions before, and NotABusRoot if it
    never had any, or if the path cannot be a bus root, such as a file.

    If the storage fails, a home with an index gets a record of the failed run, so that monitoring notices it.
    """
    home = config.home_path
    try:
        return _existing_chunks(config.bus, home)
    except StorageError:
        if not (home / "state.db").exists():
            raise
        with RunLog(home, command):
            raise


def _existing_chunks(root: BusRoot, home: Path) -> BusRoot:
    try:
        return root.require()
    except NotABusRoot as error:
        known: list[str] = []
        with suppress(RebuildError), State.existing(home) as state:
            known = [] if root.mistake else Catalog(state).known_partitions()
        if known:
            raise InvalidBus(
                f"no chunks at {root.address}, but the index was made from {counted(len(known), 'partition')}; it is "
                f"unchanged. {root.how_to_find_or_empty}, then `chunksink retire-partition KEY` for each"
            ) from error
        raise


def keep_live_sinks(config: Config) -> Config:
    """Keep an existing index in the engine that it uses, fts or Meilisearch, if no setting names sinks.

    MEILI_URL alone does not move an index from fts to Meilisearch: it may be meant for another program. ConfigError if
    the index uses Meilisearch and MEILI_URL is not set, even if it also has a build in fts, which may be outdated."""
    live = live_sinks(config.home_path) if config.origin.has_default_sinks else frozenset()
    if "meilisearch" in live and "meilisearch" not in config.sinks:
        raise ConfigError(
            f"the index in {config.home} uses meilisearch, but {MEILI_URL} is not set and no setting names sinks. "
            f"Set {MEILI_URL} again; or, to change the engines, set `sinks` in {CONFIG_FILE} or {variable('sinks')}"
        )
    moves = "fts" in live and "meilisearch" not in live and "meilisearch" in config.sinks
    return structs.replace(config, sinks=Config().sinks) if moves else config  # the defaults without MEILI_URL


def open_one_sink(config: Config, stack: ExitStack, name: str) -> Sink:
    """Open a sink by its name; the stack closes it."""
    try:
        return stack.enter_context(closing(registry.open_sink(name, config.home_path, config.sink.get(name, {}))))
    except ConfigError as error:
        if config.origin.sink_tables and str(error).startswith(f"[sink.{name}]"):
            raise ConfigError(f"{config.origin.sink_tables}: {error}") from error
        raise


def default_mode(config: Config) -> "Mode":
    """The default mode of a search: keyword if no sink has vectors, else hybrid."""
    with ExitStack() as stack:
        try:
            has_vectors = any(open_one_sink(config, stack, name).wants_vectors for name in config.sinks)
        except (ConfigError, SinkError):  # the search reports what is wrong with it
            has_vectors = True
    return "hybrid" if has_vectors else "keyword"


def status_of(config: Config, named: int = -1, *, reads_chunks: bool = True) -> "HomeStatus":
    """The state of the home, with the names of up to `named` held families (-1: of all). Without `reads_chunks` the
    chunks count as missing, and no family is named. Raises NoGeneration if nothing was built yet."""
    from chunksink.rebuild.session import model_mismatch
    from chunksink.rebuild.status import status

    root = config.bus
    with State.existing(config.home_path) as state:
        for name in set(config.sinks) - state.live().builds.keys():
            registry.require_sink(name)
        intake = open_intake(config, state)
        due = partial(model_mismatch, EncoderSettings.of(config), model_cache=config.model_cache_path)
        return status(state, root, intake, due, config.sinks, named=named, reads_chunks=reads_chunks)


@contextmanager
def existing_cache(config: Config, *, replace_damaged: bool = False) -> Iterator["VectorCache"]:
    """The existing cache of vectors. With `replace_damaged`, a damaged file is set aside instead of an error."""
    from chunksink.embeddings.cache import VectorCache

    path = cache_file(config.home_path)
    if not path.exists():
        raise CacheUnavailable(f"there is no cache at {path}: run `chunksink sync`, or choose another home with --home")
    with VectorCache.open(path, replace_damaged=replace_damaged) as cache:
        yield cache


def cached_vector(config: Config, model: ModelInfo, key: str) -> dict[str, Any] | None:
    """The `ref`, dimension, precision and text length of a cached vector; None if it, or the cache, is missing."""
    from chunksink.embeddings.stats import show

    if not cache_file(config.home_path).exists():
        return None
    with existing_cache(config) as cache:
        vector = show(cache, embedding_ref(model.fingerprint, model.key(key).hex()))
    if vector is None:
        return None
    return {name: getattr(vector, name) for name in ("ref", "dimension", "precision", "tokens")}


def chunk_documents(config: Config, families: Sequence[str] | None = None) -> Iterator[Document]:
    """The current documents from the chunks on disk: of these families, or of all."""
    from chunksink.rebuild.families import FamilyReader

    root = config.bus.require()
    with State.existing(config.home_path) as state:
        for family in FamilyReader(root, Catalog(state), FieldSet.of(config.fields)).families(families):
            yield from family.documents


def live_dimensions(config: Config, sink: str) -> int | None:
    """Dimensions of the vectors of the live generation; None if it has none, or no build in this sink."""
    try:
        with State.existing(config.home_path) as state:
            live = state.live()
    except NoGeneration:
        return None
    return live.model.dimension_in_index if live.holds_vectors and sink in live.builds else None


def require_configured(config: Config, only: tuple[str, ...]) -> None:
    """ConfigError for sinks that are not configured: their builds would never be searched or synced."""
    for name in only:
        if name not in config.sinks and name in sink_names():
            sinks = ", ".join(f'"{each}"' for each in (*config.sinks, name))
            raise ConfigError(
                f"{name} is not configured. Configure it first, with `sinks = [{sinks}]` in "
                "chunksink.toml or in CHUNKSINK_SINKS; the next `chunksink sync` builds it"
            )


def _open_sinks(
    config: Config,
    names: tuple[str, ...],
    stack: ExitStack,
    on_fault: Callable[[Fault], object],
    *,
    tolerant: bool,
) -> tuple[list[Sink], dict[str, SinkError]]:
    """Open these sinks. After a sink's first answer, its failed calls are retried.

    A wrong address or key is an error at once; with `tolerant` the sink is left out, and its error returned.
    """
    policy = RetryPolicy(deadline_seconds=config.patience, documents_per_second=config.documents_per_second)
    sinks: list[Sink] = []
    unreachable: dict[str, SinkError] = {}
    for name in dict.fromkeys(names):
        try:
            sink = open_one_sink(config, stack, name)
            with naming_bugs(name, "builds"):
                sink.builds()
        except SinkError as error:
            if not tolerant:
                raise
            unreachable[name] = error
        else:
            sinks.append(with_retries(sink, policy, on_fault=on_fault))
    return sinks, unreachable


def _open_compute(config: Config, stack: ExitStack) -> "Compute | None":
    """Workers on Ray, or existing vector segments; None if there are neither. The run itself computes the vectors that
    these do not provide."""
    if config.engine == "ray":
        from chunksink.compute.ray import RayCompute

        return stack.enter_context(closing(RayCompute(config)))
    if (config.ray and config.ray.segments) or Path(config.segments).is_dir():
        from chunksink.compute.local import LocalCompute
        from chunksink.workers import worker_processes

        return LocalCompute(config.segments, worker_processes)
    return None


def _open_former_sink(config: Config, stack: ExitStack, name: str) -> Sink:
    """A sink that is no longer in `sinks`. Raises Refused if its options are missing or invalid."""
    try:
        return open_one_sink(config, stack, name)
    except ConfigError as error:
        raise Refused(str(error)) from error


def _report_fault(log: RunLog, on_fault: Callable[[Fault], object], fault: Fault) -> None:
    log.write("fault", **asdict(fault))
    on_fault(fault)
