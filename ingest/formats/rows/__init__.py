"""Rows: one document per record, as in data sets, exports and dumps, in JSON or CSV (docs/formats/rows.md).

Each record has a text and other fields. It becomes a family, cut as Markdown, in the order of the file.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes
from chunksink.ingest.errors import NotRead
from chunksink.ingest.formats.html import body_document, parse_html
from chunksink.ingest.formats.markdown.passages import cut
from chunksink.ingest.formats.markdown.policy import CutByPolicy
from chunksink.ingest.formats.markdown.records import links_by_passage, text_of_passage
from chunksink.ingest.formats.registry import Match
from chunksink.ingest.formats.rows.row import DATES, NAMES, Names, Row, is_row, read_row, row_metadata
from chunksink.ingest.formats.rows.separated_values import column_name, read_header, read_separated
from chunksink.ingest.json_records import NumberedRecord, read_records
from chunksink.ingest.model import Item, Notice, Source
from chunksink.ingest.record_documents import ChunkParts, CutDocument, make_family

MAX_ROW_BYTES = 32 * 2**20
_RULES_VERSION = "4"  # increase it with every change to how a text is read or to the fields of a chunk


@dataclass(frozen=True)
class RowsFormat(CutByPolicy):
    """Rows, cut by the Markdown policy. `fields` names fields by role, as in `{"text": "review.body"}`."""

    name = "rows"
    suffixes = (".jsonl", ".ndjson", ".json")
    suffixes_if_asked = (".csv", ".tsv")
    parser = ("rows", "1")

    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def canonicalizer(self) -> tuple[str, str]:  # type: ignore[override]
        # `classify` recognises a reading with fields by the `=`.
        fields = "".join(f"+{role}={name}" for role, name in sorted(self.fields.items()))
        return ("chunksink-rows", f"rows.{_RULES_VERSION}{fields}+{self.policy.policy_id}")

    @property
    def names(self) -> Names:
        named: dict[str, tuple[str, ...]] = {role: (name,) for role, name in self.fields.items()}
        if texts := named.get("text", ()) + named.get("html", ()):
            named["text"] = texts
        return {**NAMES, **named}

    def match(self, record: Record, *, is_alone: bool = False) -> Match:
        """Never more than POSSIBLE: a record of another format that lacks a required field often looks like a row."""
        return Match.POSSIBLE if is_row(record, self.names, is_alone=is_alone) else Match.NO

    def read(self, source: Source) -> Iterator[Item]:
        reader = _Reader(self, source)
        for found in reader.records():
            try:
                yield from [found] if isinstance(found, Notice) else reader.chunk(found.record, found.line)
            except NotRead as refusal:
                yield Notice(refusal.code, refusal.reason, found.line)


def field_options(version: str) -> str:
    """The `--field` options of a reading, from the version of its canonicalizer."""
    parts = re.split(rf"\+(?=(?:{'|'.join(NAMES)})=)", version.rpartition("+")[0])
    return " ".join(f"--field {shlex.quote(part)}" for part in parts[1:])


def header_matches(path: Path) -> bool:
    """Whether the header of a CSV or TSV file names a text, and an id, a title or an address. Raises SourceFailed."""
    return is_row(dict.fromkeys(read_header(path), "https://a.example/"), NAMES, is_alone=False)


class _Reader:
    def __init__(self, format_: RowsFormat, source: Source) -> None:
        self._format = format_
        self._source = source
        self._is_separated = source.path.suffix.lower() in format_.suffixes_if_asked
        with source.path.open("rb") as file:
            is_array = file.read(2**12).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
        self._position = "row" if is_array else "line"
        self._names = format_.names
        if self._is_separated:
            self._names = {role: tuple(map(column_name, names)) for role, names in format_.names.items()}

    def records(self) -> Iterator[NumberedRecord | Notice]:
        if self._is_separated:
            single = {*DATES, *chain(*self._names.values())}
            return read_separated(self._source.path, self._names["text"], single)
        return read_records(self._source.path, lambda record: bool(self._format.match(record)), MAX_ROW_BYTES)

    def chunk(self, record: Record, line: int) -> Iterator[Item]:
        row = read_row(record, self._names, self._source, f"{self._position}={line}")
        try:
            yield from self._chunk(row, line)
        except NotRead as refusal:
            yield Notice(refusal.code, refusal.reason, line, family=row.origin.family)

    def _chunk(self, row: Row, line: int) -> Iterator[Item]:
        from chunksink.ingest.formats.markdown.structure import parse

        document = body_document(parse_html(row.text).find("body"), str, Counter()) if row.is_html else parse(row.text)
        if not document.blocks:
            document = parse(row.title)
        policy = self._format.policy
        passages = list(cut(document, policy))
        origin = replace(row.origin, metadata=row_metadata(document, row.origin.metadata))
        parts = []
        for passage, links in zip(passages, links_by_passage(document.links, passages, origin.address), strict=True):
            found = {"anchor": document.anchors.get(passage.section), "links": links}
            metadata = {name: value for name, value in found.items() if value}
            parts.append(ChunkParts(text_of_passage(document.text, passage), metadata, {}))
        others = f": {', '.join(row.other_texts):.200} could also be its text"
        left_out = {codes.TEXT_LEFT_OUT: others} if row.other_texts else {}
        cut_document = CutDocument(origin, document, passages, parts)
        return make_family(self._format, policy, self._source, cut_document, left_out, line)
