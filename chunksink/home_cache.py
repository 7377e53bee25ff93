"""The existing cache of vectors of a home."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from chunksink.embeddings.encoder import ModelInfo
from chunksink.embeddings.errors import CacheUnavailable
from chunksink.embeddings.references import embedding_ref
from chunksink.rebuild.state import cache_file
from chunksink.settings.config import Config

if TYPE_CHECKING:
    from chunksink.embeddings.cache import VectorCache


@contextmanager
def existing_cache(config: Config, *, replace_damaged: bool = False) -> Iterator["VectorCache"]:
    """The existing cache. With `replace_damaged`, a damaged file is set aside instead of an error."""
    from chunksink.embeddings.cache import VectorCache

    path = cache_file(config.home_path)
    if not path.exists():
        raise CacheUnavailable(f"there is no cache at {path}; `chunksink sync` creates it, --home names another home")
    with VectorCache.open(path, replace_damaged=replace_damaged) as cache:
        yield cache


def cached_vector(config: Config, model: ModelInfo, key: str) -> dict[str, Any] | None:
    """The `ref` and the facts of a vector, without its numbers; None if it, or the whole cache, is missing."""
    from chunksink.embeddings.stats import show

    if not cache_file(config.home_path).exists():
        return None
    with existing_cache(config) as cache:
        vector = show(cache, embedding_ref(model.fingerprint, model.key(key)))
    if vector is None:
        return None
    return {name: getattr(vector, name) for name in ("ref", "dimension", "precision", "tokens")}
