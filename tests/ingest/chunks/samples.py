"""Chunk records of each form, as their specifications show them."""

from typing import Any


def markdown_chunk(ordinal: int = 0, document: str = "doc-7", **changes: Any) -> dict[str, Any]:
    return {
        "chunk_id": f"{document}-{ordinal}",
        "tenant_id": "acme",
        "document_id": document,
        "ordinal": ordinal,
        "chunk_path": "/Setup/Linux/ol[1]",
        "headings_path": ["Setup", "Linux"],
        "token_count": 5,
        "chunk_text": f"Step {ordinal} of the setup.",
        **changes,
    }


def structural_chunk(index: int = 0, path: str = "policies/data/retention.pdf", **changes: Any) -> dict[str, Any]:
    return {
        "id": f"chunk_{480 + index:04d}",
        "text": f"Enterprise data is retained for {90 + index} days…",
        "source": {"path": path, "folder": path.rpartition("/")[0], "type": "policy"},
        "doc_id": "doc_0007",
        "index": index,
        "neighbors": [f"chunk_{480 + index - 1:04d}", f"chunk_{480 + index + 1:04d}"],
        "metadata": {},
        "relations": [],
        **changes,
    }


def recorder_chunk(ordinal: int = 0, pane: int = 3, **changes: Any) -> dict[str, Any]:
    return {
        "chunk_id": f"{pane}-{ordinal}",
        "policy_version": "ft.recorder.chunking.v1",
        "pane_id": pane,
        "session_id": "s-1",
        "direction": "egress",
        "start_offset": {"segment_id": 2, "ordinal": ordinal, "byte_offset": ordinal * 100},
        "end_offset": {"segment_id": 2, "ordinal": ordinal + 4, "byte_offset": ordinal * 100 + 99},
        "event_ids": [f"e{ordinal}", f"e{ordinal + 4}"],
        "event_count": 2,
        "occurred_at_start_ms": 1_700_000_000_000,
        "occurred_at_end_ms": 1_700_000_005_000,
        "text_chars": 11,
        "content_hash": "ab" * 32,
        "text": f"[OUT] ok {ordinal}",
        **changes,
    }


def canonical_chunk(index: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "schema_version": "chunks.v1",
        "chunk_id": f"c-{index}",
        "document_id": "d-1",
        "text": f"Canonical {index}.",
        "provenance": {
            "source_uri": "docs/a.md",
            "parser": {"parser_name": "p", "parser_version": "1"},
            "canonicalizer": {"canonicalizer_name": "c", "canonicalizer_version": "1"},
            "inputs": [],
        },
        "chunk_index": index,
        "created_at": "2020-01-01T00:00:00Z",
        **changes,
    }


def framework_chunk(number: int = 0, source: str = "docs/cat.md", **changes: Any) -> dict[str, Any]:
    """A document as LangChain saves it."""
    return {
        "id": None,
        "metadata": {"source": source, "title": "Cats", "page": number},
        "page_content": f"Cat {number} sleeps.",
        "type": "Document",
        **changes,
    }
