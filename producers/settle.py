"""What the sources of a run gave, settled family by family, and what that changes in the partitions.

Where two files give the same family the one that is later in the order of names counts, whether it was read now,
stands unchanged, or failed and keeps what it gave last. A family of records that came out as it stands is left so:
its rank does not change and nothing is indexed again.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from chunkbus.manifest import Tombstone
from producers.account import Account, Done
from producers.changes import Changes
from producers.errors import RECORD_SUPERSEDED
from producers.families import Family, key_of_source
from producers.gone import Gone
from producers.partition import FamilyReader
from producers.placement import About, Placement
from producers.produced import Making
from producers.reading import Read, Waiting, without_times
from producers.report import Outcome
from producers.shelves import Shelves
from producers.skip import NOTHING, Decision
from producers.sources import Failure


@dataclass(frozen=True, slots=True)
class _Claim:
    """A family that a source gives: as it was read, or as it stands."""

    done: Done
    about: About | None
    waiting: Waiting | None = None


class Settling:
    """Takes each source in the order of the names; then tells the `changes`."""

    def __init__(
        self,
        account: Account,
        shelves: Shelves,
        reader: FamilyReader,
        placement: Placement,
        making: Making,
    ) -> None:
        self._account, self._shelves, self._reader = account, shelves, reader
        self._placement, self._making = placement, making
        self._claims: dict[str, _Claim] = {}
        self._withdrawn: list[tuple[str, Family]] = []
        self._kept: set[str] = set()
        """Families of documents that could not be read, or have no text now; and those that are gone."""
        self.gone = Gone(shelves, making.tenant)

    def fail(self, failure: Failure) -> None:
        """A source that could not even be looked at."""
        done = Done(failure.source_uri, Outcome.FAILED, codes={failure.code: 1}, failures=1)
        self._account.failures.append(failure)
        self._account.done.append(done)
        self._account.record_failure(done)

    def leave_out(self, failure: Failure) -> None:
        """What lies among the sources and is none: told, and no failure."""
        done = Done(failure.source_uri, Outcome.LEFT_OUT, codes={failure.code: 1})
        done.is_in_ledger = self._account.is_in_ledger(done)
        self._account.done.append(done)

    def take(self, decision: Decision, read: Read | None) -> Outcome:
        source = decision.source
        done = Done(source.uri, decision.outcome or Outcome.PROCESSED, decision.versions, decision.checksum)
        done.is_document = source.kind.chunker is not None
        done.source_type = source.kind.source_type
        done.moment_ns = decision.signature.mtime_ns if decision.signature else None
        self._account.done.append(done)
        if decision.failed is not None:
            self._fail_whole(done, Failure(source.uri, decision.failed.code, decision.failed.reason))
        elif read is None:
            done.keys, done.is_in_ledger = decision.keys, decision.is_in_ledger
            done.codes = decision.left_out
            if decision.is_hashed and decision.signature is not None and decision.checksum is not None:
                self._account.signatures.append((source.location, decision.signature, decision.checksum))
            self._claim_standing(done)
            if not done.is_document:
                self._note_gone(done)
        else:
            self._take_read(done, decision, read)
        if done.is_document and not done.keys:
            self._kept.add(key_of_source(source.uri, self._making.tenant))
        return done.outcome

    def _fail_whole(self, done: Done, failure: Failure) -> None:
        done.outcome, done.failures = Outcome.FAILED, 1
        done.codes = {failure.code: 1}
        self._account.failures.append(failure)
        self._account.record_failure(done)

    def _claim_standing(self, done: Done) -> None:
        for key in done.keys:
            about = None
            if self._placement.rule is not None and done.is_document and done.moment_ns is not None:
                about = About(key, done.source_type, done.moment_ns)
            self._claim(key, _Claim(done, about))

    def _take_read(self, done: Done, decision: Decision, read: Read) -> None:
        done.checksum, done.codes, done.failures = read.checksum, read.codes or NOTHING, read.failures
        if read.signature is not None:
            done.moment_ns = read.signature.mtime_ns
            if read.checksum is not None:
                self._account.signatures.append((decision.source.location, read.signature, read.checksum))
        for left_out in read.left_out:
            if left_out.is_failure:
                self._account.failures.append(
                    Failure(left_out.source_uri, left_out.code, left_out.reason, left_out.line)
                )
        if read.is_unchanged:
            done.outcome, done.keys = Outcome.UNCHANGED, (key_of_source(read.uri, self._making.tenant),)
            done.is_in_ledger = decision.is_in_ledger or self._account.is_in_ledger(done)
            self._claim_standing(done)
            return
        if read.failures:
            self._account.record_failure(done)
        done.keys = [waiting.key for waiting in read.families]
        changed = [self._claim_read(done, waiting) for waiting in read.families]
        goes = read.is_whole and self._note_gone(done, read.emptied)
        if not read.is_whole:
            self._keep_standing(done)
        if not read.families:
            done.outcome = Outcome.FAILED if read.failures else Outcome.EMPTY
        elif not any(changed) and not goes:
            done.outcome = Outcome.UNCHANGED
        if not any(changed) and not goes:
            done.is_in_ledger = self._account.is_in_ledger(done)

    def _keep_standing(self, done: Done) -> None:
        """What a file that failed gave last counts as before, whatever an earlier one gives."""
        for family in self.gone.came_from(done.uri):
            if family.key in self._claims and family.key not in done.keys:
                self._claim(family.key, _Claim(done, None))

    def _note_gone(self, done: Done, emptied: Collection[str] = ()) -> bool:
        """Of a file that was read whole: whether something of it goes."""
        goes = self.gone.note(done.uri, done.keys, emptied)
        self._kept.update(goes)
        return bool(goes)

    def _claim_read(self, done: Done, waiting: Waiting) -> bool:
        """False where the family stands just as it was read."""
        about = About(waiting.key, waiting.source_type, waiting.moment_ns)
        is_new = done.is_document or not self._stands_like(waiting)
        self._claim(waiting.key, _Claim(done, about, waiting if is_new else None))
        return is_new

    def _stands_like(self, waiting: Waiting) -> bool:
        family = self._shelves.find(waiting.key)
        place = self._shelves.place_of(waiting.key)
        if family is None or place is None or family.chunks != waiting.chunks or family.version != waiting.version:
            return False
        standing = list(self._reader.lines(self._shelves.existing[place], family))
        return without_times(standing) == without_times(waiting.lines())

    def _claim(self, key: str, claim: _Claim) -> None:
        before = self._claims.get(key)
        if before is not None and before.done is not claim.done and before.waiting is not None:
            before.done.codes = Counter(before.done.codes) + Counter([RECORD_SUPERSEDED])
        self._claims[key] = claim

    def stands_for(self, key: str) -> bool:
        """Whether a source of this run has a word in what becomes of this family."""
        return key in self._claims or key in self._kept

    def withdraw(self, families: Iterable[tuple[str, Family]]) -> None:
        self._withdrawn = list(families)

    def changes(self) -> Changes:
        changes = Changes()
        if self._placement.rule is None:
            changes.told(self._placement.name)
        for key, family_key in self._shelves.surplus:
            changes.drop(family_key, key)
        for family_key, claim in self._claims.items():
            standing = self._shelves.place_of(family_key)
            if claim.waiting is not None and claim.about is not None:
                changes.arrive(self._placement.key_of(claim.about), claim.waiting, claim.done.uri, standing)
            elif claim.about is not None and standing is not None:
                target = self._placement.key_of(claim.about)
                if target != standing:
                    changes.move(self._shelves.existing[standing].families[family_key], standing, target)
        for family_key in self.gone.keys(self._claims):
            if (standing := self._shelves.place_of(family_key)) is not None:
                changes.drop(family_key, standing)
        for key, family in self._withdrawn:
            is_there = self.gone.was_read(family.origin)
            reason = "its file does not hold it any more" if is_there else "its source vanished"
            tombstone = Tombstone(parent_id=family.key, reason=reason, at=self._making.created_at)
            changes.drop(family.key, key, tombstone)
        for done in self._account.done:
            told = changes.told(self._home(done))
            told.errors.update(done.codes)
            told.failures += done.failures
            told.unchanged += done.outcome is Outcome.UNCHANGED
        return changes

    def _home(self, done: Done) -> str:
        """The partition whose manifest tells of a source: where its first family is, else where it would go to."""
        for key in done.keys:
            claim = self._claims[key]
            if claim.about is not None:
                return self._placement.key_of(claim.about)
            if (standing := self._shelves.place_of(key)) is not None:
                return standing
        own = key_of_source(done.uri, self._making.tenant)
        standing = self._shelves.place_of(own)
        return standing or self._placement.key_of(About(own, done.source_type, done.moment_ns))

    def counts(self) -> tuple[int, int]:
        """Families that belong to no source of this run, and those that went."""
        went = {family.key for _, family in self._withdrawn} | self.gone.keys(self._claims)
        others = (family.key for family in self._shelves.families() if not self.stands_for(family.key))
        return sum(key not in went for key in others), len(went)
