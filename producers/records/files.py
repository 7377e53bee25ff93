"""Files of records: JSONL, a JSON array, also within a JSON value, or a folder of JSON files, each of them a record or
such an array. Read in order once, then again by place.

A byte order mark at the beginning, \\r\\n and empty lines are taken as they are meant. A line over the limit is never
held in memory.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat, takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.diagnose import diagnose_json, proves_unique_keys
from chunksink.chunkbus.examine import MAX_LINE_BYTES
from chunksink.chunkbus.reader import read_lines
from chunksink.producers.errors import MEANINGS, SOURCE_UNREADABLE, RecordRefused, SourceFailed
from chunksink.producers.find import find_sources
from chunksink.producers.produced import LeftOut
from chunksink.producers.records.array import begins, elements
from chunksink.producers.records.nested import LARGEST, IsRecord, find_list
from chunksink.producers.sources import Failure, open_source
from chunksink.producers.tables import open_tables

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HEAD_BYTES = 2**16
_BLOCK = 2**12
_LONG_NUMBER = re.compile(rb"[0-9]{16}")
_LARGEST_EXACT_INTEGER = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands: its line, or the number and name of its file in the folder; and its number in an array,
    from 1."""

    line: int
    offset: int
    length: int
    name: str = ""
    element: int = 0

    def __str__(self) -> str:
        where = self.name or f"line {self.line}"
        return f"{where}, element {self.element}" if self.element else where


class RecordFile:
    """Records at a path. `with RecordFile(path) as file:`. Raises SourceFailed where nothing can be read.

    With `is_record` they are also found in a list within the one value that a file holds.
    """

    def __init__(self, path: Path, limit: int = MAX_LINE_BYTES, *, is_record: IsRecord | None = None) -> None:
        self.limit = limit
        self._is_record = is_record
        self.failures: list[Failure] = []
        """Files of a folder that could not be read to their end, or "" for the one file; known when `records` has
        ended."""
        self._path = path
        self._file: BinaryIO | None = None

    def __enter__(self) -> "RecordFile":
        if not self._path.is_dir():
            self._file = _open(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def records(self) -> Iterator[tuple[Place, bytes]]:
        """Every record in order; one over the limit comes cut to a byte more than it."""
        if self._file is None:
            yield from self._files()
            return
        if (array := self._array(self._file, self._path.name)) is not None:
            try:
                yield from self._elements(*array)
            except SourceFailed as failure:
                self.failures.append(Failure("", failure.code, failure.reason))
            return
        if self._path.suffix.lower() == ".json" and not _begins_with_a_record(self._file, self.limit):
            whole = Place(1, 0, self.limit + 1)
            yield whole, self.read(whole)
            return
        self._file.seek(0)
        for line, (place, data) in enumerate(read_lines(self._file, self.limit), start=1):
            if data.strip():
                yield Place(line, place.offset, place.length), _trim(data)

    def _array(self, file: BinaryIO, name: str) -> tuple[int, int | None] | None:
        """Where the array of records begins, if there is one, and where it ends, if that is not the file's end."""
        begin = _array_begins(file, self.limit)
        if begin is not None:
            return begin, None
        if self._is_record is None or not name.lower().endswith(".json"):
            return None
        if file.seek(0, os.SEEK_END) > LARGEST or _has_lines(file, self.limit):
            return None
        file.seek(0)
        data = file.read()
        trimmed = data.removeprefix(_BYTE_ORDER_MARK)
        try:
            found = find_list(trimmed, orjson.loads(trimmed), self._is_record)
        except orjson.JSONDecodeError:
            return None
        mark = len(data) - len(trimmed)
        return None if found is None else (mark + found.start, mark + found.end)

    def _elements(self, begin: int, stop: int | None) -> Iterator[tuple[Place, bytes]]:
        assert self._file is not None
        line = 1 + _line_breaks(self._file, 0, begin)
        number = 0
        for start, end in _until(stop, elements(self._file, begin)):
            at = _after_space(self._file, start, end)
            line += _line_breaks(self._file, start, at)
            if at < end:
                number += 1
                place = Place(line, at, min(end - at, self.limit + 1), element=number)
                yield place, self.read(place)
            line += _line_breaks(self._file, at, end)

    def _files(self) -> Iterator[tuple[Place, bytes]]:
        with closing(open_tables()) as tables:
            found = find_sources([self._path], tables, suffixes=(".json",), root=lambda path: path)
            self.failures = list(found.failures)
            for number, source in enumerate(found.files, start=1):
                try:
                    yield from self._in_folder(number, source.uri)
                except SourceFailed as failure:
                    self.failures.append(Failure(source.uri, failure.code, failure.reason))

    def _in_folder(self, number: int, name: str) -> Iterator[tuple[Place, bytes]]:
        """The record that a file of the folder is, or those of its array."""
        with _open(self._path / name) as file:
            array = self._array(file, name)
            whole = iter([(0, file.seek(0, os.SEEK_END))])
            element = 0
            for start, end in whole if array is None else _until(array[1], elements(file, array[0])):
                at = _after_space(file, start, end)
                if at < end or array is None:
                    element += array is not None
                    place = Place(number, at, min(end - at, self.limit + 1), name, element)
                    file.seek(at)
                    yield place, _trim(file.read(place.length))

    def unread(self, uri: str) -> Iterator[LeftOut]:
        """What is said of those files."""
        for failure in self.failures:
            name = f"{uri.rstrip('/')}/{failure.source_uri}" if failure.source_uri else uri
            yield LeftOut(name, None, failure.code, failure.reason)

    def parse(self, data: bytes) -> Record:
        """Raises RecordRefused."""
        return parse_record(data, self.limit)

    def read(self, place: Place) -> bytes:
        """What stands at a place that `records` gave."""
        if self._file is not None:
            self._file.seek(place.offset)
            return _trim(self._file.read(place.length))
        with _open(self._path / place.name) as file:
            file.seek(place.offset)
            return _trim(file.read(place.length))


def _open(path: Path) -> BinaryIO:
    try:
        return open_source(path)
    except OSError as error:
        raise SourceFailed(SOURCE_UNREADABLE, f"{path.name}: {error.strerror or error}") from error


def _array_begins(file: BinaryIO, limit: int) -> int | None:
    """Where, if the file is one array; it is none if its first line is a value of its own and others follow."""
    file.seek(0)
    begin = begins(file.read(_HEAD_BYTES))
    if begin is None:
        return None
    return None if _has_lines(file, limit, begin) else begin


def _has_lines(file: BinaryIO, limit: int, begin: int = 0) -> bool:
    """Whether the first line from there is a value of its own and others follow."""
    file.seek(begin)
    try:
        orjson.loads(_trim(file.readline(limit + 1)))
    except orjson.JSONDecodeError:
        return False
    return any(map(bytes.strip, iter(partial(file.read, limit), b"")))


def _until(stop: int | None, elements: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    return elements if stop is None else takewhile(lambda element: element[0] < stop, elements)


def _after_space(file: BinaryIO, start: int, end: int) -> int:
    """Where the first word between the two begins."""
    file.seek(start)
    while start < end and (block := file.read(min(_BLOCK, end - start))):
        if word := block.lstrip():
            return start + len(block) - len(word)
        start += len(block)
    return start


def _line_breaks(file: BinaryIO, start: int, end: int) -> int:
    file.seek(start)
    lengths = chain(repeat(_BLOCK, (end - start) // _BLOCK), [(end - start) % _BLOCK])
    return sum(file.read(length).count(b"\n") for length in lengths)


def _begins_with_a_record(file: BinaryIO, limit: int) -> bool:
    """Its first line or, where that is broken, the next. False for one record that was written over many lines, as
    people do it in a `.json` file."""
    file.seek(0)
    lines = filter(None, map(_trim, iter(partial(file.readline, limit + 1), b"")))
    return any(map(_is_record, islice(lines, 2)))


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _trim(data: bytes) -> bytes:
    return data.removeprefix(_BYTE_ORDER_MARK).strip()


def left_out(uri: str, place: Place, code: str, reason: str, is_failure: bool = True) -> LeftOut:
    """What is said of a record that stands there: its line, or its file in the folder."""
    if place.name:
        return LeftOut(f"{uri.rstrip('/')}/{place.name}", None, code, reason, is_failure)
    return LeftOut(uri, place.line, code, reason, is_failure)


def odd(uri: str, place: Place, codes: Iterable[str]) -> Iterator[LeftOut]:
    """What is said of a record that is read whole, but otherwise than may be meant."""
    return (left_out(uri, place, code, MEANINGS[code][0], is_failure=False) for code in codes)


def parse_record(data: bytes, limit: int = MAX_LINE_BYTES) -> Record:
    """The JSON object on a line, by the contract's strict rules. Raises RecordRefused.

    Whole numbers beyond 2^53 - 1, which no two languages read alike, become strings of their digits.
    """
    if len(data) > limit:
        raise RecordRefused(findings.LINE_TOO_LONG, f"is longer than {limit // 2**20} MiB")
    try:
        record: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        record = None
    if not isinstance(record, dict) or not proves_unique_keys(data, record):
        problem = diagnose_json(data)
        if problem is not None:
            raise RecordRefused(problem.code, problem.detail)
        _refuse_deep(record)
    if _LONG_NUMBER.search(data):
        record = json.loads(data, parse_int=_exact)
    fields: Record = record
    return fields


def _refuse_deep(record: Any) -> None:
    """What can be read and not be written again."""
    try:
        orjson.dumps(record)
    except orjson.JSONEncodeError as error:
        raise RecordRefused(findings.JSON_PARSE, "is nested too deeply") from error


def _exact(digits: str) -> int | str:
    """The number, where every language has it."""
    if len(digits) > 17:
        return digits
    number = int(digits)
    return number if abs(number) <= _LARGEST_EXACT_INTEGER else digits
