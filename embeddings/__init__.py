"""Vectors for texts, computed once.

    encoder = load_encoder()                                   # or EndpointEncoder(EndpointSettings(...))
    with VectorCache.open("vectors.db") as cache:
        for embedded in vectors_for(stream_of_hash_and_text, encoder, cache):
            ...

`encoder` says what an encoder is; `load` and `endpoint` make the two kinds; `cache` keeps what they computed;
`vectors_for` joins the two. `maintenance` and `exchange` are library calls without a command yet.
Importing this package imports neither torch nor sentence_transformers, httpx or sqlite_utils.
"""

from embeddings.cache import Found, VectorCache
from embeddings.encoder import (
    BatchEncoder,
    EncodedBatch,
    Encoder,
    LongTexts,
    ModelInfo,
    Precision,
    PrecisionRequest,
    QueryEncoder,
    Vectors,
    encode_query,
    info_of,
)
from embeddings.endpoint import EndpointEncoder, EndpointSettings
from embeddings.errors import (
    BadExport,
    BadReference,
    CacheBusy,
    CacheDamaged,
    CacheError,
    CacheForeign,
    CacheTooNew,
    CacheUnavailable,
    EmbeddingsError,
    EncoderOutOfMemory,
    EndpointDenied,
    EndpointError,
    EndpointUnavailable,
    ExchangeError,
    ImportRefused,
    ModelError,
    ModelUnavailable,
    ModelUnsupported,
    TextRefused,
    VectorRefused,
    WrongVectors,
)
from embeddings.exchange import ExportReport, ImportReport, Proof, export_cache, import_cache
from embeddings.load import load_encoder
from embeddings.maintenance import (
    BadRow,
    CachedVector,
    CacheStats,
    GcReport,
    ModelStats,
    VerifyReport,
    gc,
    long_texts,
    show,
    stats,
    verify,
)
from embeddings.references import EmbeddingRef, TextHash, embedding_ref, parse_ref, raw_fingerprint, raw_hash
from embeddings.resolve import DEFAULT_MODEL, ResolvedModel, resolve_model
from embeddings.salvage import SalvageReport
from embeddings.transformer import TransformerEncoder
from embeddings.vectors import Embedded, EmbedReport, VectorStream, vectors_for

__all__ = [
    "DEFAULT_MODEL",
    "BadExport",
    "BadReference",
    "BadRow",
    "BatchEncoder",
    "CacheBusy",
    "CacheDamaged",
    "CacheError",
    "CacheForeign",
    "CacheStats",
    "CacheTooNew",
    "CacheUnavailable",
    "CachedVector",
    "EmbedReport",
    "Embedded",
    "EmbeddingRef",
    "EmbeddingsError",
    "EncodedBatch",
    "Encoder",
    "EncoderOutOfMemory",
    "EndpointDenied",
    "EndpointEncoder",
    "EndpointError",
    "EndpointSettings",
    "EndpointUnavailable",
    "ExchangeError",
    "ExportReport",
    "Found",
    "GcReport",
    "ImportRefused",
    "ImportReport",
    "LongTexts",
    "ModelError",
    "ModelInfo",
    "ModelStats",
    "ModelUnavailable",
    "ModelUnsupported",
    "Precision",
    "PrecisionRequest",
    "Proof",
    "QueryEncoder",
    "ResolvedModel",
    "SalvageReport",
    "TextHash",
    "TextRefused",
    "TransformerEncoder",
    "VectorCache",
    "VectorRefused",
    "VectorStream",
    "Vectors",
    "VerifyReport",
    "WrongVectors",
    "embedding_ref",
    "encode_query",
    "export_cache",
    "gc",
    "import_cache",
    "info_of",
    "load_encoder",
    "long_texts",
    "parse_ref",
    "raw_fingerprint",
    "raw_hash",
    "resolve_model",
    "show",
    "stats",
    "vectors_for",
    "verify",
]
