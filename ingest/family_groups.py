"""Groups the records of one file, which may be in any order, into families. Only one family is in memory at a time."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import family_key
from chunksink.ingest.codes import FAMILY_INCOMPLETE, RECORD_SUPERSEDED
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.json_records import IsRecord, NumberedRecord, read_records
from chunksink.ingest.model import Empty, Family, Item, Notice, Source
from chunksink.ingest.record_fields import ORIGINAL, check, make_chunk, refuse_other_tenant
from chunksink.ingest.spool import Spool


class Draft(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One chunk of a family, before its siblings are known.

    `version` distinguishes versions of one source; the last in the file counts. Siblings are sorted by `order`. `index`
    is the number of the chunk in its family, and `count` the number of chunks, if the record states them. A family with
    a `count` is read completely or not at all.

    `own_id` tells the record from other records with the same text; `chunk_id` does not depend on it. If records with
    different `own_id` have the same `chunk_id`, they repeat a text. Then all but the first get another `chunk_id`.

    `complete_chunk` is a chunk that is passed on unchanged. `not_indexed` says why the record does not become a chunk.
    `group_records` sets `line`.
    """

    name: str
    parent: str
    tenant: str | None
    version: tuple[Any, ...]
    document_id: str
    text: str
    provenance: Record
    fields: Record
    chunk_id: str | None = None
    own_id: str | None = None
    index: int | None = None
    count: int | None = None
    order: tuple[Any, ...] = ()
    complete_chunk: Record | None = None
    not_indexed: Notice | None = None
    line: int = 0

    @property
    def has_failed(self) -> bool:
        return self.not_indexed is not None and self.not_indexed.is_failure

    def to_chunk(self, index: int, count: int, source: Source) -> Record:
        """The chunk as number `index` of `count`. Raises RecordRefused if it would be invalid in a partition."""
        if self.complete_chunk is not None:
            return check(self.complete_chunk)
        fields: Record = {"parent_id": self.parent, "chunk_index": index, "chunk_count": count, **self.fields}
        stated = {"chunk_index": self.index, "chunk_count": self.count}
        moved = {name: value for name, value in stated.items() if value is not None and value != fields[name]}
        if moved:
            fields[ORIGINAL] = {**moved, **fields.get(ORIGINAL, {})}
        fields |= {"producer": source.producer} | ({} if self.tenant is None else {"tenant_id": self.tenant})
        return make_chunk(
            document_id=self.document_id,
            text=self.text,
            provenance=self.provenance,
            span_key=index if self.index is None else self.index,  # `index` shifts if a sibling is refused
            created_at=source.created_at,
            chunk_id=self.chunk_id,
            fields=fields,
        )


def group_records(source: Source, to_draft: Callable[[NumberedRecord], Draft], is_record: IsRecord) -> Iterator[Item]:
    """Families in the order of their last records. Notices of refused records come first, in the file's order.

    `to_draft` raises RecordRefused. A refused record may belong to any family, so it makes every family partial.
    """
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Draft).decode
    is_complete = True
    with closing(Spool()) as spool:
        for entry in read_records(source.path, is_record):
            if isinstance(entry, NumberedRecord):
                try:
                    draft = to_draft(entry)
                    refuse_other_tenant(draft.tenant, source.tenant)
                    spool.add(family_key(draft.parent, draft.tenant), (entry.line, encode(draft)))
                    continue
                except RecordRefused as refusal:
                    entry = Notice(refusal.code, refusal.reason, entry.line)
            is_complete = False
            yield entry
        for family in spool.families():
            members = [msgspec.structs.replace(decode(data), line=line) for line, data in family]
            yield from _settle(members, source, spool, is_complete)


def _settle(members: Sequence[Draft], source: Source, spool: Spool, is_complete: bool) -> Iterator[Item]:
    """Builds a family from the records of its last version. If several records are of one chunk, the last one that did
    not fail counts."""
    for member in members:
        if member.not_indexed is not None:
            yield Notice(member.not_indexed.code, member.not_indexed.reason, member.line, member.not_indexed.is_failure)
    last = next((member for member in reversed(members) if not member.has_failed), None)
    if last is None:
        return
    chosen: dict[object, Draft] = {}
    for member in sorted(members, key=lambda member: not member.has_failed):
        identity = (member.chunk_id, member.own_id) if member.index is None else member.index
        is_current = member.version == last.version
        superseded = chosen.get(identity) if is_current else member
        if is_current:
            chosen[identity] = member
        if superseded is not None and superseded.not_indexed is None:
            reason = f"{superseded.name}: replaced by a later record of the same chunk or of another version"
            yield Notice(RECORD_SUPERSEDED, reason, superseded.line, is_failure=False)
    in_order = list(_with_different_ids(sorted(chosen.values(), key=lambda member: member.order)))
    if any(member.not_indexed is None for member in in_order):
        yield from _make_family(in_order, last, source, spool, is_complete)
    elif not any(member.has_failed for member in in_order):
        yield Empty(family_key(last.parent, last.tenant))


def _with_different_ids(members: Iterable[Draft]) -> Iterator[Draft]:
    repeated: Counter[str | None] = Counter()
    for member in members:
        number = repeated[member.chunk_id]
        if member.own_id is not None:
            repeated[member.chunk_id] += 1
        yield msgspec.structs.replace(member, chunk_id=json_hash([member.chunk_id, number])) if number else member


def _make_family(
    members: Sequence[Draft], last: Draft, source: Source, spool: Spool, is_complete: bool
) -> Iterator[Family | Notice]:
    """The chunks of a family; all or none if the family states a count."""
    numbers = (member.index for member in members if member.index is not None)
    expected = max(member.count or 0 for member in members) or max(numbers, default=-1) + 1
    is_partial = not is_complete or len(members) < expected or any(member.has_failed for member in members)
    if len(members) < expected:
        reason = f"{last.name}: {expected - len(members)} of {expected} chunks are missing"
        yield Notice(FAMILY_INCOMPLETE, reason, members[0].line)
        if last.count is not None:
            return
    accepted, notices = [], []
    for member in members:
        if member.not_indexed is None and (member.chunk_id is None or spool.add_chunk_id(member.chunk_id)):
            accepted.append(member)
        elif member.not_indexed is None:
            reason = f"{last.name}: chunk_id {member.chunk_id!r:.80} belongs to another chunk"
            notices.append(Notice(findings.DUPLICATE_IDS, reason, member.line))
    chunks, refused = _make_chunks(accepted, source)
    notices += refused
    yield from notices
    if notices and last.count is not None:
        reason = f"{last.name}: {len(notices)} of its chunks were refused"
        yield Notice(FAMILY_INCOMPLETE, reason, notices[0].line)
    elif chunks:
        yield Family(chunks, is_partial or bool(notices))


def _make_chunks(members: Sequence[Draft], source: Source) -> tuple[list[Record], list[Notice]]:
    """The chunks that are valid, numbered without gaps, and a notice about each refused one."""
    notices: list[Notice] = []
    while True:  # until none is refused
        chunks, accepted = [], []
        for index, member in enumerate(members):
            try:
                chunks.append(member.to_chunk(index, len(members), source))
                accepted.append(member)
            except RecordRefused as refusal:
                notices.append(Notice(refusal.code, f"{member.name}: {refusal.reason}", member.line))
        if len(accepted) == len(members):
            return chunks, notices
        members = accepted
