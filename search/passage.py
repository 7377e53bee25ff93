"""One chunk as it is shown by itself, with those around it; the same for an API and for an assistant."""

from dataclasses import dataclass
from typing import Any

from chunksink.search.link import link_of, locator_of
from chunksink.sinks.document import Document


@dataclass(frozen=True)
class Surrounded:
    """A document with those before and after it in its source."""

    document: Document
    before: tuple[Document, ...]
    after: tuple[Document, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            **as_json(self.document),
            "before": [as_json(document) for document in self.before],
            "after": [as_json(document) for document in self.after],
        }


def as_json(document: Document) -> dict[str, Any]:
    return {**reference(document), "text": document.text}


def reference(document: Document) -> dict[str, Any]:
    """What it is called and where it stands."""
    return {
        "chunk_id": document.chunk_id,
        "parent_id": document.parent_id,
        "title": document.title,
        "source_uri": document.source_uri,
        "link": link_of(document),
        "locator": locator_of(document),
    }
