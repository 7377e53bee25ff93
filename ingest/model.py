"""The plain data that the stages of an ingest exchange, and the summary of a family."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.diagnosis import parse_time
from chunksink.chunkbus.identity import derive_document_id, family_key, parent_id, source_name, tenant_id


@dataclass(frozen=True, slots=True)
class Source:
    """One version of one file to read, and the values that the run puts into all its chunks.

    `checksum` is the hex sha256 of the file's first `size` bytes. `created_at`, `producer` and `tenant` are the run's.
    """

    uri: str
    path: Path
    checksum: str
    size: int
    created_at: str
    producer: Record
    tenant: str | None = None

    @property
    def document_id(self) -> str:
        """The id of a document that is this whole file."""
        return derive_document_id(self.uri, self.checksum, tenant=self.tenant)


@dataclass(frozen=True, slots=True)
class Family:
    """All chunks of one document of one tenant, in order.

    If a file has several families with the same key, the last one counts, and the others are reported. `is_partial`:
    some of its parts could not be read; a partial family does not replace a larger one of the same version. `line` is
    that of its record, for notices.
    """

    chunks: Sequence[Record]
    is_partial: bool = False
    line: int | None = None

    def __post_init__(self) -> None:
        if not self.chunks:
            raise ValueError("a Family needs a chunk: for a document without text yield Empty(family)")


@dataclass(frozen=True, slots=True)
class Empty:
    """A document without text to index. Its former chunks are removed. `family` is its key."""

    family: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something in a file or a record that was not read, or not read as its author may expect.

    `code` is one of `codes` or of the contract's findings. Failures are reported one by one, up to a limit for each
    file; other notices are only counted. `line` is a line, or the number of a record in an array. `family` is the key
    of a family that was refused: earlier families with this key in the file do not count either."""

    code: str
    reason: str
    line: int | None = None
    is_failure: bool = True
    family: str | None = None


Item = Family | Empty | Notice
"""What a format yields. The order depends only on the file."""


class FamilySummary(NamedTuple):
    """The columns of a family in the tables `family` and `draft`.

    `family` is its key; `tenant` is empty for none. `document` is the id of this version of the document, `version` the
    checksum of its source. `newest` is the newest `created_at` of its chunks, `made_by` their canonicalizer.
    """

    family: str
    name: str
    tenant: str
    document: str
    version: str | None
    newest: str | None
    chunks: int
    digest: str
    made_by: str


def summarise(records: Sequence[Record]) -> FamilySummary:
    """The summary of the family of these chunks."""
    first, last = records[0], records[-1]
    tenant, document = tenant_id(first), first["document_id"]
    checksum = last["provenance"].get("source_checksum")
    made_by = first["provenance"].get("canonicalizer") or first["provenance"]
    stamps = {record.get("created_at") or "" for record in records}
    return FamilySummary(
        family=family_key(parent_id(first), tenant),
        name=source_name(first) or document,
        tenant=tenant or "",
        document=document,
        version=checksum if isinstance(checksum, str) else None,
        newest=max(map(_normalised, stamps)) or None,
        chunks=len(records),
        digest=_digest(records),
        made_by=f"{made_by.get('canonicalizer_name')}: {made_by.get('canonicalizer_version')}",
    )


def _normalised(stamp: str) -> str:
    """The time in a form that sorts as text; empty if it is not a time."""
    moment = moment_of(stamp)
    return "" if moment.year == 1 else moment.isoformat(timespec="microseconds")


def moment_of(stamp: str) -> datetime:
    """The instant of a timestamp; the earliest possible one if it is not a time."""
    try:
        return parse_time(stamp)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _digest(records: Sequence[Record]) -> str:
    """A digest of everything in the chunks except the time and the run that made them."""
    digest = sha256()
    for record in records:
        rest = {name: value for name, value in record.items() if name not in ("created_at", "producer")}
        if isinstance(hashes := rest.get("hashes"), dict):
            rest["hashes"] = {name: value for name, value in hashes.items() if name != "chunk_object_hash"}
        digest.update(orjson.dumps(rest, option=orjson.OPT_APPEND_NEWLINE))
    return digest.hexdigest()
