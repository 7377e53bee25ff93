"""Which kind of records a file holds, told by the first of them."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from chunkbus.chunk import Record
from producers.bridges.detect import detect
from producers.errors import RecordRefused, SourceFailed
from producers.sources import open_source

_HEAD_BYTES = 2**18
_MOST_BYTES = 64 * 2**20
_EVENT_FIELDS = ("event_type", "direction")


def kind_of_records(path: Path) -> str | None:
    """`recorder`, `parsed`, `ir` or `chunks`; None where no record at its head is of a form that is known."""
    for record in _first_records(path):
        if (kind := _kind_of(record)) is not None:
            return kind
    return None


def _kind_of(record: Record) -> str | None:
    version = record.get("schema_version")
    if isinstance(version, str) and version.startswith("ft.recorder.event."):
        return "recorder"
    if "content_hash" in record and isinstance(record.get("content"), dict):
        return "ir"
    if isinstance(record.get("source"), dict) and ("blocks" in record or ("text" in record and "doc_id" in record)):
        return "parsed"
    try:
        detect(record)
    except RecordRefused:
        return "recorder" if any(isinstance(record.get(field), str) for field in _EVENT_FIELDS) else None
    return "chunks"


def _first_records(path: Path) -> Iterator[Record]:
    """What can be read of the first lines, else the whole file where that is one value over many lines."""
    try:
        with open_source(path) as file:
            head = file.read(_HEAD_BYTES)
            whole = head.count(b"\n") == 0 or head.lstrip()[:2] in (b"{\n", b"{\r")
            if whole and len(head) == _HEAD_BYTES:
                head += file.read(_MOST_BYTES - _HEAD_BYTES)
    except (OSError, SourceFailed):
        return  # whoever reads it says why it cannot be read
    for data in [head] if whole else head.split(b"\n"):
        try:
            value = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value
