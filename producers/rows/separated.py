"""Files of separated values (CSV, TSV) as rows: each record with the names of the header, in lower case.

The sign that separates is the one that the header has most. Cells that are empty say nothing. A record may go over
several lines, in quotes; it is known by the first. Where a quote is wrong, nothing of the file is read.
"""

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from io import BufferedReader, StringIO
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Literal

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import CHUNKING_FAILED, SOURCE_UNREADABLE, RecordRefused, SourceFailed
from chunksink.producers.markdown.normalise import decode
from chunksink.producers.produced import LeftOut
from chunksink.producers.records.files import Place
from chunksink.producers.rows.names import column
from chunksink.producers.sources import open_source

SUFFIXES = (".csv", ".tsv")
_SEPARATORS = ",\t;|"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_HEADER_BYTES = 2**18
_SAYS_SEPARATOR = re.compile(rf"sep=([{_SEPARATORS}:])\s*")  # as Excel writes it


def is_separated(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def header_of(path: Path) -> list[str]:
    """The names that its records have; none where it is empty."""
    with SeparatedFile(path, _MAX_HEADER_BYTES) as file:
        return file.names


class SeparatedFile:
    """Read as a `RecordFile` is: in order once, then again by place. Raises SourceFailed where it cannot be."""

    def __init__(self, path: Path, limit: int, texts: Collection[str] = ()) -> None:
        """`texts` are names of what is there even where its cell is empty."""
        self.limit = limit
        self._texts = frozenset(name.lower() for name in texts)
        self._path = path
        self._file: BufferedReader | None = None
        self._at = self._begin = 0
        self._lines_before = 0
        self._quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
        self._separator = _SEPARATORS[0]
        self.names: list[str] = []
        csv.field_size_limit(max(csv.field_size_limit(), limit))  # of the whole process: it is 128 KiB else

    def __enter__(self) -> "SeparatedFile":
        try:
            self._file = open_source(self._path)
        except OSError as error:
            raise SourceFailed(SOURCE_UNREADABLE, error.strerror or str(error)) from error
        self._begin = len(_BYTE_ORDER_MARK) if self._file.peek(3)[:3] == _BYTE_ORDER_MARK else 0
        try:
            self._read_header()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def records(self) -> Iterator[tuple[Place, bytes]]:
        """Every record in order, as it is written."""
        if self._separator == "\t" and not self._is_quoted():
            self._quoting = csv.QUOTE_NONE
        rows = self._rows(self._begin)
        next(rows, None)
        for place, _ in rows:
            yield place, self.read(place)

    def read(self, place: Place) -> bytes:
        assert self._file is not None
        before = self._file.tell()
        self._file.seek(place.offset)
        data = self._file.read(place.length)
        self._file.seek(before)
        return data

    def parse(self, data: bytes) -> Record:
        """Raises RecordRefused."""
        if len(data) > self.limit:
            raise RecordRefused(findings.LINE_TOO_LONG, f"is longer than {self.limit // 2**20} MiB")
        try:
            lines = StringIO(decode(data), newline="")
        except SourceFailed as failure:
            raise RecordRefused(findings.ENCODING, failure.reason) from failure
        cells = next(csv.reader(lines, delimiter=self._separator, quoting=self._quoting), [])
        if any(cells[len(self.names) :]):
            reason = (
                f"has {len(cells)} cells, and the header names {len(self.names)}: quote a cell that holds a separator"
            )
            raise RecordRefused(findings.WRONG_TYPE, reason)
        told = zip_longest(self.names, cells[: len(self.names)], fillvalue="")
        return {name: cell for name, cell in told if cell or name in self._texts}

    def unread(self, uri: str) -> Iterator[LeftOut]:
        """Nothing: what cannot be read ends the reading."""
        return iter(())

    def _read_header(self) -> None:
        assert self._file is not None
        self._file.seek(self._begin)
        line = decode(self._file.readline(_MAX_HEADER_BYTES))
        if said := _SAYS_SEPARATOR.fullmatch(line):
            self._separator, self._begin, self._lines_before = said[1], self._file.tell(), 1
        else:
            self._separator = max(_SEPARATORS, key=line.count)
        _, names = next(self._rows(self._begin), (None, []))
        for number, name in enumerate(map(column, names), start=1):
            self.names.append(name if name and name not in self.names else self._free(number))

    def _free(self, number: int) -> str:
        while (name := f"column_{number}") in self.names:
            number += 1
        return name

    def _is_quoted(self) -> bool:
        """Whether quotes mean something: most files with tabs have them for what they are."""
        try:
            return all(True for _ in self._rows(self._begin))
        except SourceFailed:
            return False

    def _rows(self, begin: int) -> Iterator[tuple[Place, Sequence[str]]]:
        """Behind a quote that is wrong nobody knows where records begin: then none of it is read."""
        reader = csv.reader(self._lines(begin), delimiter=self._separator, quoting=self._quoting, strict=True)
        start, line = begin, 1 + self._lines_before
        try:
            for cells in reader:
                if cells:
                    yield Place(line, start, self._at - start), cells
                start, line = self._at, reader.line_num + 1 + self._lines_before
        except csv.Error as error:
            is_old = "new-line character" in str(error)
            remedy = "tr '\\r' '\\n' < OLD > NEW ends its lines" if is_old else "write a quote within quotes twice"
            reason = f"line {line}: {str(error).partition(' - ')[0]}; {remedy}"
            raise SourceFailed(CHUNKING_FAILED, reason) from error

    def _lines(self, begin: int) -> Iterator[str]:
        assert self._file is not None
        self._file.seek(begin)
        self._at = begin
        while line := self._file.readline(self.limit + 1):
            if len(line) > self.limit:
                raise SourceFailed(CHUNKING_FAILED, f"has a line of more than {self.limit // 2**20} MiB")
            self._at += len(line)
            yield line.decode("utf-8", "replace")
