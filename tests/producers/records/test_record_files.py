"""Files of records: read as they are meant, found again by place, refused where JSON is not clean."""

import os
from pathlib import Path

import pytest

from chunksink.chunkbus import findings
from chunksink.producers.bridges import BridgeReader
from chunksink.producers.errors import SOURCE_CHANGED, SOURCE_UNREADABLE, RecordRefused, SourceFailed
from chunksink.producers.produced import LeftOut
from chunksink.producers.records.files import Place, RecordFile, parse_record
from chunksink.producers.records.index import FamilyIndex
from tests.producers.bridges.samples import markdown_chunk
from tests.producers.reading import MAKING, write_lines


def test_windows_line_ends_a_mark_and_empty_lines_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"b": 2}')
    with RecordFile(path) as file:
        found = list(file.records())
        assert [(place.line, data) for place, data in found] == [(1, b'{"a": 1}'), (4, b'{"b": 2}')]
        assert [file.read(place) for place, _ in reversed(found)] == [b'{"b": 2}', b'{"a": 1}']


def test_a_line_over_the_limit_comes_cut_and_the_next_one_whole(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r.jsonl", [b"x" * 3_000_000, b"{}"])
    with RecordFile(path, limit=1_000_000) as file:
        assert [(place.line, len(data)) for place, data in file.records()] == [(1, 1_000_001), (2, 2)]


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceFailed) as failure, RecordFile(tmp_path / "pipe"):
        pass
    assert failure.value.code == SOURCE_UNREADABLE


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"[]", findings.JSON_PARSE),
        (b'{"a": NaN}', findings.JSON_PARSE),
        (b'{"a": {"b": 1, "b": 1}}', findings.JSON_PARSE),
        (b'{"a": "\\ud800"}', findings.ENCODING),
        (b'{"a": "\x00"}', findings.ENCODING),
        (b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}", findings.JSON_PARSE),
        (b'{"a": ' + b"[" * 100_000, findings.JSON_PARSE),
    ],
)
def test_what_is_not_clean_json_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(RecordRefused) as refusal:
        parse_record(data)
    assert refusal.value.code == code


def test_families_come_by_sort_key_then_by_last_line() -> None:
    with FamilyIndex() as index:
        for line, (family, sort) in enumerate([("a", b"2"), ("b", b"1"), ("a", b"2"), ("c", b"1"), ("b", b"1")]):
            index.add(family, Place(line, line * 10, 9), sort)
        assert [[place.line for place in places] for places in index.families()] == [[3], [1, 4], [0, 2]]
        assert [index.claim(name) for name in ("x", "y", "x")] == [True, True, False]


def test_a_file_that_is_written_to_between_the_readings_is_left_alone(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r.jsonl", [b"{", markdown_chunk(0), markdown_chunk(1)])
    reading = BridgeReader().read(path, "r.jsonl", MAKING)
    next(reading)  # the refusal of line 1
    with path.open("r+b") as file:
        size = path.stat().st_size
        file.write(b"#" * size)
    left = list(reading)
    assert [one.code for one in left if isinstance(one, LeftOut)][-1] in (SOURCE_CHANGED, findings.JSON_PARSE)
    assert all(isinstance(one, LeftOut) for one in left)
