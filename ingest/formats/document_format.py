"""The base of formats whose files are one document each: it turns what a library reads into chunks and notices."""

import re
import warnings
from abc import abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from typing import ClassVar, NamedTuple

from chunksink.chunkbus.canonical import chunk_object_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.errors import extra_needed
from chunksink.chunkbus.identity import family_key, resolve_parent_id
from chunksink.ingest import codes
from chunksink.ingest.checklist import find_problems
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.markdown.document import Block, Kind, Outline, Structure
from chunksink.ingest.formats.markdown.normalise import clean, collapse_line, one_line, shortened
from chunksink.ingest.formats.markdown.passages import Passage, cut
from chunksink.ingest.formats.markdown.policy import V1, CutByPolicy, Policy
from chunksink.ingest.formats.markdown.records import build_records
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Empty, Family, Item, Notice, Source

_MAX_FILE_BYTES = 512 * 2**20
# Programs write these as the titles of untitled documents.
_PLACEHOLDER = re.compile(
    r"untitled(?: document)?|about:blank"
    r"|(?:document|dokument|(?:powerpoint[ -])?(?:presentation|präsentation)|book|mappe|arbeitsmappe)\d*",
    re.IGNORECASE,
)
# Office gives this title, which contains the file's name, to a PDF that it prints.
_PRINTED = re.compile(
    r"microsoft (?:word|powerpoint|excel) - ?(.*?)(?:\.(?:doc|dot|rtf|od|txt|ppt|pps|xls|csv)[a-z]{0,2})?",
    re.IGNORECASE,
)

Places = dict[int, int | str]  # numbers of pages or slides, names of sheets, or anchors, by the offsets of their starts


class Part(NamedTuple):
    """A paragraph, lines of code, a table in Markdown, or a heading (`level` from 1). `gap` is the white space before
    it."""

    text: str
    level: int = 0
    kind: Kind = Kind.PROSE
    place: int | str = 0
    gap: str = "\n\n"


def read_whole(source: Source) -> bytes:
    """The file as it was when its checksum was computed. Raises SourceFailed if it is too large for memory."""
    if source.size > _MAX_FILE_BYTES:
        raise SourceFailed(codes.CHUNKING_FAILED, f"it is larger than {_MAX_FILE_BYTES >> 20} MiB; split it")
    with source.path.open("rb") as file:
        return file.read(source.size)


class DocumentFormat(CutByPolicy):
    """A file that is one document. Its library is imported when a file is read."""

    libraries: ClassVar[tuple[str, ...]] = ()
    """Packages whose versions may change the text. The first is recorded as the parser."""
    extra: ClassVar[str] = ""
    place_name: ClassVar[str] = ""
    rules: ClassVar[str] = "2"
    """Increase it with every change to the format's code that changes chunks."""

    @property
    def parser(self) -> tuple[str, str]:  # type: ignore[override]
        try:
            versions = [f"{name}-{version(name)}" for name in self.libraries]
        except PackageNotFoundError as error:
            reason = f"{self.name.upper()} needs {error.name}: {extra_needed(self.extra)}"
            raise SourceFailed(codes.CONVERTER_MISSING, reason) from error
        return (self.libraries[0] if self.libraries else self.name, "+".join((*versions, f"{self.name}-{self.rules}")))

    @abstractmethod
    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        """The document of a non-empty file; counts parts that are left out. An exception means a broken file."""

    def read(self, source: Source) -> Iterator[Item]:
        _ = self.parser  # raises if a library is missing
        left_out: Counter[str] = Counter()
        document, places = self._convert(read_whole(source), left_out)
        starts = list(places)
        for item in chunk_document(document, source, self, self.policy):
            for record in item.chunks if isinstance(item, Family) and places else ():
                self._locate(record, places, starts)
            yield item
        if counts := [f"{what} ({count:,})" for what, count in sorted(left_out.items()) if count]:
            yield Notice(codes.PARTS_LEFT_OUT, f"left out: {', '.join(counts)}", is_failure=False)

    def _convert(self, data: bytes, left_out: Counter[str]) -> tuple[Structure, Places]:
        try:
            with warnings.catch_warnings(action="ignore"):
                return self.convert(data, left_out) if data else build_document(())
        except SourceFailed:
            raise
        except Exception as error:
            reason = f"it cannot be read as {self.name.upper()}: {str(error) or type(error).__name__}"
            raise SourceFailed(codes.CHUNKING_FAILED, reason) from error

    def _locate(self, record: Record, places: Places, starts: Sequence[int]) -> None:
        start, end = record["span"]["char_range"].values()
        first, last = (places[starts[bisect_right(starts, at) - 1]] for at in (start, end - 1))
        if self.place_name == "page":
            record["span"]["pages"] = {"page_start": first, "page_end": last}
        else:
            record["locator"] = {self.place_name: first}
        record["hashes"]["chunk_object_hash"] = chunk_object_hash(record)


def build_document(parts: Iterable[Part]) -> tuple[Structure, Places]:
    """The document of these parts in order, and their places."""
    texts: list[str] = []
    blocks: list[Block] = []
    outline = Outline()
    places: Places = {}
    offset = 0
    for part in parts:
        lines = clean(part.text).split("\n")
        text = "\n".join(lines if part.kind.is_literal else map(collapse_line, lines))
        texts += [part.gap if texts else "", text]
        offset += len(texts[-2])
        if part.level:
            outline.open_section(part.level, shortened(one_line(text)))
        if next(reversed(places.values()), None) != part.place:
            places[offset] = part.place
        if text.strip():
            detail = shortened(lines[0]) if part.kind is Kind.TABLE else ""
            place = offset, offset + len(text), outline.section
            blocks.append(Block(part.kind, *place, detail=detail, is_heading=part.level > 0))
        offset += len(text)
    return Structure("".join(texts), tuple(blocks), tuple(outline.sections), (), {}), places


def parts_of_lines(lines: Iterable[str], levels: Mapping[int, int], place: int | str = 0) -> Iterator[Part]:
    """The lines as parts. A heading (a line whose number is in `levels`) is a part of its own, and so is each run of
    blank lines and each run of other lines."""
    runs = groupby(enumerate(lines), key=lambda line: line[0] if line[0] in levels else -1 - bool(line[1].strip()))
    for _, run in runs:
        numbers, words = zip(*run, strict=True)
        yield Part("\n".join(words), levels.get(numbers[0], 0), place=place, gap="\n")


def with_metadata(document: Structure, stated: Mapping[str, str]) -> Structure:
    """The document with the metadata that its file states, under Dublin Core names. A title such as `Untitled` does
    not count."""
    names = {"title": "title", "language": "language", "created": "date", "date": "date"}
    values = {names[name]: line for name, value in stated.items() if name in names and (line := one_line(value))}
    title = values.pop("title", "")
    title = printed[1] if (printed := _PRINTED.fullmatch(title)) else title
    if title and not _PLACEHOLDER.fullmatch(title):
        values["title"] = title
    found: dict[str, str | list[str]] = {**values}
    if authors := list(filter(None, map(one_line, stated.get("creator", "").split(";")))):
        found["authors"] = authors
    return replace(document, metadata={**document.metadata, **found})


def chunk_document(document: Structure, source: Source, format_: Format, policy: Policy = V1) -> Iterator[Item]:
    """The family of the source, then notices; `Empty` if it has no text. Raises SourceFailed."""
    passages = list(cut(document, policy))
    if passages:
        yield Family(_records(document, passages, source, format_, policy))
    else:
        if codes.SCAN_WITHOUT_TEXT not in document.notice_codes:
            yield Notice(codes.SOURCE_EMPTY, codes.MEANINGS[codes.SOURCE_EMPTY][0], is_failure=False)
        yield Empty(family_key(resolve_parent_id(None, source.uri, source.document_id), source.tenant))
    for code in sorted(document.notice_codes):
        yield Notice(code, codes.MEANINGS[code][0], is_failure=False)


def _records(
    document: Structure, passages: Sequence[Passage], source: Source, format_: Format, policy: Policy
) -> list[Record]:
    records = list(build_records(document, passages, source, format_, policy))
    if problems := find_problems(records, policy):
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise SourceFailed(codes.CHUNKING_FAILED, f"the chunks fail the chunking checklist: {problems[0]}{more}")
    return records
