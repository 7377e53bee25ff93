"""Parsed documents: what parsers make of PDF, Office and other files, as JSON (docs/seams.md), and Docling documents.

In go documents of blocks, tables and images; out come chunks that keep sections and tables together, with their places
in the parsed file. Begin with `reader`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.markdown.policy import Policy
from chunksink.ingest.formats.parsed.docling import is_docling
from chunksink.ingest.formats.registry import Format, Match
from chunksink.ingest.model import Item, Source

_RULES_VERSION = "7"  # to be raised with every change of rendering or of the fields of a chunk


@dataclass(frozen=True)
class ParsedFormat(Format):
    """Parsed documents, cut by the Markdown policy; `Policy(overlap_percent=0)` repeats nothing."""

    name = "parsed"
    suffixes = (".jsonl", ".ndjson", ".json")
    parser = ("parsed-document", "1")

    policy: Policy = field(default_factory=Policy)

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return ("chunksink-parsed", f"structural.{_RULES_VERSION}+{self.policy.policy_id}")

    def match(self, record: Record, *, is_alone: bool = False) -> Match:
        if is_docling(record):
            return Match.DECLARED
        source = record.get("source")
        if not isinstance(source, dict) or not isinstance(source.get("path"), str):
            return Match.NO
        if record.get("blocks") is not None:
            return Match.LIKELY
        has_content = any(record.get(name) is not None for name in ("text", "tables", "images"))
        is_event = "event_type" in record or "pane_id" in record
        return Match.POSSIBLE if (has_content or is_alone) and not is_event else Match.NO

    def read(self, source: Source) -> Iterator[Item]:
        from chunksink.ingest.formats.parsed.reader import read_documents

        return read_documents(self, self.policy, source)
