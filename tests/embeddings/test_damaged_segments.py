"""Damaged segment files: no wrong vector reaches the cache."""

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from chunksink.chunkbus.storage import Storage
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.maintenance import verify
from chunksink.embeddings.rows import row_of
from chunksink.embeddings.segments import import_segments
from tests.embeddings.helpers import numbered
from tests.embeddings.segment_files import ENCODER, file_of, keys_of, renamed, written


@pytest.mark.promise(8)
def test_every_flipped_byte_of_a_segment_is_noticed(tmp_path: Path, place: Storage, cache: VectorCache) -> None:
    """With its old name, no row of the file is used. With the name of its new content, only sound rows are."""
    texts = numbered(20)
    name = written(place, texts)
    whole = file_of(tmp_path, name).read_bytes()
    vectors = dict(zip(keys_of(texts), ENCODER.encode(texts), strict=True))
    for position in range(0, len(whole), max(1, len(whole) // 400)):
        flipped = whole[:position] + bytes([whole[position] ^ 0x41]) + whole[position + 1 :]
        file_of(tmp_path, name).write_bytes(flipped)
        assert [bad.name for bad in import_segments(cache, place, [name]).bad] == [name]
        import_segments(cache, place, [renamed(tmp_path, flipped)])
    rows = cache.read(
        "SELECT text_hash, vector FROM vector WHERE fingerprint = ?", (bytes.fromhex(ENCODER.fingerprint),)
    )
    assert len(rows) == 20
    assert all(vector == vectors[key].tobytes() for key, vector in rows)
    assert verify(cache).is_sound


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_segment_is_skipped(part: float, tmp_path: Path, place: Storage, cache: VectorCache) -> None:
    written(place, numbered(50))
    cut = written(place, numbered(60))
    file = file_of(tmp_path, cut)
    whole = file.read_bytes()
    data = whole[: int(part * len(whole))]
    file.write_bytes(data)
    proper = renamed(tmp_path, data)
    report = import_segments(cache, place)
    assert ({bad.name for bad in report.bad}, report.added) == ({cut, proper}, 50)


def arrow(metadata: dict[str, str], schema: pa.Schema | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, (schema or pa.schema([("x", pa.int32())])).with_metadata(metadata)):
        pass
    return sink.getvalue().to_pybytes()


MODEL = {"name": "m", "dimension": 2, "max_length": None}
DESCRIBED = {
    "chunksink.segment": "1",
    "fingerprint": "ab" * 32,
    "model": orjson.dumps(MODEL).decode(),
    "producer": "{}",
}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a README, not vectors",
        b"ARROW1\0\0 and nothing else ARROW1",
        arrow({}),
        arrow({"chunksink.segment": "2"}),
        arrow({"chunksink.segment": "1"}),
        arrow(DESCRIBED | {"model": "[]"}),
        arrow(DESCRIBED | {"model": "{"}),
        arrow(DESCRIBED | {"model": '{"name": "m", "dimension": 0, "max_length": null}'}),
        arrow(DESCRIBED | {"fingerprint": "short"}),
        arrow(DESCRIBED),
    ],
)
def test_foreign_file_is_skipped_with_a_reason(data: bytes, tmp_path: Path, place: Storage, cache: VectorCache) -> None:
    written(place, ["a"])
    foreign = renamed(tmp_path, data)
    report = import_segments(cache, place)
    assert ([bad.name for bad in report.bad], report.added) == ([foreign], 1)
    assert report.bad[0].reason


def test_missing_and_misnamed_files_are_skipped_with_a_reason(
    tmp_path: Path, place: Storage, cache: VectorCache
) -> None:
    written(place, ["a"])
    file_of(tmp_path, "vectors.arrow").write_bytes(b"x")
    assert [bad.name for bad in import_segments(cache, place).bad] == ["vectors.arrow"]
    gone = f"{'ab' * 32}.arrow"
    assert [bad.name for bad in import_segments(cache, place, [gone, "../vectors.arrow"]).bad] == [
        "../vectors.arrow",
        gone,
    ]


@pytest.mark.promise(8)
@pytest.mark.parametrize(
    ("position", "value"),
    [(6, np.full(16, np.nan, "f4").tobytes()), (3, 9), (4, 5), (5, b"\0" * 16), (1, b"\0" * 32), (2, b"abc")],
)
def test_bad_rows_of_a_segment_are_left_out(
    position: int, value: Any, place: Storage, cache: VectorCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong vector with a valid checksum, and values with a wrong checksum."""

    def spoiled(model: bytes, key: bytes, *values: Any) -> tuple[Any, ...]:
        row = list(row_of(model, key, *values))
        if key == keys_of(["b"])[0]:
            row[position] = value
            if position == 6:
                row = list(row_of(model, key, row[3], row[4], value))
        return tuple(row)

    monkeypatch.setattr("chunksink.embeddings.cache.row_of", spoiled)
    name = written(place, ["a", "b", "c"])
    report = import_segments(cache, place, [name])
    assert (report.rows, report.added, report.bad_rows, report.bad) == (3, 2, 1, [])
    assert verify(cache).is_sound


def with_metadata(data: bytes, **changed: bytes) -> bytes:
    """The same rows with other metadata."""
    table = pa.ipc.open_file(data).read_all()
    metadata = table.schema.metadata | {name.encode(): value for name, value in changed.items()}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema.with_metadata(metadata)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.promise(8)
def test_segment_with_another_model_or_dimension_adds_nothing(
    tmp_path: Path, place: Storage, cache: VectorCache
) -> None:
    whole = file_of(tmp_path, written(place, ["a", "b"])).read_bytes()
    model = orjson.loads(pa.ipc.open_file(whole).schema.metadata[b"model"])
    renamed_model = renamed(tmp_path, with_metadata(whole, fingerprint=b"ab" * 32))
    report = import_segments(cache, place, [renamed_model])
    assert (report.added, report.bad_rows, report.bad) == (0, 2, [])
    shorter = renamed(tmp_path, with_metadata(whole, model=orjson.dumps(model | {"dimension": 8})))
    report = import_segments(cache, place, [shorter])
    assert (report.added, [bad.name for bad in report.bad]) == (0, [shorter])
