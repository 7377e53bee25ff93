"""Reads files in tests: the resulting families and notices, and the values in them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.validation import Validation
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Family, Item, Notice, Source
from chunksink.sinks.projection import project_family

CREATED_AT = "2026-01-01T00:00:00.000000Z"


def write_lines(path: Path, lines: Iterable[Record | bytes]) -> Path:
    path.write_bytes(b"".join((line if isinstance(line, bytes) else orjson.dumps(line)) + b"\n" for line in lines))
    return path


def source_of(path: Path, tenant: str | None = None, uri: str | None = None) -> Source:
    data, producer = path.read_bytes(), {"name": "test", "version": "1"}
    return Source(uri or path.name, path, sha256_hex(data), len(data), CREATED_AT, producer, tenant)


def read_items(format_: Format, path: Path, tenant: str | None = None, uri: str | None = None) -> list[Item]:
    return list(format_.read(source_of(path, tenant, uri)))


def read_file(format_: Format, path: Path, tenant: str | None = None) -> tuple[list[list[Record]], list[Notice]]:
    """The chunks of each family, and the notices."""
    items = read_items(format_, path, tenant)
    return families(items), [item for item in items if isinstance(item, Notice)]


def read_lines(
    format_: Format, folder: Path, lines: Iterable[Record | bytes], tenant: str | None = None
) -> tuple[list[list[Record]], list[Notice]]:
    return read_file(format_, write_lines(folder / "records.jsonl", lines), tenant)


def families(items: Iterable[Item]) -> list[list[Record]]:
    return [list(item.chunks) for item in items if isinstance(item, Family)]


def texts(items: Iterable[Item]) -> list[list[str]]:
    return [[chunk["text"] for chunk in chunks] for chunks in families(items)]


def names(items: Iterable[Item]) -> list[str]:
    return [chunks[0]["provenance"]["source_uri"] for chunks in families(items)]


def notices(items: Iterable[Item]) -> list[tuple[int | None, str, bool]]:
    return codes_of([item for item in items if isinstance(item, Notice)])


def codes_of(notices: Sequence[Notice]) -> list[tuple[int | None, str, bool]]:
    return [(notice.line, notice.code, notice.is_failure) for notice in notices]


def is_valid_partition(folder: Path, found: Sequence[Sequence[Record]]) -> bool:
    """Whether the contract accepts a partition of these families without a finding."""
    bus = FolderRoot(folder)
    with PartitionWriter(bus, "records") as writer:
        for chunks in found:
            for chunk in chunks:
                writer.add(chunk)
        writer.commit(documents=len(found), producer=ManifestProducer("test", "1"), created_at=CREATED_AT)
    findings: list[Any] = []
    return Validation(bus, on_finding=findings.append).run(["records"]).ok and not findings


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterable[tuple[tuple[str | int, ...], Any]]:
    """Every value in a JSON value that is no group, with its path; an empty group is a value."""
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


def is_at(chunk: Any, path: Sequence[str | int], value: Any) -> bool:
    try:
        found = at(chunk, path)
    except (KeyError, TypeError, IndexError):
        return False
    return type(found) is type(value) and bool(found == value)


def json_values(names: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Every kind of JSON value, nested, with these names of fields."""
    return st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53) + 1, 2**53 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=8,
    )


def fields_of(chunks: Sequence[Record]) -> dict[str, Any]:
    """The fields of a family's first document in an index."""
    return project_family(chunks)[0].as_dict()


def solid(text: str) -> str:
    """Without any white space."""
    return "".join(text.split())
