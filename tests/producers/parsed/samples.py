"""Parsed documents to try things on."""

from typing import Any


def parsed(path: str = "policies/data/retention.pdf", *blocks: Any, **about: Any) -> dict[str, Any]:
    return {
        "doc_id": "doc_0007",
        "source": {"path": path, "folder": path.rpartition("/")[0], "type": "policy"},
        "blocks": list(blocks) or [paragraph("Enterprise data is retained for 90 days.")],
        **about,
    }


def heading(text: str, level: int = 1, **about: Any) -> dict[str, Any]:
    return {"type": "heading", "text": text, "level": level, **about}


def paragraph(text: str, **about: Any) -> dict[str, Any]:
    return {"type": "paragraph", "text": text, **about}


def item(text: str, **about: Any) -> dict[str, Any]:
    return {"type": "list_item", "text": text, **about}


def sentences(number: int, start: int = 0) -> str:
    return " ".join(f"Sentence number {n} tells of rain and wind." for n in range(start, start + number))
