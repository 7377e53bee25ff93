"""What formats share whose files a library reads: documents made of parts, notices, archives and failures."""

import re
import warnings
import zipfile
from abc import abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from chunksink.chunkbus.canonical import chunk_object_hash
from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.markdown.document import Block, Document, Kind
from chunksink.ingest.formats.markdown.normalise import carried, clean, collapse_line, one_line
from chunksink.ingest.formats.markdown.policy import CANONICALIZER_NAME, DEFAULT_POLICY
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Family, Item, Notice, Source

_MAX_FILE_BYTES = 512 * 2**20
_MAX_MEMBERS = 20_000
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0"
_SHEETS = "xl/worksheets/"  # are read as streams
_CORE_PROPERTIES = "docProps/core.xml"
_ALTERNATIVES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"

Places = dict[int, int | str]  # numbers of pages or slides, or names of sheets, by the offsets where they begin


class Part(NamedTuple):
    """A paragraph, a table in Markdown, or a heading of a level from 1; and the white space before it."""

    text: str
    level: int = 0
    is_table: bool = False
    place: int | str = 0
    gap: str = "\n\n"


class ConvertedFormat(Format):
    """A file that is one document. Its library is imported when a file is read."""

    canonicalizer = (CANONICALIZER_NAME, DEFAULT_POLICY.policy_id)
    mime_type: ClassVar[str]
    libraries: ClassVar[tuple[str, ...]] = ()
    """Distributions that decide on the text; the first is the parser."""
    extra: ClassVar[str] = ""
    place_name: ClassVar[str] = ""
    rules: ClassVar[str] = "1"
    """Raise it with every change to the format's own code that chunks show."""

    @property
    def parser(self) -> tuple[str, str]:
        try:
            versions = [f"{name}-{version(name)}" for name in self.libraries]
        except PackageNotFoundError as error:
            reason = f"{self.name.upper()} needs {error.name}: pip install 'chunksink[{self.extra}]'"
            raise SourceFailed(codes.CONVERTER_MISSING, reason) from error
        return (self.libraries[0] if self.libraries else self.name, "+".join((*versions, f"{self.name}-{self.rules}")))

    @abstractmethod
    def convert(self, data: bytes, left_out: Counter[str]) -> tuple[Document, Places]:
        """The document of a file that is not empty; counts what has no text. An exception means a broken file."""

    def read(self, source: Source) -> Iterator[Item]:
        from chunksink.ingest.formats.markdown.chunker import chunk_document
        from chunksink.ingest.formats.markdown.records import Form

        form = Form(self.parser, self.source_type, self.mime_type)
        left_out: Counter[str] = Counter()
        with source.path.open("rb") as file:
            document, places = self._convert(file.read(source.size), left_out)
        is_scan = codes.SCAN_WITHOUT_TEXT in document.odd
        for item in chunk_document(document, source, form):
            for record in item.chunks if isinstance(item, Family) and places else ():
                self._locate(record, places)
            if not (is_scan and isinstance(item, Notice) and item.code == codes.SOURCE_EMPTY):
                yield item
        if counts := [f"{what} ({count:,})" for what, count in sorted(left_out.items()) if count]:
            yield Notice(codes.PARTS_LEFT_OUT, f"left out: {', '.join(counts)}", is_failure=False)

    def _convert(self, data: bytes, left_out: Counter[str]) -> tuple[Document, Places]:
        if len(data) > _MAX_FILE_BYTES:
            raise SourceFailed(codes.CHUNKING_FAILED, f"it is larger than {_MAX_FILE_BYTES >> 20} MiB; split it")
        try:
            with warnings.catch_warnings(action="ignore"):
                return self.convert(data, left_out) if data else build_document(())
        except SourceFailed:
            raise
        except Exception as error:
            reason = f"it cannot be read as {self.name.upper()}: {str(error) or type(error).__name__}"
            raise SourceFailed(codes.CHUNKING_FAILED, reason) from error

    def _locate(self, record: Record, places: Places) -> None:
        starts = list(places)
        start, end = record["span"]["char_range"].values()
        first, last = (places[starts[bisect_right(starts, at) - 1]] for at in (start, end - 1))
        if self.place_name == "page":
            record["span"]["pages"] = {"page_start": first, "page_end": last}
        else:
            record["locator"] = {self.place_name: first}
        record["hashes"]["chunk_object_hash"] = chunk_object_hash(record)


def build_document(parts: Iterable[Part]) -> tuple[Document, Places]:
    """The document of these parts in order, and their places."""
    texts: list[str] = []
    blocks: list[Block] = []
    sections: list[tuple[str, ...]] = [()]
    stack: list[tuple[int, str]] = []
    places: Places = {}
    offset = 0
    for part in parts:
        lines = clean(part.text).split("\n")
        text = "\n".join(lines if part.is_table else map(collapse_line, lines))
        texts += [part.gap if texts else "", text]
        offset += len(texts[-2])
        if part.level:
            stack = [above for above in stack if above[0] < part.level] + [(part.level, carried(one_line(text)))]
            sections.append(tuple(title for _, title in stack))
        if next(reversed(places.values()), None) != part.place:
            places[offset] = part.place
        if text.strip():
            kind, detail = (Kind.TABLE, carried(lines[0])) if part.is_table else (Kind.PROSE, "")
            place = offset, offset + len(text), len(sections) - 1
            blocks.append(Block(kind, *place, detail=detail, is_heading=part.level > 0))
        offset += len(text)
    return Document("".join(texts), tuple(blocks), tuple(sections), (), {}), places


def parts_of_lines(lines: Iterable[str], levels: Mapping[int, int], place: int | str = 0) -> Iterator[Part]:
    """The runs of blank and of other lines; a line whose number has a level is a heading."""
    runs = groupby(enumerate(lines), key=lambda line: line[0] if line[0] in levels else -1 - bool(line[1].strip()))
    for _, run in runs:
        numbers, words = zip(*run, strict=True)
        yield Part("\n".join(words), levels.get(numbers[0], 0), place=place, gap="\n")


def with_metadata(document: Document, stated: Mapping[str, str]) -> Document:
    """The document with what its file states of itself, by the names of Dublin Core."""
    names = {"title": "title", "language": "language", "created": "date", "date": "date"}
    found = {names[name]: one_line(value) for name, value in stated.items() if name in names and value.strip()}
    authors = tuple(filter(None, map(one_line, stated.get("creator", "").split(";"))))
    return replace(document, metadata=document.metadata | found, lists={"authors": authors} if authors else {})


def markdown_table(rows: Iterable[Iterable[str]]) -> str:
    """The first row is the header; shorter rows are filled up."""
    cells = [[one_line(cell).replace("|", "\\|") for cell in row] for row in rows]
    width = max(map(len, cells), default=0)
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in cells]
    return "\n".join([*lines[:1], f"| {' | '.join(['---'] * width)} |", *lines[1:]])


def open_archive(data: bytes, *, most: int = 512 * 2**20, largest: int = 64 * 2**20) -> zipfile.ZipFile:
    """The archive, if it unpacks to at most `most` bytes, and a part of text, but for sheets, to `largest`."""
    if data.startswith(_COMPOUND_FILE):
        reason = "it is encrypted with a password, or in the format before 2007; save it again without"
        raise SourceFailed(codes.CHUNKING_FAILED, reason)
    archive = zipfile.ZipFile(BytesIO(data))
    members = archive.infolist()
    texts = (each for each in members if each.filename.endswith("ml") and not each.filename.startswith(_SHEETS))
    is_large = len(members) > _MAX_MEMBERS or sum(each.file_size for each in members) > most
    if is_large or any(each.file_size > largest for each in texts):
        raise SourceFailed(codes.CHUNKING_FAILED, f"it unpacks to more than {most >> 20} MiB, or a part is too large")
    return archive


def parse_xml(data: bytes) -> Any:
    """The root element, without entities and comments. Of alternatives the last that has text is kept."""
    from lxml import etree

    root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True))
    for alternatives in list(root.iter(_ALTERNATIVES)):
        with_text = [each for each in alternatives if next(each.iter("{*}t"), None) is not None]
        alternatives[:] = (with_text or list(alternatives))[-1:]
    return root


def with_core_properties(document: Document, archive: zipfile.ZipFile) -> Document:
    found = parse_xml(archive.read(_CORE_PROPERTIES)) if _CORE_PROPERTIES in archive.namelist() else ()
    return with_metadata(document, {each.tag.rpartition("}")[2]: each.text or "" for each in found})


def count_parts(archive: zipfile.ZipFile, pattern: str, left_out: Counter[str]) -> None:
    """Counts the parts with such a name that have words in them, by the pattern's group."""
    found = ((match[1], name) for name in set(archive.namelist()) if (match := re.fullmatch(pattern, name)))
    texts = ((what, re.sub(rb"<[^>]*>", b"", archive.read(name)).decode("utf-8", "replace")) for what, name in found)
    left_out.update(what for what, text in texts if re.search(r"[^\W\d_]", text))
