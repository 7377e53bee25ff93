"""What several producer tests share: chunks of a text, and the corpora to try everything on."""

import re
from collections.abc import Iterator
from pathlib import Path

from chunksink.chunkbus.chunk import Record
from chunksink.producers.markdown import MarkdownChunker, Policy, SourceVersion

CREATED_AT = "2026-01-01T00:00:00.000000Z"
PRODUCER = {"name": "test", "version": "1"}


def chunks_of(
    text: str | bytes, *, uri: str = "guide.md", tenant: str | None = None, policy: Policy | None = None
) -> list[Record]:
    data = text if isinstance(text, bytes) else text.encode()
    chunker = MarkdownChunker(policy=policy or Policy())
    return chunker.chunks(data, SourceVersion.of(uri, data, tenant), created_at=CREATED_AT, producer=PRODUCER)


def texts_of(text: str, policy: Policy | None = None) -> list[str]:
    return [record["text"] for record in chunks_of(text, policy=policy)]


def own_parts(records: list[Record]) -> list[str]:
    """The chunks without what they repeat of their neighbours."""
    return [record["text"][record["metadata"]["overlap_chars"] :] for record in records]


def without_space(text: str) -> str:
    return "".join(text.split())


def commonmark_examples(shared_data: Path) -> Iterator[str]:
    """Every example of the CommonMark specification, as its own tests read it."""
    spec = (shared_data / "commonmark" / "spec.txt").read_text(encoding="utf-8")
    for match in re.finditer(r"^`{32} example\n(.*?)^\.\n.*?^`{32}$", spec, re.MULTILINE | re.DOTALL):
        yield match[1].replace("→", "\t")


def corpus(shared_data: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every Markdown file there is."""
    for folder in ("rust-book", "javaguide", "commonmark"):
        for path in sorted((shared_data / folder).rglob("*")):
            if path.suffix in (".md", ".txt") and path.is_file():
                yield path.relative_to(shared_data).as_posix(), path.read_text(encoding="utf-8")
