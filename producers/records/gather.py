"""From a file of records to whole families, wherever their records stand in it.

Two readings: the first finds out which records belong together and refuses what can be refused alone, the second
makes one family after the other from their places. So memory holds one family, not the file.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import FAMILY_INCOMPLETE, RECORD_SUPERSEDED, SOURCE_CHANGED, RecordRefused, SourceFailed
from chunksink.producers.produced import Emptied, Item, LeftOut, Making, Produced
from chunksink.producers.records.drafts import Draft
from chunksink.producers.records.files import Place, RecordFile, left_out, parse_record
from chunksink.producers.records.index import FamilyIndex
from chunksink.producers.records.nested import IsRecord

_MOST_NAMED = 10


class Records(Protocol):
    """A `RecordFile`, or what is read as one is."""

    def records(self) -> Iterator[tuple[Place, bytes]]:
        """Every record in order, and where it stands."""

    def unread(self, uri: str) -> Iterator[LeftOut]:
        """What is said of that which could not be read; known when `records` has ended."""


ToDraft = Callable[[Record, bytes], Draft]
"""One form's reading of a record, which is given with its bytes. Raises RecordRefused."""


def gather(path: Path, uri: str, making: Making, to_draft: ToDraft, is_record: IsRecord) -> Iterator[Item]:
    """Families in the order of their last records. What is refused alone comes first, in the file's order."""
    try:
        with RecordFile(path, is_record=is_record) as file, FamilyIndex() as index:
            is_whole = True
            for left in note_all(
                file, uri, lambda place, data: index.add(to_draft(parse_record(data), data).family, place)
            ):
                is_whole = False  # what was refused may be of any family
                yield left
            for places in index.families():
                members = [_Member(place, _read_again(file, place, to_draft)) for place in places]
                yield from _Family(uri, making, index, is_whole).settle(members)
    except SourceFailed as failure:
        yield LeftOut(uri, None, failure.code, failure.reason)


def note_all(file: Records, uri: str, note: Callable[[Place, bytes], None]) -> Iterator[LeftOut]:
    """The first reading: every record is noted, and what is refused then, or cannot be read, is told."""
    for place, data in file.records():
        try:
            note(place, data)
        except RecordRefused as refusal:
            yield left_out(uri, place, refusal.code, refusal.reason)
    yield from file.unread(uri)


def _read_again(file: RecordFile, place: Place, to_draft: ToDraft) -> Draft:
    data = file.read(place)
    try:
        return to_draft(parse_record(data), data)
    except RecordRefused as refusal:
        raise SourceFailed(
            SOURCE_CHANGED, f"{place} was written to while it was read; run again when its writer has finished"
        ) from refusal


@dataclass(frozen=True, eq=False)
class _Member:
    """A draft and where it stands."""

    place: Place
    draft: Draft

    @property
    def slot(self) -> object:
        """What two records share that stand for the same chunk."""
        return self.draft.chunk_id if self.draft.index is None else self.draft.index

    @property
    def has_failed(self) -> bool:
        return self.draft.excuse is not None and self.draft.excuse[2]

    def is_like(self, other: Draft) -> bool:
        """Of the same version."""
        return self.draft.version == other.version


@dataclass(frozen=True)
class _Family:
    """Settles which records of a family count, and in which order."""

    uri: str
    making: Making
    index: FamilyIndex
    is_whole: bool
    """Whether every record of the file was read."""

    def settle(self, members: Sequence[_Member]) -> Iterator[Item]:
        for member in members:
            if member.draft.excuse is not None:
                yield left_out(self.uri, member.place, *member.draft.excuse)
        counting = [member for member in members if not member.has_failed]
        if not counting:
            return
        last = counting[-1].draft
        chosen = {member.slot: member for member in members if member.has_failed and member.is_like(last)}
        for member in counting:
            if not member.is_like(last):
                if member.draft.excuse is None:
                    yield self._superseded(member, "a later record of the file is of another version of it")
                continue
            earlier = chosen.get(member.slot)
            if earlier is not None and earlier.draft.excuse is None:
                yield self._superseded(earlier, f"{member.place} stands for the same chunk")
            chosen[member.slot] = member
        in_order = sorted(chosen.values(), key=lambda member: member.draft.order)
        if any(member.draft.excuse is None for member in in_order):
            yield from self._make(in_order, last)
        elif not any(member.has_failed for member in in_order):
            yield Emptied(last.family)

    def _superseded(self, member: _Member, why: str) -> LeftOut:
        return left_out(self.uri, member.place, RECORD_SUPERSEDED, f"{member.draft.name}: {why}", is_failure=False)

    def _make(self, members: list[_Member], last: Draft) -> Iterator[Produced | LeftOut]:
        """The family's chunks. What no partition would take is found by making it; then its siblings are numbered
        without it, or the family is left out where it states how many they are."""
        missing = _missing([member.draft for member in members])
        if missing:
            yield self._incomplete(members[0], last, f"no record of chunk {missing}")
            if last.count is not None:
                return
        is_partial = not self.is_whole or bool(missing) or any(member.has_failed for member in members)
        members = [member for member in members if member.draft.excuse is None]
        refused = [m for m in members if m.draft.chunk_id is not None and not self.index.claim(m.draft.chunk_id)]
        for member in refused:
            reason = f"{last.name}: chunk_id {member.draft.chunk_id!r:.80} is another chunk's too"
            yield left_out(self.uri, member.place, findings.DUPLICATE_IDS, reason)
        while True:
            if refused and last.count is not None:
                yield self._incomplete(refused[0], last, f"{len(refused)} of its chunks were refused")
                return
            is_partial |= bool(refused)
            members = [member for member in members if member not in refused]
            if not members:
                return
            records: list[Record] = []
            refused = []
            for number, member in enumerate(members):
                try:
                    records.append(member.draft.finish(number, len(members), self.making))
                except RecordRefused as refusal:
                    refused.append(member)
                    yield left_out(self.uri, member.place, refusal.code, f"{last.name}: {refusal.reason}")
            if not refused:
                yield Produced(last.name, last.tenant, records, is_partial)
                return

    def _incomplete(self, member: _Member, last: Draft, what: str) -> LeftOut:
        then = (
            "it goes on without, if not more of the same content stands"
            if last.count is None
            else "it keeps its last good chunks"
        )
        return left_out(self.uri, member.place, FAMILY_INCOMPLETE, f"{last.name}: {what}; {then}")


def _missing(drafts: Sequence[Draft]) -> str:
    """The numbers of the chunks that should be there and are not, in words; empty where none is missing."""
    numbers = sorted(draft.index for draft in drafts if draft.index is not None)
    expected = max((draft.count or 0 for draft in drafts), default=0) or (numbers[-1] + 1 if numbers else 0)
    absent = expected - len(drafts)
    if absent <= 0:
        return ""
    if not numbers:
        return f"{len(drafts)} to {expected - 1}"
    named: list[int] = []
    following = 0
    for number in [*numbers, expected]:
        named += range(following, min(number, following + _MOST_NAMED))
        following = number + 1
    more = f" and {absent - _MOST_NAMED} more" if absent > _MOST_NAMED else ""
    return ", ".join(map(str, named[:_MOST_NAMED])) + more
