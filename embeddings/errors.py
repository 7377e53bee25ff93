"""Errors of the embeddings package. Each docstring names the problem and the remedy; messages add the facts.

Foreign exceptions (sqlite3, httpx, huggingface_hub, torch) are translated once, where they arise.
Any other exception is a bug and keeps its traceback.
"""

from __future__ import annotations

from chunksink.chunkbus.errors import ChunksinkError


class EmbeddingsError(ChunksinkError):
    """Something about embeddings that its reader can act on."""


class BadReference(EmbeddingsError, ValueError):
    """A text hash is `sha256:` and 64 hex digits, a fingerprint 64, a reference `cache:FINGERPRINT/TEXT_HASH`."""


class ModelError(EmbeddingsError):
    """The model cannot be used as asked."""


class ModelUnavailable(ModelError):
    """The model is not on this machine and cannot be fetched."""


class ModelUnsupported(ModelError):
    """The model is here but is not a text encoder that chunksink can drive."""


class GraphUnavailable(ModelUnsupported):
    """There is no graph of the model for OpenVINO, and none can be made; sentence-transformers computes instead."""


class GraphUnreadable(GraphUnavailable):
    """The graph is as it was made, but these versions of OpenVINO and tokenizers cannot load it; it is made again."""


class ModelChanged(ModelError):
    """The model of this name is not the one that made the vectors; rebuild the index with it."""


class WrongVectors(ModelError):
    """The encoder returned the wrong number of vectors, or vectors that are not finite or have a wrong dimension."""


class EncoderOutOfMemory(ModelError):
    """Even a single text does not fit into memory; choose a smaller model or a shorter maximum length."""


class EndpointError(EmbeddingsError):
    """The embedding endpoint did not do its work."""


class EndpointUnavailable(EndpointError):
    """No usable answer came before the deadline; the same call may work later."""


class EndpointDenied(EndpointError):
    """Address, model or key of the endpoint are wrong; no text will pass until that is corrected."""


class EndpointMisnamed(EndpointDenied):
    """The configured address cannot be that of an endpoint."""


class EndpointChanged(EndpointError):
    """The service behind the endpoint computes other vectors than before under the same name of a model."""


class TextRefused(EndpointError):
    """The endpoint does not accept this text; others may pass."""


class CacheError(EmbeddingsError):
    """The vector cache cannot be used as asked."""


class CacheForeign(CacheError):
    """The file is not a chunksink cache; move the file away."""


class CacheTooNew(CacheError):
    """A newer chunksink wrote this cache; upgrade chunksink or move the file away."""


class CacheDamaged(CacheError):
    """SQLite cannot read the cache; `chunksink cache verify --repair` sets the file aside."""


class CacheBusy(CacheError):
    """Another process has held the cache for too long; wait for it or end it."""


class CacheUnavailable(CacheError):
    """The cache file cannot be opened, read or written."""


class CacheFull(CacheUnavailable):
    """The disk has no room for the cache, or fails, or this machine is short of something else."""
