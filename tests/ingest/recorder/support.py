"""Logs and recordings written by hand, and what the format reads from them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.recorder import RecorderFormat, chunker, replay
from chunksink.ingest.model import Family, Item, Notice, Source

START = 1_700_000_000_000
V2 = '{"version": 2, "width": 80, "height": 24}'
V3 = '{"version": 3, "term": {"cols": 80, "rows": 24}}'

Line = dict[str, Any] | str | bytes
Sizes = Mapping[str, int]
"""Parameters of the policy."""

SMALL: Sizes = {
    "MAX_CHUNK_CHARS": 60,
    "MAX_CHUNK_EVENTS": 4,
    "MAX_WINDOW_MS": 1000,
    "HARD_GAP_MS": 300,
    "MIN_CHUNK_CHARS": 14,
    "MERGE_WINDOW_MS": 100,
    "OVERLAP_CHARS": 12,
    "CHUNKS_PER_PART": 3,
}
"""Cuts everywhere, even in short logs."""
DEFAULT: Sizes = {name: getattr(chunker, name) for name in SMALL}


@contextmanager
def changed_policy(sizes: Sizes) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sizes.items():
            patch.setattr(chunker, name, value)
        yield


def output(text: str | None, at: int, kind: str = "egress_output", pane: Any = 3, **more: Any) -> dict[str, Any]:
    """An event `at` milliseconds after the start."""
    event: dict[str, Any] = {"event_type": kind, "pane_id": pane, "occurred_at_ms": START + at, **more}
    return event if text is None else {**event, "text": text}


def typed(text: str, at: int, **more: Any) -> dict[str, Any]:
    return output(text, at, "ingress_text", **more)


@dataclass(frozen=True)
class Read:
    """The families and notices of a file."""

    path: Path
    families: list[Family]
    notices: list[Notice]

    @property
    def chunks(self) -> list[Record]:
        return [chunk for family in self.families for chunk in family.chunks]

    @property
    def texts(self) -> list[str]:
        return [chunk["text"] for chunk in self.chunks]

    @property
    def ids(self) -> list[str]:
        return [chunk["chunk_id"] for chunk in self.chunks]

    @property
    def sections(self) -> list[Any]:
        return [chunk["span"].get("section") for chunk in self.chunks]

    @property
    def codes(self) -> list[tuple[int | None, str]]:
        return [(notice.line, notice.code) for notice in self.notices]

    @property
    def documents(self) -> dict[str, list[str]]:
        """The texts of each document by its name."""
        return {
            family.chunks[0]["provenance"]["source_uri"]: [chunk["text"] for chunk in family.chunks]
            for family in self.families
        }

    def metadata(self, field: str) -> list[Any]:
        """One field of every chunk's metadata."""
        return [chunk["metadata"][field] for chunk in self.chunks]


def read_items(path: Path, **changes: Any) -> Iterator[Item]:
    producer = {"name": "test", "version": "1"}
    source = Source(path.name, path, "0" * 64, path.stat().st_size, "2026-01-01T00:00:00.000000Z", producer)
    return RecorderFormat().read(replace(source, **changes))


def read_file(path: Path, sizes: Sizes = DEFAULT, **changes: Any) -> Read:
    with changed_policy(sizes):
        items = list(read_items(path, **changes))
    families = [item for item in items if isinstance(item, Family)]
    return Read(path, families, [item for item in items if isinstance(item, Notice)])


def write_log(folder: Path, events: Iterable[Line], name: str = "work.jsonl") -> Path:
    """Events as lines; strings and bytes as they are."""
    path = folder / name
    with path.open("wb") as file:
        for event in events:
            line = json.dumps(event) if isinstance(event, dict) else event
            file.write((line.encode() if isinstance(line, str) else line) + b"\n")
    return path


def read_log(folder: Path, events: Iterable[Line], sizes: Sizes = DEFAULT) -> Read:
    return read_file(write_log(folder, events), sizes)


def read_cast(folder: Path, *lines: str) -> Read:
    return read_file(write_log(folder, lines, "demo.cast"))


def check_replay(read: Read, sizes: Sizes = DEFAULT) -> None:
    """Each chunk's span replays to its text, and the log up to the document's end has the document's checksum."""
    log = read.path.read_bytes()
    ends = {chunk["provenance"]["inputs"][0]["byte_end"] for chunk in read.chunks}
    checksums = {end: f"sha256:{sha256(log[:end]).hexdigest()}" for end in ends}
    for chunk in read.chunks:
        with changed_policy(sizes):
            text = replay(read.path, chunk)
        assert text == chunk["text"]
        assert sha256(text.encode()).hexdigest() == chunk["metadata"]["content_hash"]
        assert chunk["metadata"]["chunk_id"] == policy_id(chunk)
        assert f"sha256:{chunk['metadata']['content_hash']}" == chunk["hashes"]["text_hash"]
        (log_prefix,) = chunk["provenance"]["inputs"]
        assert chunk["span"]["byte_range"]["byte_end"] <= log_prefix["byte_end"]
        expected = checksums[log_prefix["byte_end"]]
        assert chunk["provenance"]["source_checksum"] == log_prefix["source_checksum"] == expected


def policy_id(chunk: Record) -> str:
    """A second implementation of the policy's formula."""
    metadata = chunk["metadata"]
    ordinals = f"{metadata['start_offset']['ordinal']}:{metadata['end_offset']['ordinal']}"
    text_hash = sha256(chunk["text"].encode()).hexdigest()
    key = f"ft.recorder.chunking.v1:{metadata['pane_id']}:{metadata['direction']}:{ordinals}:{text_hash}"
    return sha256(key.encode()).hexdigest()
