"""Rows to chunks: each row is a document, cut as what its text is.

A row may stand several times in its file, and the last counts. So a first reading keeps places, on disk, and a second
one takes row after row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import family_key
from chunksink.producers.errors import (
    NUL_REMOVED,
    RECORD_SUPERSEDED,
    SOURCE_EMPTY,
    TEXT_LEFT_OUT,
    RecordRefused,
    SourceFailed,
)
from chunksink.producers.html import html_version
from chunksink.producers.markdown.odd import find_odd
from chunksink.producers.markdown.passages import cut
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.markdown.tokens import Tokenizer, WordTokenizer
from chunksink.producers.produced import Emptied, Item, LeftOut, Making, Produced
from chunksink.producers.records.files import Place, RecordFile, left_out, odd
from chunksink.producers.records.frame import Frame
from chunksink.producers.records.gather import note_all
from chunksink.producers.records.index import FamilyIndex
from chunksink.producers.rows.markup import document_of
from chunksink.producers.rows.names import USUAL, Names
from chunksink.producers.rows.records import CANONICALIZER_NAME, PARSER, build_chunks, parent_of
from chunksink.producers.rows.row import Row, is_row, read_row, says_text
from chunksink.producers.rows.separated import SeparatedFile, is_separated
from chunksink.producers.text.chunker import TEXT

MAX_ROW_BYTES = 32 * 2**20
# Raise it with any change of where a field goes, or of what a text is taken for.
_RULES_VERSION = "1"


@dataclass(frozen=True)
class RowReader:
    """Reads JSONL, an array, a folder with one JSON file a row, or separated values.

    Sizes, overlap and tokenizer are those of the Markdown producer. `names` say what their fields are called.
    """

    names: Names = USUAL
    policy: Policy = field(default_factory=Policy)
    tokenizer: Tokenizer = field(default_factory=WordTokenizer)

    @property
    def parser(self) -> tuple[str, str]:
        return PARSER

    @property
    def canonicalizer(self) -> tuple[str, str]:
        policy = self.policy.policy_id(self.tokenizer.version)
        given = f"+{self.names.given}" if self.names.given else ""
        rules = f"rows.{_RULES_VERSION}{given}+text-{TEXT.parser[1]}+html-{html_version()}"
        return (CANONICALIZER_NAME, f"{rules}+{policy}")

    def read(self, path: Path, uri: str, making: Making) -> Iterator[Item]:
        """Rows in the order of the file. What is refused at once comes first."""
        frame = Frame(uri, making, self.canonicalizer, self.tokenizer.version)
        try:
            with self._open(path) as file, FamilyIndex() as index:

                def note(place: Place, data: bytes) -> None:
                    row = self._read(file, data)
                    index.add(family_key(parent_of(row.name(uri, place)), frame.tenant_for(row.tenant)), place)

                yield from note_all(file, uri, note)
                yield from self._in_order(file, index, frame)
        except SourceFailed as failure:
            yield LeftOut(uri, None, failure.code, failure.reason)

    def _in_order(self, file: RecordFile | SeparatedFile, index: FamilyIndex, frame: Frame) -> Iterator[Item]:
        for *earlier, place in index.families():
            try:
                row = self._row(file, place)
                for other in earlier:
                    yield _told_twice(frame.uri, other, place, is_same=row.is_like(self._row(file, other)))
                name = row.name(frame.uri, place)
                document = document_of(row)
                passages = list(cut(document, self.policy, self.tokenizer))
                records = list(build_chunks(row, name, document, passages, frame))
            except (RecordRefused, SourceFailed) as refusal:
                yield left_out(frame.uri, place, refusal.code, refusal.reason)
                continue
            if records:
                yield Produced(row.address or name, frame.tenant_for(row.tenant), records)
                codes = [NUL_REMOVED] * ("\0" in row.text) + [*find_odd(document, passages, self.policy)]
                yield from odd(frame.uri, place, codes)
                if row.unread:
                    reason = f"{name}: {', '.join(row.unread):.200} could be its text, too, and {row.called} is"
                    yield left_out(frame.uri, place, TEXT_LEFT_OUT, reason, is_failure=False)
            else:
                yield left_out(frame.uri, place, SOURCE_EMPTY, f"{name}: has no text", is_failure=False)
                yield Emptied(family_key(parent_of(name), frame.tenant_for(row.tenant)))

    def _open(self, path: Path) -> RecordFile | SeparatedFile:
        if is_separated(path.name):
            return SeparatedFile(path, MAX_ROW_BYTES, self.names.of_columns().text)
        return RecordFile(path, MAX_ROW_BYTES, is_record=self._is_record)

    def _is_record(self, record: Record, *, is_alone: bool) -> bool:
        is_named = self.names.text != USUAL.text
        return says_text(record, self.names) if is_alone or is_named else is_row(record)

    def _row(self, file: RecordFile | SeparatedFile, place: Place) -> Row:
        return self._read(file, file.read(place))

    def _read(self, file: RecordFile | SeparatedFile, data: bytes) -> Row:
        return read_row(file.parse(data), self.names.of_columns() if isinstance(file, SeparatedFile) else self.names)


def _told_twice(uri: str, other: Place, place: Place, *, is_same: bool) -> LeftOut:
    """Of two that say different things nobody knows whether one is a later version or another document."""
    if is_same:
        return left_out(uri, other, RECORD_SUPERSEDED, f"{place} says the same", is_failure=False)
    reason = f"{place} has the same id and says something else, and counts alone; give each row an id of its own"
    return left_out(uri, other, findings.DUPLICATE_IDS, reason)
