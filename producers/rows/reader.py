"""Rows to chunks: each row is a document, cut as what its text is.

A row may stand several times in its file, and the last counts. So a first reading keeps places, on disk, and a second
one takes row after row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chunkbus.identity import family_key
from producers.errors import RECORD_SUPERSEDED, SOURCE_EMPTY, RecordRefused, SourceFailed
from producers.html import html_version
from producers.html.chunker import document_of
from producers.markdown.document import Document
from producers.markdown.passages import cut
from producers.markdown.policy import Policy
from producers.markdown.structure import parse
from producers.markdown.tokens import Tokenizer, WordTokenizer
from producers.produced import Emptied, Item, LeftOut, Making, Produced
from producers.records.files import RecordFile, left_out
from producers.records.frame import Frame
from producers.records.index import FamilyIndex
from producers.rows.records import PARSER, build_chunks, parent_of
from producers.rows.row import Row, read_row
from producers.rows.separated import SeparatedFile, is_separated

MAX_ROW_BYTES = 32 * 2**20
# Raise it with any change of where a field goes, or of what a text is taken for.
_RULES_VERSION = "1"
_MARKDOWN = (".md", ".mdx", ".markdown")
# All of it in tags, as editors of web pages save what is written in them.
_PAGE = re.compile(r"\s*<(?:!doctype|[a-z][a-z0-9]*[\s>]).*</[a-z][a-z0-9]*\s*>\s*\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class RowReader:
    """Reads JSONL, an array, a folder with one JSON file a row, or separated values.

    Sizes, overlap and tokenizer are those of the Markdown producer.
    """

    policy: Policy = field(default_factory=Policy)
    tokenizer: Tokenizer = field(default_factory=WordTokenizer)

    @property
    def parser(self) -> tuple[str, str]:
        return PARSER

    @property
    def canonicalizer(self) -> tuple[str, str]:
        policy = self.policy.policy_id(self.tokenizer.version)
        return ("chunksink-rows", f"rows.{_RULES_VERSION}+html-{html_version()}+{policy}")

    def read(self, path: Path, uri: str, making: Making) -> Iterator[Item]:
        """Rows in the order of the file. What is refused at once comes first."""
        frame = Frame(uri, making, self.canonicalizer, self.tokenizer.version)
        try:
            with _open(path) as file, FamilyIndex() as index:
                for place, data in file.records():
                    try:
                        row = read_row(file.parse(data))
                        index.add(family_key(parent_of(row.name(uri, place)), frame.tenant_for(row.tenant)), place)
                    except RecordRefused as refusal:
                        yield left_out(uri, place, refusal.code, refusal.reason)
                yield from file.unread(uri)
                yield from self._in_order(file, index, frame)
        except SourceFailed as failure:
            yield LeftOut(uri, None, failure.code, failure.reason)

    def _in_order(self, file: RecordFile | SeparatedFile, index: FamilyIndex, frame: Frame) -> Iterator[Item]:
        for *earlier, place in index.families():
            for other in earlier:
                reason = f"{place} is a later version of it"
                yield left_out(frame.uri, other, RECORD_SUPERSEDED, reason, is_failure=False)
            try:
                row = read_row(file.parse(file.read(place)))
                name = row.name(frame.uri, place)
                document = _document(row)
                passages = list(cut(document, self.policy, self.tokenizer))
                records = list(build_chunks(row, name, document, passages, frame))
            except (RecordRefused, SourceFailed) as refusal:
                yield left_out(frame.uri, place, refusal.code, refusal.reason)
                continue
            if records:
                yield Produced(row.address or name, frame.tenant_for(row.tenant), records)
            else:
                yield left_out(frame.uri, place, SOURCE_EMPTY, f"{name}: has no text", is_failure=False)
                yield Emptied(family_key(parent_of(name), frame.tenant_for(row.tenant)))


def _open(path: Path) -> RecordFile | SeparatedFile:
    return SeparatedFile(path, MAX_ROW_BYTES) if is_separated(path.name) else RecordFile(path, MAX_ROW_BYTES)


def _document(row: Row) -> Document:
    """Its text is a page where it is called one, or is all in tags; else Markdown, as which plain text reads, too."""
    return document_of(row.text) if row.field == "html" or _is_page(row) else parse(row.text)


def _is_page(row: Row) -> bool:
    """Some files of Markdown begin and end with tags, too."""
    is_markdown = row.field == "markdown" or (row.address or "").lower().endswith(_MARKDOWN) or "```" in row.text
    return not is_markdown and _PAGE.match(row.text) is not None
