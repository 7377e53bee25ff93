"""Names of cached vectors: vector keys, fingerprints and the `embedding_ref` of the contract.

A vector key identifies a vector among those of one model. It is the hash of the text, followed by the hash of the
context if there is one. An `embedding_ref` names a cached vector:

    cache:<model fingerprint, 64 hex digits>/<key, 64 or 96 hex digits>

It is valid on every machine whose cache has that vector, because fingerprint and key depend on content only.
Callers pass keys as `sha256:<hex>` or as hex; this package uses the 32 or 48 raw bytes.
"""

from __future__ import annotations

import re

from chunksink.embeddings.context import CONTEXT_BYTES
from chunksink.embeddings.errors import BadReference

TEXT_BYTES = 32
"""Length of the hash of a text, with which each key begins."""

_HEX = re.compile(r"[0-9a-fA-F]{64}")
_KEY = re.compile(rf"{_HEX.pattern}(?:[0-9a-fA-F]{{{2 * CONTEXT_BYTES}}})?")
_REF = re.compile(rf"cache:({_HEX.pattern})/({_KEY.pattern})")


def raw_key(key: str) -> bytes:
    """The 32 or 48 bytes of a key. The key of a vector without context is the hash of its text."""
    digits = key.removeprefix("sha256:")
    if _KEY.fullmatch(digits):
        return bytes.fromhex(digits)
    raise BadReference(f"not the key of a vector: {key!r:.100}")


def split_key(key: bytes) -> tuple[bytes, bytes]:
    """The hash of the text, and that of the context, which is empty without a context."""
    return key[:TEXT_BYTES], key[TEXT_BYTES:]


def raw_fingerprint(fingerprint: str) -> bytes:
    """The 32 bytes of a model fingerprint."""
    if _HEX.fullmatch(fingerprint):
        return bytes.fromhex(fingerprint)
    raise BadReference(f"not a model fingerprint: {fingerprint!r:.100}")


def embedding_ref(fingerprint: str, key: str) -> str:
    return f"cache:{raw_fingerprint(fingerprint).hex()}/{raw_key(key).hex()}"


def parse_ref(ref: str) -> tuple[bytes, bytes]:
    """The fingerprint and the key in an `embedding_ref`."""
    match = _REF.fullmatch(ref)
    if match is None:
        raise BadReference(f"not of the form cache:FINGERPRINT/KEY (64 hex digits, then 64 or 96): {ref!r:.200}")
    return bytes.fromhex(match[1]), bytes.fromhex(match[2])
