"""Names of cached vectors: text hashes, fingerprints and the `embedding_ref` of the contract.

An `embedding_ref` points to a cached vector and never contains it:

    cache:<model fingerprint, 64 hex digits>/<text hash, 64 hex digits>

It is valid on every machine whose cache has that row, because both halves depend on content only.
Callers pass text hashes as `sha256:<64 hex>`, as hex or as 32 raw bytes; this package uses the raw bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from chunksink.embeddings.errors import BadReference

TextHash = str | bytes
"""A text hash in any accepted form."""

_HEX = re.compile(r"[0-9a-fA-F]{64}")
_REF = re.compile(rf"cache:({_HEX.pattern})/({_HEX.pattern})")


def raw_hash(text_hash: TextHash) -> bytes:
    """The 32 bytes of a text hash."""
    if isinstance(text_hash, bytes):
        if len(text_hash) == 32:
            return text_hash
    elif isinstance(text_hash, str):
        digits = text_hash.removeprefix("sha256:")
        if _HEX.fullmatch(digits):
            return bytes.fromhex(digits)
    raise BadReference(f"not a sha256 text hash: {text_hash!r:.100}")


def raw_fingerprint(fingerprint: str) -> bytes:
    """The 32 bytes of a model fingerprint."""
    if _HEX.fullmatch(fingerprint):
        return bytes.fromhex(fingerprint)
    raise BadReference(f"not a model fingerprint: {fingerprint!r:.100}")


@dataclass(frozen=True, slots=True)
class EmbeddingRef:
    """A pointer into the cache; `str()` returns the form that chunks contain."""

    fingerprint: str
    text_hash: str

    def __str__(self) -> str:
        return f"cache:{self.fingerprint}/{self.text_hash}"


def embedding_ref(fingerprint: str, text_hash: TextHash) -> EmbeddingRef:
    """The pointer to the vector of one text under one model."""
    return EmbeddingRef(raw_fingerprint(fingerprint).hex(), raw_hash(text_hash).hex())


def parse_ref(ref: str) -> EmbeddingRef:
    """Reads an `embedding_ref`; `BadReference` names the problem."""
    match = _REF.fullmatch(ref)
    if match is None:
        raise BadReference(f"not of the form cache:FINGERPRINT/TEXT_HASH, each of 64 hex digits: {ref!r:.200}")
    return embedding_ref(*match.groups())
