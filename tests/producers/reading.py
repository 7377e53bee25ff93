"""What the tests of all record readers share: files of records, what a reader makes of them, what indexes see."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.validate import Validation
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.producers.produced import LeftOut, Making, Produced, RecordReader

MAKING = Making("2026-01-01T00:00:00.000000Z", {"name": "test", "version": "1"})


def write_lines(path: Path, lines: Iterable[Record | bytes]) -> Path:
    path.write_bytes(b"".join((line if isinstance(line, bytes) else orjson.dumps(line)) + b"\n" for line in lines))
    return path


def read_all(
    reader: RecordReader, path: Path, making: Making = MAKING, uri: str = "records.jsonl"
) -> tuple[list[Produced], list[LeftOut]]:
    found = list(reader.read(path, uri, making))
    return [one for one in found if isinstance(one, Produced)], [one for one in found if isinstance(one, LeftOut)]


def read_records(
    reader: RecordReader, tmp_path: Path, lines: Iterable[Record | bytes], making: Making = MAKING
) -> tuple[list[Produced], list[LeftOut]]:
    return read_all(reader, write_lines(tmp_path / "records.jsonl", lines), making)


def refusals(left: Sequence[LeftOut]) -> list[tuple[int | None, str, bool]]:
    return [(one.line, one.code, one.is_failure) for one in left]


def make_partition(root: Path, produced: Iterable[Produced]) -> bool:
    """Writes what was produced and says whether the smoke test of the contract passes it without a word."""
    bus = BusRoot(root)
    families = list(produced)
    with PartitionWriter(bus, "records") as writer:
        for family in families:
            for record in family.records:
                writer.add(record)
        writer.commit(
            documents=len(families), producer=ManifestProducer("test", "1"), created_at="2026-01-01T00:00:00Z"
        )
    findings: list[Any] = []
    return Validation(bus, on_finding=findings.append).run(["records"]).ok and not findings


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterable[tuple[tuple[str | int, ...], Any]]:
    """Every value in a JSON value that is no group, with the way to it; empty groups are values."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
    else:
        yield path, value


def at(value: Any, path: Sequence[str | int]) -> Any:
    for key in path:
        value = value[key]
    return value
