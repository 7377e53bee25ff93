"""What the recorder's tests share: logs written by hand, and what a reader makes of them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.producers.produced import LeftOut, Making, Produced
from chunksink.producers.recorder import Policy, RecorderReader, replay

MAKING = Making("2026-01-01T00:00:00.000000Z", {"name": "test", "version": "1"})
START = 1_700_000_000_000
V2 = '{"version": 2, "width": 80, "height": 24}'
V3 = '{"version": 3, "term": {"cols": 80, "rows": 24}}'
# Cuts everywhere, even in short logs.
SMALL = Policy(
    max_chunk_chars=60,
    max_chunk_events=4,
    max_window_ms=1000,
    hard_gap_ms=300,
    min_chunk_chars=14,
    merge_window_ms=100,
    overlap_chars=12,
    chunks_per_part=3,
)


def said(text: str | None, at: int, kind: str = "egress_output", pane: Any = 3, **more: Any) -> dict[str, Any]:
    """An event `at` milliseconds after the start."""
    event: dict[str, Any] = {"event_type": kind, "pane_id": pane, "occurred_at_ms": START + at, **more}
    return event if text is None else {**event, "text": text}


def typed(text: str, at: int, **more: Any) -> dict[str, Any]:
    return said(text, at, "ingress_text", **more)


@dataclass(frozen=True)
class Read:
    """What came of a file."""

    path: Path
    families: list[Produced]
    left_out: list[LeftOut]

    @property
    def chunks(self) -> list[Record]:
        return [record for family in self.families for record in family.records]

    @property
    def texts(self) -> list[str]:
        return [record["text"] for record in self.chunks]

    @property
    def ids(self) -> list[str]:
        return [record["chunk_id"] for record in self.chunks]

    @property
    def codes(self) -> list[tuple[int | None, str]]:
        return [(left.line, left.code) for left in self.left_out]

    def told(self, field: str) -> list[Any]:
        """One field of every chunk's metadata."""
        return [record["metadata"][field] for record in self.chunks]


def read_file(path: Path, policy: Policy | None = None, uri: str | None = None, making: Making = MAKING) -> Read:
    found = list(RecorderReader(policy or Policy()).read(path, uri or path.name, making))
    return Read(
        path,
        [one for one in found if isinstance(one, Produced)],
        [one for one in found if isinstance(one, LeftOut)],
    )


def write_log(folder: Path, events: Iterable[dict[str, Any] | str | bytes], name: str = "work.jsonl") -> Path:
    """Events as lines; strings and bytes as they are."""
    path = folder / name
    with path.open("wb") as file:
        for event in events:
            line = json.dumps(event) if isinstance(event, dict) else event
            file.write((line.encode() if isinstance(line, str) else line) + b"\n")
    return path


def read_log(folder: Path, events: Iterable[dict[str, Any] | str | bytes], policy: Policy | None = None) -> Read:
    return read_file(write_log(folder, events), policy)


def read_cast(folder: Path, *lines: str, policy: Policy | None = None, name: str = "demo.cast") -> Read:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_file(path, policy)


def check_replay(read: Read, policy: Policy | None = None) -> None:
    """Each chunk's span gives its text back, and the log up to the part's end has the part's checksum."""
    log = read.path.read_bytes()
    ends = {family.records[0]["provenance"]["inputs"][0]["byte_end"] for family in read.families}
    versions = {end: f"sha256:{sha256(log[:end]).hexdigest()}" for end in ends}
    for chunk in read.chunks:
        text = replay(read.path, chunk, policy)
        assert text == chunk["text"]
        assert sha256(text.encode()).hexdigest() == chunk["metadata"]["content_hash"]
        assert f"sha256:{chunk['metadata']['content_hash']}" == chunk["hashes"]["text_hash"]
        (upstream,) = chunk["provenance"]["inputs"]
        assert chunk["span"]["byte_range"]["byte_end"] <= upstream["byte_end"]
        assert chunk["provenance"]["source_checksum"] == upstream["source_checksum"] == versions[upstream["byte_end"]]
