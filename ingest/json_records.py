"""Reads the JSON records of a file one at a time, in constant memory."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.diagnosis import diagnose_json, proves_unique_keys
from chunksink.chunkbus.reader import read_lines
from chunksink.chunkbus.record_checks import MAX_LINE_BYTES
from chunksink.ingest.errors import RecordRefused, SourceFailed
from chunksink.ingest.model import Notice

MAX_VALUE_BYTES = 64 * 2**20
"""The largest file that is one JSON object; such a file is read into memory as a whole."""
_BLOCK_CHARACTERS = 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ARRAY = re.compile(rb"\[\s*([{\]]|$)")
_NO_SEPARATOR = re.compile(r"[^ \t\r\n,]")
_DECODER = json.JSONDecoder(strict=False)
_LONG_NUMBER = re.compile(rb"[0-9]{16}")
_LARGEST_EXACT_INTEGER = 2**53 - 1
_DEEPEST_LIST = 3
_FIRST_RECORDS = 200

IsRecord = Callable[[Record], bool]


@dataclass(frozen=True, slots=True)
class NumberedRecord:
    """A record with its line, or with its number in an array, counted from 1.

    `data` is its JSON: the bytes in the file, or a new encoding if it was in a list inside an object. Empty for CSV.
    """

    line: int
    record: Record
    data: bytes = b""


def read_records(path: Path, is_record: IsRecord, limit: int = MAX_LINE_BYTES) -> Iterator[NumberedRecord | Notice]:
    """Every record in order, and a failure for each unreadable one. Raises SourceFailed if the file is a single value
    that is broken or not an object.

    `is_record` recognises records, to distinguish a file that is one record from an object with a list of records.
    """
    with path.open("rb") as file:
        layout = _layout(file, is_json_file=path.suffix.lower() == ".json")
        if layout == "value":
            yield from _value(file, is_record, limit)
        else:
            yield from (_array if layout == "array" else _lines)(file, limit)


def first_records(path: Path) -> Iterator[Record]:
    """The first objects in the lines or the array of a file, or the one object in it, to recognise the format."""
    with suppress(SourceFailed):
        for entry in islice(read_records(path, lambda _: False, MAX_VALUE_BYTES), _FIRST_RECORDS):
            if isinstance(entry, NumberedRecord):
                yield entry.record


def has_no_records(path: Path) -> bool:
    """Whether a file has no records at all, not even broken ones."""
    with suppress(OSError, SourceFailed):
        return next(read_records(path, lambda _: False, MAX_VALUE_BYTES), None) is None
    return False


def first_problem(path: Path) -> Notice | None:
    """The first problem of a file whose first records are all unreadable. None if one of them can be read, or if the
    file cannot be opened."""
    problems: list[Notice] = []
    try:
        for entry in islice(read_records(path, lambda _: False, MAX_VALUE_BYTES), _FIRST_RECORDS):
            if isinstance(entry, NumberedRecord):
                return None
            problems.append(entry)
    except OSError:
        return None
    except SourceFailed as error:
        return Notice(error.code, error.reason)
    return next(iter(problems), None)


def find_records(value: Any, is_record: IsRecord) -> list[Any] | None:
    """The records within an object that is not a record itself, if exactly one list contains records."""
    if not isinstance(value, dict) or is_record(value):
        return None
    lists = [found for found in _lists(value, 1) if any(isinstance(one, dict) and is_record(one) for one in found)]
    return lists[0] if len(lists) == 1 else None


def parse_record(data: bytes, limit: int = MAX_LINE_BYTES) -> Record:
    """The JSON object in these bytes, by the contract's strict rules. Raises RecordRefused.

    Integers beyond 2^53 - 1, which not every language reads exactly, become strings.
    """
    if len(data) > limit:
        raise RecordRefused(findings.LINE_TOO_LONG, f"is longer than {limit / 2**20:g} MiB")
    record: Any = None
    with suppress(orjson.JSONDecodeError):
        record = orjson.loads(data)
    if not isinstance(record, dict) or not proves_unique_keys(data, record):
        if (problem := diagnose_json(data)) is not None:
            raise RecordRefused(problem.code, problem.detail)
        try:
            orjson.dumps(record)
        except orjson.JSONEncodeError as error:
            raise RecordRefused(findings.JSON_PARSE, "is nested too deeply") from error
    fields: Record = json.loads(data, parse_int=_exact) if _LONG_NUMBER.search(data) else record
    return fields


def _layout(file: BinaryIO, is_json_file: bool) -> Literal["lines", "array", "value"]:
    """The layout of the records, from the first two lines that are not blank.

    If the first line is not a whole value, it is a bad record in JSONL, but in a `.json` file it begins one value.
    """
    lines = filter(None, map(_trimmed, iter(partial(file.readline, MAX_VALUE_BYTES + 1), b"")))
    first, second = next(lines, b""), next(lines, b"")
    file.seek(0)
    if _ARRAY.match(first[:1000] + second[:1000]):
        return "array"
    spans_lines = is_json_file and not first.endswith(b"}") and not second.startswith(b"{")
    return "value" if first and (spans_lines or not second) else "lines"


def _lines(file: BinaryIO, limit: int) -> Iterator[NumberedRecord | Notice]:
    for number, (_, data) in enumerate(read_lines(file, limit), start=1):
        if line := _trimmed(data):
            yield _parsed(line, number, limit)


def _array(file: BinaryIO, limit: int) -> Iterator[NumberedRecord | Notice]:
    """The elements of the array, up to a broken one whose end is unknown."""
    text = TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
    block = text.read(_BLOCK_CHARACTERS)
    position, number = block.find("[") + 1, 1
    while True:
        begin = _NO_SEPARATOR.search(block, position)
        position = begin.start() if begin else len(block)
        if block.startswith("]", position):
            break
        end = _end_of_value(block, position)
        if end is not None:
            yield _parsed(block[position:end].encode(errors="surrogateescape"), number, limit)
            position, number = end, number + 1
        elif len(block) < MAX_VALUE_BYTES and (more := text.read(max(_BLOCK_CHARACTERS, len(block)))):
            block, position = block[position:] + more, 0
        else:
            yield Notice(findings.JSON_PARSE, "the array is broken or cut off here; nothing after it was read", number)
            return
    if (block[position + 1 :] + text.read(_BLOCK_CHARACTERS)).strip():
        yield Notice(findings.JSON_PARSE, "there is text after the end of the array", number)


def _end_of_value(block: str, position: int) -> int | None:
    """Where the value ends; None if it is broken, or may continue after the block."""
    try:
        _, end = _DECODER.raw_decode(block, position)
    except (ValueError, RecursionError):
        return None
    return end if end < len(block) or block.endswith("}") else None


def _value(file: BinaryIO, is_record: IsRecord, limit: int) -> Iterator[NumberedRecord | Notice]:
    data = _trimmed(file.read(MAX_VALUE_BYTES + 1))
    try:
        value = parse_record(data, MAX_VALUE_BYTES)
    except RecordRefused as refusal:
        raise SourceFailed(refusal.code, refusal.reason) from refusal
    found = find_records(value, is_record)
    for number, record in enumerate([data] if found is None else map(orjson.dumps, found), start=1):
        yield _parsed(record, number, limit)


def _lists(value: Record, depth: int) -> Iterator[list[Any]]:
    for inner in value.values():
        if isinstance(inner, list):
            yield inner
        elif isinstance(inner, dict) and depth < _DEEPEST_LIST:
            yield from _lists(inner, depth + 1)


def _parsed(data: bytes, line: int, limit: int) -> NumberedRecord | Notice:
    try:
        return NumberedRecord(line, parse_record(data, limit), data)
    except RecordRefused as refusal:
        return Notice(refusal.code, refusal.reason, line)


def _trimmed(data: bytes) -> bytes:
    return data.removeprefix(_BYTE_ORDER_MARK).strip()


def _exact(digits: str) -> int | str:
    if len(digits) > 17:
        return digits
    number = int(digits)
    return number if abs(number) <= _LARGEST_EXACT_INTEGER else digits
