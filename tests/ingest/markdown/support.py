"""Chunks of a text, and the corpora of the Markdown tests."""

import re
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.document_format import chunk_document
from chunksink.ingest.formats.markdown import MarkdownFormat
from chunksink.ingest.formats.markdown.document import Structure
from chunksink.ingest.formats.markdown.normalise import decode
from chunksink.ingest.formats.markdown.policy import Policy
from chunksink.ingest.formats.markdown.structure import parse
from chunksink.ingest.model import Family, Item, Notice, Source

CREATED_AT = "2026-01-01T00:00:00.000000Z"
NO_OVERLAP = Policy(overlap_percent=0)


def source_of(data: bytes, uri: str = "guide.md", tenant: str | None = None, path: Path = Path("guide.md")) -> Source:
    return Source(uri, path, sha256_hex(data), len(data), CREATED_AT, {"name": "test", "version": "1"}, tenant)


def items_of(document: Structure, source: Source, policy: Policy | None = None) -> list[Item]:
    return list(chunk_document(document, source, MarkdownFormat(), policy or Policy()))


def chunks_of(
    text: str | bytes, *, uri: str = "guide.md", tenant: str | None = None, policy: Policy | None = None
) -> list[Record]:
    data = text if isinstance(text, bytes) else text.encode()
    items = items_of(parse(decode(data)), source_of(data, uri, tenant), policy)
    return [chunk for item in items if isinstance(item, Family) for chunk in item.chunks]


def texts_of(text: str, policy: Policy | None = None) -> list[str]:
    return [record["text"] for record in chunks_of(text, policy=policy)]


def codes_of(text: str) -> list[str]:
    items = items_of(parse(text), source_of(text.encode()))
    return sorted(item.code for item in items if isinstance(item, Notice))


def normalise(text: str) -> str:
    return parse(text).text


def own_parts(records: list[Record]) -> list[str]:
    """The chunks without their overlap."""
    return [record["text"][record["metadata"]["overlap_chars"] :] for record in records]


def commonmark_examples(shared_data: Path) -> Iterator[str]:
    """Every example of the CommonMark specification, as its own tests read it."""
    spec = (shared_data / "commonmark" / "spec.txt").read_text(encoding="utf-8")
    for match in re.finditer(r"^`{32} example\n(.*?)^\.\n.*?^`{32}$", spec, re.MULTILINE | re.DOTALL):
        yield match[1].replace("→", "\t")


def corpus(shared_data: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every Markdown file of the repository."""
    for folder in ("rust-book", "javaguide", "commonmark"):
        for path in sorted((shared_data / folder).rglob("*")):
            if path.suffix in (".md", ".txt") and path.is_file():
                yield path.relative_to(shared_data).as_posix(), path.read_text(encoding="utf-8")


# Random texts of lines that begin, end or interrupt blocks, or almost do.
inline = st.text(
    alphabet=st.sampled_from("ab Z.!? ,*_`[]()<>\t你好。é̂\U0001f469\u200d\U0001f4bb1#|-:\\&\u00a0\u3000"), max_size=60
)
_marks = [
    *("", "", "# One", "## Two", "### ", "===", "---", "```", "~~~~ py", "- a", "  - b", "1. x", "2) y", "> q", ">"),
    *("    code", "| a | b |", "|---|---|", "<div>", "</div>", "<!--", "[r]: /u", "* * *", "\tt", "- > - z", "  ```"),
]
_line = st.one_of(
    inline,
    st.sampled_from(_marks),
    st.builds("{}{}".format, st.sampled_from(["> ", "- ", "  ", "10. ", "   > ", "- - "]), inline),
    st.builds(
        lambda word, n: " ".join([word] * n), st.sampled_from(["word", "Ende.", "中文。", "x"]), st.integers(1, 80)
    ),
)
documents = st.lists(_line, max_size=40).map("\n".join)
