"""What a file of records holds, told by what stands in it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.producers.bridges.detect import Form
from chunksink.producers.bridges.detect import form_of as chunk_form
from chunksink.producers.bridges.framework import is_like_document
from chunksink.producers.errors import SOURCE_UNREADABLE, SourceFailed
from chunksink.producers.kinds import ROWS
from chunksink.producers.recorder.log import EVENT_KINDS
from chunksink.producers.records.array import begins, elements
from chunksink.producers.records.nested import FIRST, LARGEST, Way, find_list, lists_within, value_at
from chunksink.producers.rows.names import may_be_rows
from chunksink.producers.rows.row import is_row, says_text
from chunksink.producers.rows.separated import header_of, is_separated
from chunksink.producers.sources import open_source

_HEAD_BYTES = 2**18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_VERSIONS: Mapping[str, str] = {"chunks.": "chunks", "ft.recorder.event.": "recorder"}
_IN_LINES = "recorder"
"""Its reader takes no arrays."""
_NO_JSON = object()


@dataclass(frozen=True, slots=True)
class Look:
    """What is seen at the head of a file: the name of a kind, None where no record there is of a form that is known.

    `is_value`: the whole file is one JSON value, as a record is that has a file of its own. `within`: the names under
    which that value has records that are not read, since nobody knows what is meant.
    """

    kind: str | None = None
    is_value: bool = False
    is_empty: bool = False
    within: tuple[Way, ...] = ()


def look_at(path: Path) -> Look:
    """A file is one value, however it is broken into lines, or has a value on each line; an array has many records.

    A file of separated values is rows where its header names what they have. Raises SourceFailed.
    """
    if is_separated(path.name):
        columns = header_of(path)
        return Look(ROWS if may_be_rows(columns) else None, is_empty=not columns)
    try:
        text, is_all = _head(path)
    except OSError as error:
        raise SourceFailed(SOURCE_UNREADABLE, error.strerror or str(error)) from error
    if not text:
        return Look(is_empty=is_all)
    value = _parse(text) if is_all else _NO_JSON
    if value is not _NO_JSON and not isinstance(value, list):
        kind = form_of(value, is_alone=path.suffix.lower() == ".json")
        return Look(kind, is_value=True) if kind else _look_within(text, value, path)
    records = value if isinstance(value, list) else map(_parse, _records(text))
    kind = _kind_of(records)
    if begins(text) is not None and kind == _IN_LINES:
        kind = None
    return Look(kind, is_value=value is not _NO_JSON and kind is None)


def _kind_of(records: Iterable[Any]) -> str | None:
    """The first that says what it is. Rows say the least: a chunk that lacks a field looks like one, too."""
    forms = map(form_of, records)
    found = next(filter(None, forms), None)
    if found != ROWS:
        return found
    return next((kind for kind in islice(forms, FIRST) if kind not in (None, ROWS)), ROWS)


def _look_within(text: bytes, value: Any, path: Path) -> Look:
    """As answers of interfaces have it: `{"data": [...]}`."""
    held = find_list(text, value, _is_record) if path.suffix.lower() == ".json" else None
    kind = None if held is None else _kind_of(value_at(value, held.way))
    if kind not in (None, _IN_LINES):
        return Look(kind)
    return Look(is_value=True, within=tuple(lists_within(value, _is_record)))


def _is_record(record: Record, *, is_alone: bool) -> bool:
    return form_of(record, is_alone=is_alone) is not None or (is_alone and says_text(record))


def _records(text: bytes) -> Iterator[bytes]:
    """The elements of an array, or lines: of an array, too, if its first line is a value of its own."""
    yield from _elements(text)
    yield from text.split(b"\n")


def _first_records(text: bytes) -> Iterator[bytes]:
    yield text.partition(b"\n")[0]
    yield from islice(_elements(text), 1)


def _elements(text: bytes) -> Iterator[bytes]:
    if begins(text) is not None:
        with suppress(SourceFailed):  # it may end further down
            yield from (text[start:end] for start, end in elements(BytesIO(text), 0))


def _head(path: Path) -> tuple[bytes, bool]:
    """So much of the file that its first record is in it, and whether that is all of it."""
    with open_source(path) as file:
        data = file.read(_HEAD_BYTES)
        if not any(isinstance(_parse(record), dict) for record in _first_records(_trim(data))):
            data += file.read(LARGEST - len(data))
        return _trim(data), not file.read(1)


def _trim(data: bytes) -> bytes:
    return data.removeprefix(_BYTE_ORDER_MARK).strip()


def _parse(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _NO_JSON


def form_of(value: Any, *, is_alone: bool = False) -> str | None:
    """A kind of `producers.kinds`. What the record says of its form counts, then what no other form has."""
    if not isinstance(value, dict):
        return None
    version = value.get("schema_version")
    for beginning, kind in _VERSIONS.items():
        if isinstance(version, str) and version.startswith(beginning):
            return kind
    content = value.get("content")
    if isinstance(content, dict) and "content_text" in content:
        return "ir"
    if _is_document(value, "blocks"):
        return "parsed"
    form = chunk_form(value)
    if form not in (None, Form.FRAMEWORK):
        return "chunks"
    if "event_type" not in value and "pane_id" not in value and _is_document(value, "text", "tables", "images"):
        return "parsed"
    if _is_event(value):
        return "recorder"
    if form is not None and not (is_like_document(value) and is_row(value)):
        return "chunks"
    return ROWS if is_row(value, is_alone=is_alone) else None


def _is_event(record: Record) -> bool:
    """Other logs and other JSON have fields of these names too: what they say counts, or the pane beside them."""
    said = [record[field] for field in ("event_type", "direction") if isinstance(record.get(field), str)]
    return bool(said) and ("pane_id" in record or any(name in EVENT_KINDS for name in said))


def _is_document(record: Record, *fields: str) -> bool:
    source = record.get("source")
    says_who = isinstance(source, dict) and isinstance(source.get("path"), str)
    return says_who and any(record.get(field) is not None for field in fields)
