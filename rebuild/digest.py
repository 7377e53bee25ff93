"""The digest of what an index holds: made alike from what was sent and from what an engine gives back."""

from collections.abc import Iterable

from chunksink.chunkbus.canonical import json_hash
from chunksink.sinks.document import Document


def document_digest(document: Document, text_hash: str) -> str:
    """Every field of a document; the text by its hash, since a sink need not keep texts."""
    return json_hash(document.fields() | {"text": text_hash})


def family_digest(documents: Iterable[str]) -> str:
    """From the digests of its documents, in any order; "" where there are none."""
    digests = sorted(documents)
    return json_hash(digests) if digests else ""
