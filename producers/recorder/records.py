"""Cuts become canonical chunks: names, ids, the policy's metadata, and the span from which each can be replayed.

A document of the bus is a part of one pane's log: `work.jsonl#pane=3&part=0` (`#session=s1&pane=3&part=0` where events
name a session), 64 chunks each. Its version is the checksum of the log up to its last byte, so a log that grows
leaves every part but the last of each pane that grew as it was. The policy's `chunk_id` stands in the metadata: it
knows neither the log nor the session, so two logs can give the same one, and so can equal parts of one long event.
The bus's own id is made from it, from the document's name and tenant and from the place, always, so that it never
depends on what else is in the bus; it stays the same while the log grows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from chunksink.chunkbus.canonical import json_hash, sha256_hex
from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.identity import derive_document_id, normalise_source
from chunksink.producers.produced import Making, Produced
from chunksink.producers.recorder.cuts import Cut
from chunksink.producers.recorder.events import Offset
from chunksink.producers.recorder.policy import CANONICALIZER_NAME, PARSER, POLICY_VERSION, Policy


@dataclass(frozen=True)
class Source:
    """The log that is read. `began_ms` and `has_clock` are a recording's: without a clock times count from 0."""

    uri: str
    source_type: str
    title: str | None = None
    is_recording: bool = False
    began_ms: int | None = None

    @property
    def has_clock(self) -> bool:
        return not self.is_recording or self.began_ms is not None


@dataclass(frozen=True)
class Part:
    """Which document of the log: a pane of a session, and how many parts lie before."""

    session: str | None
    pane: str
    number: int

    def uri(self, log: str) -> str:
        session = "" if self.session is None else f"session={quote(self.session, safe='')}&"
        return f"{log}#{session}pane={quote(self.pane, safe='')}&part={self.number}"


def policy_chunk_id(pane: str, direction: str, start_ordinal: int, end_ordinal: int, content_hash: str) -> str:
    """The chunking policy's formula."""
    return sha256_hex(f"{POLICY_VERSION}:{pane}:{direction}:{start_ordinal}:{end_ordinal}:{content_hash}".encode())


@dataclass(frozen=True, slots=True)
class Described:
    """A cut with all that it says of itself; its events are let go, for many of them wait for their part's end."""

    text: str
    place: str
    metadata: Record
    span: Record
    byte_end: int
    checksum: str


def describe(source: Source, session: str | None, pane: str, cut: Cut) -> Described:
    first, last = cut.events[0], cut.events[-1]
    return Described(
        cut.text,
        f"{first.first.segment_id}/{first.first.ordinal}/{cut.char_of_own}",
        _metadata(source, session, pane, cut),
        _span(source, cut),
        last.byte_end,
        last.checksum,
    )


def build(source: Source, part: Part, described: Sequence[Described], policy: Policy, making: Making) -> Produced:
    """The chunks of one part, in order."""
    uri = part.uri(source.uri)
    checksum = f"sha256:{described[-1].checksum}"
    document_id = derive_document_id(uri, checksum, tenant=making.tenant)
    provenance = {
        "source_uri": uri,
        "source_checksum": checksum,
        "parser": {"parser_name": PARSER[0], "parser_version": PARSER[1]},
        "canonicalizer": {
            "canonicalizer_name": CANONICALIZER_NAME,
            "canonicalizer_version": policy.canonicalizer_version,
        },
        "inputs": [{"source_uri": source.uri, "byte_end": described[-1].byte_end, "source_checksum": checksum}],
    }
    records = []
    for index, one in enumerate(described):
        fields: Record = {
            "chunk_index": index,
            "chunk_count": len(described),
            "source": {"source_uri": uri, "source_type": source.source_type, "path": source.uri},
            "span": one.span,
            "metadata": one.metadata,
            "canonicalization": {"chunking_policy_id": policy.canonicalizer_version},
            "producer": making.producer,
        }
        if making.tenant is not None:
            fields["tenant_id"] = making.tenant
        records.append(
            new_chunk(
                document_id=document_id,
                text=one.text,
                provenance=provenance,
                span_key=one.place,
                created_at=making.created_at,
                chunk_id=json_hash([normalise_source(uri), making.tenant, one.place, one.metadata["chunk_id"]]),
                fields=fields,
            )
        )
    return Produced(uri, making.tenant, records)


def _metadata(source: Source, session: str | None, pane: str, cut: Cut) -> dict[str, Any]:
    first, last = cut.events[0].first, cut.events[-1].last
    content_hash = sha256_hex(cut.text.encode())
    metadata: dict[str, Any] = {
        "chunk_id": policy_chunk_id(pane, cut.direction.value, first.ordinal, last.ordinal, content_hash),
        "policy_version": POLICY_VERSION,
        "pane_id": pane,
        "session_id": session,
        "direction": cut.direction.value,
        "start_offset": _offset(first),
        "end_offset": _offset(last),
        "event_ids": [event.event_id for event in cut.events],
        "event_count": len(cut.events),
        "occurred_at_start_ms": cut.started_ms if source.has_clock else None,
        "occurred_at_end_ms": cut.ended_ms if source.has_clock else None,
        "text_chars": len(cut.text),
        "content_hash": content_hash,
        "overlap_chars": cut.overlap_chars,
        "opened_by": cut.opened_by.value,
    }
    if source.title:
        metadata["title"] = source.title
    return metadata


def _span(source: Source, cut: Cut) -> dict[str, Any]:
    """Which bytes of the log hold the chunk's events, and which characters of what they contribute it is."""
    span: dict[str, Any] = {
        "byte_range": {"byte_start": cut.marks[0][1].byte_start, "byte_end": cut.events[-1].byte_end},
        "contributed": {"char_start": cut.char_start, "char_end": cut.char_start + len(cut.text)},
    }
    if cut.section:
        span["section"] = [cut.section]
    if source.is_recording:
        began = source.began_ms or 0
        span["timestamp_start"] = (cut.started_ms - began) / 1000
        span["timestamp_end"] = (cut.ended_ms - began) / 1000
    return span


def _offset(offset: Offset) -> dict[str, int]:
    return {"segment_id": offset.segment_id, "ordinal": offset.ordinal, "byte_offset": offset.byte_offset}
