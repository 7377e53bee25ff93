"""Where concrete classes meet: the one file that knows which engines, which model and which folders a home uses.

Everything heavy is imported when it is asked for.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
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


def _fts(home: Path) -> "FtsSink":
    from sinks.fts import FtsSink

    return FtsSink(home / "fts")


def _chroma(home: Path) -> "ChromaSink":
    from sinks.chroma import ChromaSink

    return ChromaSink.embedded(home / "chroma")


@contextmanager
def open_sinks(home: Path) -> Iterator["tuple[FtsSink, ChromaSink]"]:
    """The sinks of the embedded default: keyword search in SQLite, vectors in Chroma, no server."""
    fts, chroma = _fts(home), _chroma(home)
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

    with open_sinks(home) as (fts, chroma), closing(fts.reader(generation.builds[fts.name])) as keyword:
        if not semantic:
            yield Legs(keyword, None, None, {})
            return
        try:
            encode = _query_encoder(generation)
        except ModelMismatch as error:
            yield Legs(keyword, None, None, {"semantic": str(error)})
            return
        try:
            vectors = chroma.reader(generation.builds[chroma.name])
        except SinkError as error:
            yield Legs(keyword, None, None, {"semantic": str(error)})
            return
        with closing(vectors):
            yield Legs(keyword, vectors, encode, {})


class ModelMismatch(Exception):
    """The model that made the live index cannot be had, so that its vectors cannot be searched."""


def _query_encoder(generation: "Generation") -> "Callable[[str], Vectors]":
    from embeddings.encoder import encode_query
    from embeddings.errors import ModelError
    from embeddings.load import load_encoder

    name = generation.model_name
    if name is None:
        raise ModelMismatch("the live index was built without vectors; run `chunksink rebuild`")
    try:
        encoder = load_encoder(name)
    except ModelError as error:
        raise ModelMismatch(f"the model {name} that made the live index cannot be loaded: {error}") from error
    if encoder.fingerprint != generation.model_fingerprint:
        raise ModelMismatch(f"{name} is not the model any more that made the live index; run `chunksink rebuild`")
    return partial(encode_query, encoder)
