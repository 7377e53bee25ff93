"""Makes documents from chunks: names, ids, the policy's metadata, and the spans that `replay` needs.

A document is a part of one pane's log, like `work.jsonl#session=s1&pane=3&part=0`. Its version is the checksum of the
log up to the end of its last event, so appending changes only the last part of each pane. The policy's `chunk_id` is in
the metadata; it depends neither on the log nor on the session, and chunks with equal texts cut from one event share
it. So the chunk's own id adds the document's name, the tenant and the place. None of these changes while the log
grows.
"""

from collections.abc import Iterator
from urllib.parse import quote

from chunksink.chunkbus.canonical import json_hash, sha256_hex
from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.identity import derive_document_id, normalise_source
from chunksink.ingest.formats.recorder import chunker
from chunksink.ingest.formats.recorder.cast import Header
from chunksink.ingest.formats.recorder.chunker import Cut, PaneChunker
from chunksink.ingest.formats.recorder.events import Event
from chunksink.ingest.model import Family, Source
from chunksink.ingest.record_fields import new_provenance

PARSER = ("chunksink-recorder-log", "1")


class Pane:
    """Turns the events of one pane of one session into documents; keeps one document in memory."""

    def __init__(self, name: str, session: str | None, source: Source, header: Header | None) -> None:
        self._name = name
        self._session = session
        self._source = source
        self._header = header
        self._chunker = PaneChunker()
        self._cuts: list[Cut] = []
        self._part = 0

    def take(self, event: Event) -> Iterator[Family]:
        yield from self._families(self._chunker.take(event))

    def finish(self) -> Iterator[Family]:
        yield from self._families(self._chunker.finish())
        if self._cuts:
            yield self._family()

    def _families(self, cuts: list[Cut]) -> Iterator[Family]:
        for cut in cuts:
            self._cuts.append(cut)
            if len(self._cuts) == chunker.CHUNKS_PER_PART:
                yield self._family()

    def _family(self) -> Family:
        source, last_line = self._source, self._cuts[-1].own_marks[-1][1].last.line
        session = "" if self._session is None else f"session={quote(self._session, safe='')}&"
        uri = f"{source.uri}#{session}pane={quote(self._name, safe='')}&part={self._part}"
        checksum = f"sha256:{last_line.checksum}"
        provenance = new_provenance(("source_uri", uri), checksum, PARSER, chunker.CANONICALIZER)
        provenance["inputs"] = [{"source_uri": source.uri, "byte_end": last_line.end, "source_checksum": checksum}]
        source_type = "recorder" if self._header is None else "asciicast"
        shared: Record = {
            "chunk_count": len(self._cuts),
            "source": {"source_uri": uri, "source_type": source_type, "path": source.uri},
            "canonicalization": {"chunking_policy_id": chunker.CANONICALIZER[1]},
            "producer": source.producer,
            **({} if source.tenant is None else {"tenant_id": source.tenant}),
        }
        records = []
        for index, cut in enumerate(self._cuts):
            start, first = cut.own_marks[0]
            place = f"{first.first.offset.segment_id}/{first.first.offset.ordinal}/{-start}"
            metadata = self._metadata(cut)
            record = new_chunk(
                document_id=derive_document_id(uri, checksum, tenant=source.tenant),
                text=cut.text,
                provenance=provenance,
                span_key=place,
                created_at=source.created_at,
                chunk_id=json_hash([normalise_source(uri), source.tenant, place, metadata["chunk_id"]]),
                fields={**shared, "chunk_index": index, "span": self._span(cut), "metadata": metadata},
            )
            records.append(record)
        self._cuts = []
        self._part += 1
        return Family(records)

    def _metadata(self, cut: Cut) -> Record:
        """The fields that the policy requires, and overlap, boundary and the recording's title."""
        events = [event for _, event in cut.own_marks]
        header = self._header
        started_ms, ended_ms = (None, None) if header is not None and header.timestamp is None else cut.window
        start, end = events[0].first.offset, events[-1].last.offset
        content_hash = sha256_hex(cut.text.encode())
        key = f"{chunker.POLICY_VERSION}:{self._name}:{cut.direction}:{start.ordinal}:{end.ordinal}:{content_hash}"
        return {
            "chunk_id": sha256_hex(key.encode()),
            "policy_version": chunker.POLICY_VERSION,
            "pane_id": self._name,
            "session_id": self._session,
            "direction": cut.direction,
            "start_offset": start._asdict(),
            "end_offset": end._asdict(),
            "event_ids": [event.event_id for event in events],
            "event_count": len(events),
            "occurred_at_start_ms": started_ms,
            "occurred_at_end_ms": ended_ms,
            "text_chars": len(cut.text),
            "content_hash": content_hash,
            "overlap_chars": cut.overlap_chars,
            "opened_by": cut.opened_by,
            **({"title": header.title} if header is not None and header.title else {}),
        }

    def _span(self, cut: Cut) -> Record:
        """Where the chunk is in the log. `byte_range` contains the bytes from its first to its last event.
        `contributed` is where the chunk's text begins and ends in the texts that these events contribute, joined by
        line ends."""
        start, first_shown = cut.marks[0]
        last = cut.marks[-1][1]
        span: Record = {
            "byte_range": {"byte_start": first_shown.first.line.start, "byte_end": last.last.line.end},
            "contributed": {"char_start": -start, "char_end": len(cut.text) - start},
            **({"section": [cut.section]} if cut.section else {}),
        }
        if self._header is not None:
            began_ms = self._header.began_ms
            span["timestamp_start"], span["timestamp_end"] = ((time - began_ms) / 1000 for time in cut.window)
        return span
