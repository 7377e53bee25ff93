"""Where concrete classes meet: the one file that knows which engines, which model and which folders a home uses.

Everything heavy is imported when it is asked for.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embeddings.encoder import Vectors
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


@contextmanager
def open_embedder(home: Path, model: str) -> Iterator["DocumentEmbedder"]:
    from embeddings.cache import VectorCache
    from embeddings.load import load_encoder
    from rebuild.embed import DocumentEmbedder

    encoder = load_encoder(model)
    with VectorCache.open(home / "vectors.db") as cache:
        yield DocumentEmbedder(model, encoder, cache)


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
    from embeddings.errors import ModelError
    from embeddings.load import load_encoder

    name = generation.model_name
    try:
        encoder = load_encoder(name)
    except ModelError as error:
        raise ModelUnusable(f"the model {name} that made the live index cannot be loaded: {error}") from error
    if encoder.fingerprint != generation.model_fingerprint:
        raise ModelUnusable(f"{name} is not the model any more that made the live index; run `chunksink rebuild`")
    return partial(encode_query, encoder)
