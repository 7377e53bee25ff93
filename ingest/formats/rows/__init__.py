"""Rows: one document a record, as datasets, exports and dumps have them, in JSON or separated values (docs/seams.md).

In go records with a text beside other fields; out comes a family for each, cut as Markdown. Begin with `reader`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.markdown.policy import Policy
from chunksink.ingest.formats.registry import Format, Match
from chunksink.ingest.formats.rows.row import NAMES, Names, is_row
from chunksink.ingest.model import Item, Source

_RULES_VERSION = "2"  # to be raised with every change of how a text is read or of the fields of a chunk


@dataclass(frozen=True)
class RowsFormat(Format):
    """Rows, cut by the Markdown policy. `fields` names fields by role, as in `{"text": "review.body"}`."""

    name = "rows"
    suffixes = (".jsonl", ".ndjson", ".json")
    suffixes_if_asked = (".csv", ".tsv")
    parser = ("rows", "1")

    fields: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)

    @property
    def canonicalizer(self) -> tuple[str, str]:
        fields = "".join(f"+{role}={name}" for role, name in sorted(self.fields.items()))
        return ("chunksink-rows", f"rows.{_RULES_VERSION}{fields}+{self.policy.policy_id}")

    @property
    def names(self) -> Names:
        return {**NAMES, **{role: (name,) for role, name in self.fields.items()}}

    def match(self, record: Record, *, is_alone: bool = False) -> Match:
        """The least sure of all formats: a record of another one that lacks a field often looks like a row."""
        return Match.POSSIBLE if is_row(record, self.names, is_alone=is_alone) else Match.NO

    def read(self, source: Source) -> Iterator[Item]:
        from chunksink.ingest.formats.rows.reader import read_rows

        return read_rows(self, source)


def header_matches(path: Path) -> bool:
    """Whether the header of a CSV or TSV file names a text, and an id, a title or an address."""
    from chunksink.ingest.formats.rows.separated import read_header

    try:
        return is_row(dict.fromkeys(read_header(path), "https://a.example/"), NAMES, is_alone=False)
    except SourceFailed:
        return False
