"""Valid chunks, and values that no field accepts."""

from typing import Any

from hypothesis import strategies as st

from chunksink.chunkbus.chunk import Record
from chunksink.sinks.document import Document
from chunksink.sinks.projection import project_family

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def chunk(**fields: Any) -> Record:
    """A chunk with the contract's required fields and with these changes."""
    provenance = {"source_uri": "docs/a.md", "inputs": [], **fields.pop("provenance", {})}
    base = {"schema_version": "chunks.v1", "chunk_id": "c1", "document_id": "d1", "text": "body"}
    return {**base, "provenance": provenance, **fields}


def project(**fields: Any) -> Document:
    [document] = project_family([chunk(**fields)])
    return document
