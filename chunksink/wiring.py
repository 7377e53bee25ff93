"""Where concrete classes meet: the one file that knows which engines, which model and which folders a home uses.

Everything heavy is imported when it is asked for.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from settings.config import Config

if TYPE_CHECKING:
    from embeddings.cache import VectorCache
    from embeddings.encoder import Encoder, ModelInfo, PrecisionRequest, Vectors
    from embeddings.settings import EncoderSettings
    from rebuild.embed import DocumentEmbedder
    from rebuild.state import Generation
    from search.query import Legs
    from sinks.chroma import ChromaSink
    from sinks.fts import FtsSink


def ledger_file(home: Path) -> Path:
    return home / "ledger.db"


@contextmanager
def open_sinks(home: Path) -> Iterator["tuple[FtsSink, ChromaSink]"]:
    """The sinks of the embedded default: keyword search in SQLite, vectors in Chroma, no server."""
    from sinks.chroma import ChromaSink
    from sinks.fts import FtsSink

    fts, chroma = FtsSink(home / "fts"), ChromaSink.embedded(home / "chroma")
    try:
        yield fts, chroma
    finally:
        chroma.close()
        fts.close()


def cache_file(home: Path) -> Path:
    return home / "vectors.db"


@contextmanager
def existing_cache(config: Config, *, read_only: bool) -> Iterator["VectorCache"]:
    """The cache of a home for whoever looks after it; only a rebuild makes one."""
    from embeddings.cache import VectorCache
    from embeddings.errors import CacheUnavailable

    path = cache_file(config.home_path)
    if not path.exists():
        raise CacheUnavailable(f"there is no cache at {path}; `chunksink rebuild` makes one, --home names another home")
    with VectorCache.open(path, read_only=read_only) as cache:
        yield cache


def encoder_settings(config: Config) -> "EncoderSettings":
    from embeddings.settings import EncoderSettings

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
def open_embedder(config: Config) -> Iterator["DocumentEmbedder"]:
    from embeddings.cache import VectorCache
    from embeddings.settings import open_encoder
    from rebuild.embed import DocumentEmbedder

    settings = encoder_settings(config)
    encoder = open_encoder(settings)
    with VectorCache.open(cache_file(config.home_path)) as cache:
        yield DocumentEmbedder(settings, encoder, cache)


def find_encoder(configured: "EncoderSettings", info: "ModelInfo") -> "Encoder | None":
    """An encoder of this fingerprint and precision: the configured one, or that which `info` names, if it is here."""
    from embeddings.errors import EmbeddingsError
    from embeddings.settings import EncoderSettings, open_encoder

    named = EncoderSettings(
        model=info.name,
        long_texts=info.long_texts,
        max_length=info.max_length,
        query_prompt=info.query_prompt,
        passage_prompt=info.passage_prompt,
    )
    for settings in (configured, named):
        precision: PrecisionRequest = "auto" if settings.endpoint else info.precision
        with suppress(EmbeddingsError):
            encoder = open_encoder(replace(settings, precision=precision), network=False)
            if (encoder.fingerprint, encoder.precision) == (info.fingerprint, info.precision):
                return encoder
    return None


@contextmanager
def open_legs(home: Path, generation: "Generation", *, semantic: bool) -> Iterator["Legs"]:
    """What the generation is searched through; `semantic` says whether its vectors are wanted."""
    from search.query import Legs
    from sinks.errors import SinkError

    with ExitStack() as stack:
        fts, chroma = stack.enter_context(open_sinks(home))
        keyword = stack.enter_context(closing(fts.reader(generation.builds[fts.name])))
        legs = Legs(keyword, None, None, {})
        if semantic:
            try:
                encode = _query_encoder(generation)
                vectors = stack.enter_context(closing(chroma.reader(generation.builds[chroma.name])))
                legs = Legs(keyword, vectors, encode, {})
            except (ModelUnusable, SinkError) as error:
                legs = Legs(keyword, None, None, {"semantic": str(error)})
        yield legs


class ModelUnusable(Exception):
    """The model that made the live index cannot be had, so that its vectors cannot be searched."""


def _query_encoder(generation: "Generation") -> "Callable[[str], Vectors]":
    from embeddings.encoder import encode_query
    from embeddings.errors import EmbeddingsError
    from embeddings.settings import open_encoder

    name = generation.encoder.model
    try:
        encoder = open_encoder(generation.encoder)
    except EmbeddingsError as error:
        raise ModelUnusable(f"the model {name} that made the live index cannot be loaded: {error}") from error
    if encoder.fingerprint != generation.model_fingerprint:
        raise ModelUnusable(f"{name} is not the model any more that made the live index; run `chunksink rebuild`")
    return partial(encode_query, encoder)
