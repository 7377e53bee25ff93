"""IR records, their ids computed here and not by the code under test."""

import hashlib
from typing import Any


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def ir_record(
    path: str = "/srv/docs/report.pdf",
    text: str = "Quarterly figures.",
    *,
    content: bytes = b"pdf",
    index: int = 0,
    count: int = 1,
    canonical: str | None = None,
    **changes: Any,
) -> dict[str, Any]:
    canonical = canonical or path
    record: dict[str, Any] = {
        "schema_version": "1.0",
        "id": sha(f"{canonical}|{sha(content)}|{index}"),
        "parent_id": sha(canonical),
        "chunk_index": index,
        "chunk_count": count,
        "content_hash": sha(content),
        "source": {
            "path": path,
            "filename": "report.pdf",
            "extension": "pdf",
            "source_folder": "/srv/docs",
            "mime_type": "application/pdf",
            "file_type": "pdf",
            "size_bytes": 3,
            "created_at": "2024-05-01T08:00:00Z",
            "created_at_epoch": 1714550400,
            "modified_at": "2024-05-02T08:00:00Z",
            "modified_at_epoch": 1714636800,
            "host": "files",
            "drive": None,
        },
        "provenance": {
            "extractor_name": "pdf-text",
            "extractor_version": "1.4.0",
            "processed_at": "2024-06-01T00:00:00Z",
            "model": {"ocr_engine": "tess", "ocr_version": "5.3"},
        },
        "content": {
            "content_text": text,
            "content_truncated": False,
            "title": "Report",
            "language": "en",
            "language_probability": 0.98,
            "tags": ["finance", "2024"],
        },
        "locator": {"page_number": 2, "page_end": 3},
        "segments": [{"type": "page", "text": text, "page_number": 2}],
        "metadata": {"author": "J. Doe", "keywords": ["money"], "year": 2024},
        "embedding": None,
        "status": "success",
        "warnings": [],
        "errors": [],
    }
    return {**record, **changes}
