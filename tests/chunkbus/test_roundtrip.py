"""Written records are read back with every unknown field and offset."""

import io
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import text_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.errors import InvalidChunk, PartitionChanged, RepeatedChunks, RepeatedId
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.reader import PartitionReader, Place, read_blocks, read_lines, read_manifest, read_partition
from chunksink.chunkbus.record_checks import MAX_LINE_BYTES
from chunksink.chunkbus.writer import PartitionWriter
from tests.chunkbus.samples import NOON, PRODUCER, chunk, commit, lines_of, provenance, validate
from tests.conftest import examples

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=8,
)
unknown_fields = st.dictionaries(st.text(min_size=1).map("x-".__add__), json_values, max_size=3)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    texts = draw(st.lists(st.text().filter(lambda text: "\0" not in text), max_size=8))
    return [
        chunk(
            index,
            text=text,
            metadata=draw(st.none() | st.dictionaries(st.text().map("m-".__add__), json_values, max_size=3)),
            provenance=provenance(**draw(unknown_fields)),
            **draw(unknown_fields),
        )
        for index, text in enumerate(texts)
    ]


@given(records())
@settings(max_examples=examples(60))
def test_reader_returns_the_written_records(written: list[Record]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = FolderRoot(Path(folder))
        commit(root, "k", written)
        read = list(read_partition(root, "k"))
        assert [record for _, record in read] == written
        data = root.chunks_file("k").read_bytes()
        with PartitionReader(root, "k") as reader:
            for place, record in reversed(read):
                assert json.loads(data[place.offset : place.offset + place.length]) == record
                assert reader.record(place, text_hash(record["text"])) == record
        assert sum(place.length + 1 for place, _ in read) == len(data)
        assert read_manifest(root, "k").counts.chunks_emitted == len(written)
        assert validate(root) == []


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b""))), st.booleans(), st.integers(1, 50))
def test_read_lines_is_equal_for_any_block_size(lines: list[bytes], ended: bool, size: int) -> None:
    data = b"\n".join(lines) + (b"\n" if lines and ended else b"")
    seen: list[bytes] = []
    blocks = list(read_blocks(SmallReads(data, size), seen.append))
    assert b"".join(seen) == data
    expected = data.removesuffix(b"\n").split(b"\n") if data else []
    if data.endswith(b"\n") and data != b"\n":
        expected = data[:-1].split(b"\n")
    assert list(itertools.chain.from_iterable(block.data.split(b"\n") for block in blocks)) == expected
    for block in blocks:
        assert data[block.offset : block.offset + len(block.data)] == block.data


class SmallReads(io.BytesIO):
    """A file that returns a few bytes at a time, so that lines cross block borders."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._size)


@pytest.mark.parametrize("length", [MAX_LINE_BYTES - 1, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, MAX_LINE_BYTES * 3])
def test_read_lines_when_a_line_is_too_long_cuts_it(length: int) -> None:
    data = b"first\n" + b"x" * length + b"\nlast"
    found = list(read_lines(io.BytesIO(data)))
    assert [place.offset for place, _ in found] == [0, 6, 6 + length + 1]
    assert [line for _, line in found] == [b"first", b"x" * min(length, MAX_LINE_BYTES + 1), b"last"]


def test_read_lines_when_a_line_is_endless_uses_little_memory() -> None:
    blocks = list(read_blocks(io.BytesIO(b"x" * (4 * MAX_LINE_BYTES))))
    assert [len(block.data) for block in blocks] == [MAX_LINE_BYTES + 1]


@pytest.mark.parametrize("place", [Place(1, 50), Place(0, 10), Place(0, 10**6), Place(10**6, 5), Place(0, 0)], ids=str)
def test_record_when_its_place_is_wrong_raises_partition_changed(place: Place, tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commit(root, "k", [chunk(0), chunk(1)])
    with PartitionReader(root, "k") as reader, pytest.raises(PartitionChanged):
        reader.record(place, text_hash(chunk(0)["text"]))


def test_record_when_replaced_raises_partition_changed(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commit(root, "k", [chunk(0)])
    place, record = next(read_partition(root, "k"))
    with PartitionReader(root, "k") as before:
        commit(root, "k", [chunk(0, text="Chunk 0 says something of its OWN.")])
        with PartitionReader(root, "k") as after, pytest.raises(PartitionChanged):
            after.record(place, text_hash(record["text"]))
        assert before.record(place, text_hash(record["text"])) == record  # an open file does not change
    root.chunks_file("k").unlink()
    with pytest.raises(FileNotFoundError), PartitionReader(root, "k"):
        pass


def test_partition_reader_outside_its_block_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        PartitionReader(FolderRoot(tmp_path), "k").record(Place(0, 1), "sha256:")


@pytest.mark.parametrize(
    "bad",
    [
        chunk(text=None),
        chunk(text="a\0b"),
        chunk(schema_version="chunks.v2"),
        chunk(hashes={"text_hash": "0" * 64}),
        chunk(provenance={}),
        chunk(text="x" * MAX_LINE_BYTES),
        chunk(note="\ud800"),
        chunk(note={1, 2}),
        chunk(note={1: 2}),
        chunk(metadata={"n": 2**64}),
        {},
    ],
    ids=lambda record: ascii(record)[-40:],
)
def test_writer_when_the_chunk_is_invalid_refuses_it(bad: Any, tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    with PartitionWriter(root, "k") as writer:
        writer.add(chunk(0))
        with pytest.raises(InvalidChunk, match="chunk 2 of partition k"):
            writer.add(bad)
        writer.commit(documents=1, producer=PRODUCER, created_at=NOON)
    assert root.chunks_file("k").read_bytes() == lines_of([chunk(0)])


def test_writer_when_nesting_is_too_deep_refuses_it(tmp_path: Path) -> None:
    nested: Any = 1
    for _ in range(2_000):
        nested = [nested]
    with PartitionWriter(FolderRoot(tmp_path), "k") as writer, pytest.raises(InvalidChunk):
        writer.add(chunk(note=nested))


def test_writer_when_a_line_has_line_breaks_refuses_it(tmp_path: Path) -> None:
    with PartitionWriter(FolderRoot(tmp_path), "k") as writer, pytest.raises(InvalidChunk):
        writer.add_line(orjson.dumps(chunk(), option=orjson.OPT_INDENT_2))


def test_writer_when_validation_only_warns_accepts_it(tmp_path: Path) -> None:
    """So that every valid partition can be rewritten."""
    commit(FolderRoot(tmp_path), "k", [chunk(0, hashes={"text_hash": "md5:1"})])


def test_writer_when_ids_repeat_refuses_them(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    with pytest.raises(RepeatedChunks) as error:
        commit(root, "k", [chunk(0), chunk(1), chunk(2), chunk(1, text="other")])
    assert error.value.repeated == [RepeatedId("chunk-1", line=4, earlier_line=2)]
    assert root.partition_keys() == []


def test_writer_without_a_commit_leaves_nothing(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commit(root, "k", [chunk(0)])
    with PartitionWriter(root, "k") as writer:
        writer.add(chunk(1))
    with pytest.raises(ZeroDivisionError), PartitionWriter(root, "k") as writer:
        writer.add(chunk(1))
        raise ZeroDivisionError
    assert root.chunks_file("k").read_bytes() == lines_of([chunk(0)])
    assert {path.name for path in root.canonical.iterdir()} == {"k.jsonl", ".k.lock"}


def test_writer_outside_its_block_or_after_commit_is_an_error(tmp_path: Path) -> None:
    writer = PartitionWriter(FolderRoot(tmp_path), "k")
    with pytest.raises(RuntimeError):
        writer.add(chunk(0))
    with writer:
        writer.commit(documents=0, producer=PRODUCER, created_at=NOON)
        with pytest.raises(RuntimeError):
            writer.add(chunk(0))
        with pytest.raises(RuntimeError):
            writer.commit(documents=0, producer=PRODUCER, created_at=NOON)
