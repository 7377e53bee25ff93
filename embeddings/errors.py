"""Errors of the embeddings package. Each message states what happened and what to do.

Exceptions of libraries (sqlite3, httpx, huggingface_hub, torch) are translated once, where they occur.
Any other exception is a bug and keeps its traceback.
"""

from __future__ import annotations

from chunksink.chunkbus.errors import ChunksinkError


class EmbeddingsError(ChunksinkError):
    """A problem with embeddings that a user can solve."""


class BadReference(EmbeddingsError, ValueError):
    """The value is not a vector key, a model fingerprint or an `embedding_ref`. `references` describes their forms."""


class ModelError(EmbeddingsError):
    """The model cannot be used with these settings."""


class ModelUnavailable(ModelError):
    """The model is not on this machine and cannot be downloaded."""


class ModelUnsupported(ModelError):
    """chunksink cannot compute vectors with this model or these settings."""


class GraphUnavailable(ModelUnsupported):
    """OpenVINO cannot run the model here: no graph can be made, or the graph cannot be loaded. Then
    sentence-transformers runs the model, except in int8."""


class GraphUnreadable(GraphUnavailable):
    """The graph is undamaged, but these versions of OpenVINO and tokenizers cannot load it; it is made again."""


class WrongVectors(ModelError):
    """The encoder returned the wrong number of vectors, or vectors that are not finite or have a wrong dimension."""


class EncoderOutOfMemory(ModelError):
    """The model or a single text does not fit into memory; choose a smaller model or a shorter maximum length."""


class EndpointError(EmbeddingsError):
    """The embedding endpoint returned no vectors, or none that can be used."""


class EndpointUnavailable(EndpointError):
    """No answer came before the deadline, or answers could not be used; try again later."""


class EndpointDenied(EndpointError):
    """The endpoint cannot be used with these settings or in this environment; correct what the message names."""


class EndpointAddressInvalid(EndpointDenied):
    """The configured URL is malformed, or has a user, password or parameters."""


class EndpointChanged(EndpointError):
    """The endpoint computes different vectors than before for the same model name."""


class TextRefused(EndpointError):
    """The endpoint returns no vector for this text. It may return vectors for others."""


class RerankFailed(EmbeddingsError):
    """The reranker cannot be used, or returned no usable scores in time; hits keep their order."""


class CacheError(EmbeddingsError):
    """The vector cache cannot be used."""


class CacheTooNew(CacheError):
    """A newer chunksink wrote this cache; upgrade chunksink or move the file away."""


class CacheDamaged(CacheError):
    """SQLite cannot read the cache; `chunksink cache verify --repair` sets the file aside."""


class CacheBusy(CacheError):
    """Another process has held the cache for too long; wait for it or end it."""


class CacheUnavailable(CacheError):
    """The cache file cannot be opened, read or written."""


class CacheOutOfResources(CacheUnavailable):
    """The disk is full or fails, or the machine is out of memory or has too many files open."""


class SegmentUnreadable(CacheError):
    """The file is not a vector segment, or is missing or damaged: export it again, or delete it. If a newer chunksink
    wrote it, upgrade chunksink."""
