"""Where concrete classes meet: the one file that knows which engines, which model and which folders a home uses.

Everything heavy is imported when it is asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from chunksink.settings.config import Config

if TYPE_CHECKING:
    from chunksink.chunkbus.findings import Finding
    from chunksink.chunkbus.layout import BusRoot
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.encoder import Encoder, ModelInfo
    from chunksink.embeddings.settings import EncoderSettings
    from chunksink.rebuild.embed import DocumentEmbedder
    from chunksink.rebuild.forecast import Lengths
    from chunksink.rebuild.state import Generation
    from chunksink.rebuild.status import Status
    from chunksink.rebuild.work import Stage, Work
    from chunksink.search.question import Mode
    from chunksink.sinks.contract import Sink
    from chunksink.sinks.errors import SinkError
    from chunksink.sinks.retry import Fault


@contextmanager
def open_work(
    config: Config,
    root: "BusRoot",
    *,
    on_finding: "Callable[[Finding], object]",
    on_fault: "Callable[[Fault], object]",
    failed: "dict[str, SinkError] | None" = None,
    stage: "Stage | None" = None,
) -> Iterator["Work"]:
    """The home, its chunks and the configured sinks, open for one run. See `open_sinks` for `failed`."""
    from chunksink.rebuild.catalog import Catalog
    from chunksink.rebuild.intake import Intake
    from chunksink.rebuild.records import Records
    from chunksink.rebuild.state import State
    from chunksink.rebuild.work import Work, silent
    from chunksink.workers import worker_processes

    with ExitStack() as stack:
        # Before any record of a home is made: a sink that there is not was never meant.
        sinks = stack.enter_context(open_sinks(config, on_fault, failed))
        state = stack.enter_context(State(config.home_path))
        catalog = Catalog(state)
        intake = Intake(
            root,
            state,
            require_source_checksum=config.require_source_checksum,
            workers=partial(worker_processes, jobs=None),
            on_finding=on_finding,
        )
        yield Work(
            state=state,
            catalog=catalog,
            intake=intake,
            records=Records(root, catalog),
            sinks={sink.name: sink for sink in sinks},
            open_sink=partial(_open_former_sink, config, stack),
            stage=stage or silent,
            left_behind=partial(_left_behind, config),
        )


@contextmanager
def open_sinks(
    config: Config, on_fault: "Callable[[Fault], object]", failed: "dict[str, SinkError] | None" = None
) -> Iterator["list[Sink]"]:
    """The sinks that are configured, with patience from the moment on when each has answered once.

    A wrong address or key is told at once; with `failed` such a sink is named there and left out.
    """
    from chunksink.sinks.errors import SinkError
    from chunksink.sinks.retry import RetryingSink, RetryPolicy

    patience = RetryPolicy(deadline_seconds=config.patience, documents_per_second=config.documents_per_second)
    with ExitStack() as stack:
        sinks: list[Sink] = []
        for name in dict.fromkeys(config.sinks):
            sink = open_one_sink(config, stack, name)
            try:
                sink.builds()
            except SinkError as error:
                if failed is None:
                    raise
                failed[name] = error
            else:
                sinks.append(RetryingSink(sink, patience, on_fault=on_fault))
        yield sinks


def open_one_sink(config: Config, stack: ExitStack, name: str) -> "Sink":
    """Any sink by its name; it is closed with the stack."""
    from chunksink.sinks.registry import open_sink

    return stack.enter_context(closing(open_sink(name, config.home_path, config.sink.get(name, {}))))


def usual_mode(config: Config) -> "Mode":
    """How a question is asked that names no mode: by words, where no sink is to hold vectors."""
    from chunksink.settings.config import ConfigError
    from chunksink.sinks.errors import SinkError

    with ExitStack() as stack:
        try:
            by_meaning = any(open_one_sink(config, stack, name).wants_vectors for name in config.sinks)
        except (ConfigError, SinkError):  # what it holds is not known; the search says what is wrong with it
            by_meaning = True
    return "hybrid" if by_meaning else "keyword"


def _open_former_sink(config: Config, stack: ExitStack, name: str) -> "Sink":
    """One that is not configured any more. Also what it needed may be gone, and with it the way to its builds."""
    from chunksink.settings.config import ConfigError
    from chunksink.sinks.errors import Refused

    try:
        return open_one_sink(config, stack, name)
    except ConfigError as error:
        raise Refused(str(error)) from error


def _left_behind(config: Config) -> dict[str, str]:
    """An embedded sink has a folder of its name in the home, unless its options say otherwise. What lies below that
    folder is not told apart from it."""
    from chunksink.sinks.capabilities import SupportsAddress, capability

    found = {}
    for name in config.sinks:
        own = (config.home_path / name).resolve()
        if not config.sink.get(name) or not own.is_dir():
            continue
        with ExitStack() as stack:
            addressed = capability(open_one_sink(config, stack, name), SupportsAddress)
            address = addressed.address("any") if addressed is not None else {}
        used = [Path(place).resolve() for place in (address.get("path"), address.get("folder")) if place]
        apart = not any(place.is_relative_to(own) for place in used)
        if apart and any(entry.is_dir() and entry.name.startswith(f"{name}-") for entry in own.iterdir()):
            found[name] = str(config.home_path / name)
    return found


def live_dimensions(config: Config, sink: str) -> int | None:
    """Of the vectors in a sink's live build; None where it holds none, or nothing is known of it."""
    from chunksink.rebuild.errors import NoGeneration
    from chunksink.rebuild.state import State

    try:
        with State.existing(config.home_path) as state:
            live = state.live()
    except NoGeneration:
        return None
    return live.model.dimension if live.holds_vectors and sink in live.builds else None


def cache_file(home: Path) -> Path:
    return home / "vectors.db"


@contextmanager
def existing_cache(config: Config, *, read_only: bool, salvage: bool = False) -> Iterator["VectorCache"]:
    """The cache of a home for whoever looks after it; only a rebuild makes one. A damaged file is told, not mended."""
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.errors import CacheUnavailable

    path = cache_file(config.home_path)
    if not path.exists():
        raise CacheUnavailable(f"there is no cache at {path}; `chunksink rebuild` makes one, --home names another home")
    with VectorCache.open(path, read_only=read_only, salvage=salvage) as cache:
        yield cache


def fingerprint_in_cache(config: Config) -> str | None:
    """Of the configured model, where something is cached; None where it cannot be told without asking anyone for it."""
    from chunksink.embeddings.errors import EmbeddingsError
    from chunksink.embeddings.settings import open_encoder

    if not cache_file(config.home_path).exists() or (config.endpoint and config.endpoint_dimensions is None):
        return None
    with existing_cache(config, read_only=True) as cache:
        if not cache.read("SELECT 1 FROM vector LIMIT 1"):
            return None
    with suppress(EmbeddingsError), closing(open_encoder(encoder_settings(config), network=False)) as encoder:
        return encoder.fingerprint
    return None


def encoder_settings(config: Config) -> "EncoderSettings":
    from chunksink.embeddings.settings import EncoderSettings

    return EncoderSettings(
        model=config.model,
        precision=config.precision,
        long_texts=config.long_texts,
        max_length=config.max_length,
        query_prompt=config.query_prompt,
        passage_prompt=config.passage_prompt,
        endpoint=config.endpoint,
        endpoint_key_variable=config.endpoint_key_variable,
        endpoint_dimensions=config.endpoint_dimensions,
    )


@contextmanager
def open_embedder(
    config: Config, live: "Generation | None" = None, *, wanted: bool = True
) -> Iterator["DocumentEmbedder"]:
    """The embedder of the configured model. The model is loaded when a text has no vector yet, where no sink wants its
    vectors or the live index was made with just this one; else at once, to know it."""
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.known import known_encoder
    from chunksink.embeddings.lazy import LazyEncoder
    from chunksink.embeddings.settings import open_encoder
    from chunksink.rebuild.embed import DocumentEmbedder
    from chunksink.rebuild.state import NO_MODEL

    settings = encoder_settings(config)
    load = partial(open_encoder, settings)
    known: LazyEncoder | None = None
    if not wanted:
        known = LazyEncoder(NO_MODEL, load)
    elif live is not None and live.holds_vectors:
        known = known_encoder(settings, live.encoder, live.model)
    encoder = known or LazyEncoder.at_once(load)
    with closing(encoder), VectorCache.open(cache_file(config.home_path)) as cache:
        yield DocumentEmbedder(settings, encoder, cache)


@contextmanager
def live_embedder(config: Config, live: "Generation") -> Iterator["DocumentEmbedder"]:
    """The embedder of the model that made the live index; the model is loaded when a text has no vector yet."""
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.lazy import LazyEncoder
    from chunksink.embeddings.settings import open_encoder
    from chunksink.rebuild.embed import DocumentEmbedder

    lazy = LazyEncoder(live.model, partial(open_encoder, live.encoder))
    with closing(lazy) as encoder, VectorCache.open(cache_file(config.home_path)) as cache:
        yield DocumentEmbedder(live.encoder, encoder, cache)


def status_of(config: Config, named: int = -1) -> "Status":
    """What the home says of itself, with so many names of what is held; NoGeneration where nothing was built yet."""
    from chunksink.chunkbus.layout import BusRoot
    from chunksink.due import rebuild_due
    from chunksink.rebuild.intake import Intake
    from chunksink.rebuild.state import State
    from chunksink.rebuild.status import status
    from chunksink.sinks.registry import require_sink

    root = BusRoot(config.chunks_path)
    with State.existing(config.home_path) as state:
        for name in set(config.sinks) - state.live().builds.keys():
            require_sink(name)
        intake = Intake(root, state, require_source_checksum=config.require_source_checksum)
        return status(state, root, intake, partial(rebuild_due, config, state), config.sinks, named=named)


@contextmanager
def token_lengths(config: Config, fingerprint: str) -> Iterator["Lengths"]:
    """From text hashes to the lengths of those that the cache has for this model."""
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.references import raw_hash
    from chunksink.embeddings.stats import lengths

    with VectorCache.open(cache_file(config.home_path)) as cache:

        def known(text_hashes: "Sequence[str]") -> dict[str, int]:
            asked = {raw_hash(text_hash): text_hash for text_hash in text_hashes}
            return {asked[raw]: length for raw, length in lengths(cache, fingerprint, list(asked)).items()}

        yield known


def drop_texts(config: Config, text_hashes: "Sequence[str]") -> int:
    """The vectors of these texts go, of every model; how many there were."""
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.maintenance import drop, rows_with

    with VectorCache.open(cache_file(config.home_path)) as cache:
        rows = rows_with(cache, text_hashes)
        drop(cache, rows)
    return rows.rows


def find_encoder(configured: "EncoderSettings", stack: ExitStack, info: "ModelInfo") -> "Encoder | None":
    """An encoder of this fingerprint and precision: the configured one, or that which `info` names, if it is here."""
    from chunksink.embeddings.errors import ModelError
    from chunksink.embeddings.settings import EncoderSettings, open_encoder

    named = EncoderSettings(
        model=info.name,
        long_texts=info.long_texts,
        max_length=info.max_length,
        query_prompt=info.query_prompt,
        passage_prompt=info.passage_prompt,
    )
    for settings in (configured, named):
        with suppress(ModelError):
            encoder = open_encoder(replace(settings, precision=info.precision), network=False)
            if (encoder.fingerprint, encoder.precision) == (info.fingerprint, info.precision):
                stack.callback(encoder.close)
                return encoder
            encoder.close()
    return None
