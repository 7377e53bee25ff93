"""Parsed documents to chunks, in the order of the traversal: folder lineage, then path, then index.

The order is known when all documents are, so a first reading keeps their places and sort keys, on disk, and a second
one takes them in order. So neither the order of the lines nor who wrote them in parallel changes a byte.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import dirname

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import family_key, normalise_source
from chunksink.producers.errors import (
    BLOCK_WITHOUT_TEXT,
    NUL_REMOVED,
    RECORD_SUPERSEDED,
    SOURCE_EMPTY,
    TEXT_LEFT_OUT,
    RecordRefused,
    SourceFailed,
)
from chunksink.producers.html import html_version
from chunksink.producers.markdown.odd import find_odd, has_nul
from chunksink.producers.markdown.passages import cut
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.markdown.tokens import Tokenizer, WordTokenizer
from chunksink.producers.parsed.beside import MOST_PLACES, find_unread
from chunksink.producers.parsed.document import ParsedDocument, is_parsed, items_in_order, read_document
from chunksink.producers.parsed.records import PARSER, build_chunks, parent_of, stable_id
from chunksink.producers.parsed.render import render
from chunksink.producers.produced import Emptied, Item, LeftOut, Making, Produced
from chunksink.producers.records.files import Place, RecordFile, left_out, odd, parse_record
from chunksink.producers.records.frame import Frame
from chunksink.producers.records.gather import note_all
from chunksink.producers.records.index import FamilyIndex
from chunksink.producers.records.keeping import tenant_of

MAX_DOCUMENT_BYTES = 32 * 2**20
# Raise it with any change of rendering or of where a field goes.
_RULES_VERSION = "5"


@dataclass(frozen=True)
class ParsedReader:
    """Reads JSONL of parsed documents, or a folder with one JSON file a document.

    Sizes, overlap and tokenizer are those of the Markdown producer; `Policy(overlap_percent=0)` repeats nothing.
    """

    policy: Policy = field(default_factory=Policy)
    tokenizer: Tokenizer = field(default_factory=WordTokenizer)

    @property
    def parser(self) -> tuple[str, str]:
        return PARSER

    @property
    def canonicalizer(self) -> tuple[str, str]:
        policy = self.policy.policy_id(self.tokenizer.version)
        return ("chunksink-parsed", f"structural.{_RULES_VERSION}+html-{html_version()}+{policy}")

    def read(self, path: Path, uri: str, making: Making) -> Iterator[Item]:
        """Documents in the order of the traversal. What is refused at once comes first, in the file's order."""
        frame = Frame(uri, making, self.canonicalizer, self.tokenizer.version)
        try:
            with RecordFile(path, MAX_DOCUMENT_BYTES, is_record=is_parsed) as file, FamilyIndex() as index:

                def note(place: Place, data: bytes) -> None:
                    record, document = _parse(data)
                    key = family_key(parent_of(document), frame.tenant_for(tenant_of(record)))
                    index.add(key, place, _traversal_key(document))
                    if document.doc_id:
                        index.claim(document.doc_id)

                yield from note_all(file, uri, note)
                yield from self._in_order(file, index, frame)
        except SourceFailed as failure:
            yield LeftOut(uri, None, failure.code, failure.reason)

    def _in_order(self, file: RecordFile, index: FamilyIndex, frame: Frame) -> Iterator[Item]:
        documents = chunks = 0
        ids = _DocumentIds(index)
        for *earlier, place in index.families():
            try:
                data = file.read(place)
                record, document = _parse(data)
                for other in earlier:
                    reason = f"{document.source.path}: line {place.line} is a later version of it"
                    yield left_out(frame.uri, other, RECORD_SUPERSEDED, reason, is_failure=False)
                doc_id = document.doc_id or ids.next(documents + 1)
                units = items_in_order(document)
                rendered = render(units, self.policy, self.tokenizer)
                passages = list(cut(rendered.document, self.policy, self.tokenizer))
                made = build_chunks(record, document, rendered, passages, frame, doc_id=doc_id, first_number=chunks + 1)
                records = list(made)
            except RecordRefused as refusal:
                yield left_out(frame.uri, place, refusal.code, refusal.reason)
                continue
            if unread := [unit.unread for unit in units if unit.unread]:
                yield left_out(frame.uri, place, BLOCK_WITHOUT_TEXT, _told(document, unread), is_failure=False)
            if not records:
                reason = f"{document.source.path}: has no text"
                yield left_out(frame.uri, place, SOURCE_EMPTY, reason, is_failure=False)
                if not unread:
                    yield Emptied(family_key(parent_of(document), frame.tenant_for(tenant_of(record))))
                continue
            ids.use(doc_id)
            documents += 1
            chunks += len(records)
            yield Produced(document.source.path, frame.tenant_for(tenant_of(record)), records)
            if beside := find_unread(record, rendered.document.text):
                reason = f"{document.source.path}: what stands in {_first_of(beside)} is in no chunk"
                yield left_out(frame.uri, place, TEXT_LEFT_OUT, reason, is_failure=False)
            codes = [NUL_REMOVED] * has_nul(data) + [*find_odd(rendered.document, passages, self.policy)]
            yield from odd(frame.uri, place, codes)


def _told(document: ParsedDocument, unread: Sequence[str]) -> str:
    return f"{document.source.path}: says nothing in a field that is read, but in {_first_of(unread, '; ')}"


def _first_of(places: Sequence[str], between: str = " ") -> str:
    least = "at least " if len(places) == MOST_PLACES else ""
    return f"{places[0]:.200}" + (f"{between}and {least}{len(places) - 1:,} more" if len(places) > 1 else "")


class _DocumentIds:
    """Ids by place in the traversal, passing over those that documents state. One that nobody took is given again."""

    def __init__(self, index: FamilyIndex) -> None:
        self._index = index
        self._number, self._is_free = 0, False

    def next(self, place: int) -> str:
        if not self._is_free or self._number < place:
            self._number = max(self._number, place - 1) + 1
            while not self._index.claim(stable_id("doc", self._number)):
                self._number += 1
            self._is_free = True
        return stable_id("doc", self._number)

    def use(self, doc_id: str) -> None:
        if doc_id == stable_id("doc", self._number):
            self._is_free = False


def _parse(data: bytes) -> tuple[Record, ParsedDocument]:
    record = parse_record(data, MAX_DOCUMENT_BYTES)
    return record, read_document(record)


def _traversal_key(document: ParsedDocument) -> bytes:
    """Orders by the folder's components one by one, then by path: NUL parts them, and nothing comes before it."""
    path = normalise_source(document.source.path)
    folder = document.source.folder
    lineage = normalise_source(folder) if folder else dirname(path)
    return "\0".join([*filter(None, lineage.split("/")), "", path]).encode()
