"""What the sources of a run gave, settled family by family, and what that changes in the partitions.

Where two files give the same family the one that is later in the order of names counts, whether it was read now,
stands unchanged, or failed and keeps what it gave last. A family of records that came out as it stands is left so:
its rank does not change and nothing is indexed again.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from sqlite3 import Connection

from chunksink.producers.account import Account, Done
from chunksink.producers.changes import Changes
from chunksink.producers.claims import Claims
from chunksink.producers.errors import FOLDER_IS_OUTPUT, SOURCE_IN_ANOTHER_FILE
from chunksink.producers.families import Family, key_of_source
from chunksink.producers.gone import Gone
from chunksink.producers.partition import FamilyReader
from chunksink.producers.placement import About, Placement
from chunksink.producers.places import Places
from chunksink.producers.produced import Making
from chunksink.producers.prune import Missing, Vanished
from chunksink.producers.reading import Read, without_times
from chunksink.producers.report import Outcome
from chunksink.producers.shelves import Shelves
from chunksink.producers.skip import NOTHING, Decision
from chunksink.producers.sources import Failure
from chunksink.producers.waiting import Waiting


class Settling:
    """Takes each source in the order of the names; then tells the `changes`."""

    def __init__(
        self,
        account: Account,
        shelves: Shelves,
        reader: FamilyReader,
        tables: Connection,
        placement: Placement,
        making: Making,
    ) -> None:
        self._account, self._shelves, self._reader, self._tables = account, shelves, reader, tables
        self._placement, self._making = placement, making
        self._claims = Claims(tables)
        self._gone = Gone(shelves, making.tenant)
        self._given = account.given

    def fail(self, number: int, failure: Failure) -> None:
        """A source that could not even be looked at."""
        done = Done(number, failure.source_uri, Outcome.FAILED, codes={failure.code: 1}, failures=1)
        self._account.failures.append(failure)
        self._account.put(done)
        self._account.record_failure(done, failure.code)

    def leave_out(self, number: int, failure: Failure) -> None:
        """What lies among the sources and is none: told, and no failure."""
        done = Done(number, failure.source_uri, Outcome.LEFT_OUT, codes={failure.code: 1})
        done.is_in_ledger = self._account.is_in_ledger(done)
        self._account.put(done)

    def take(self, decision: Decision, read: Read | None) -> Outcome:
        done = self._begin(decision)
        if decision.failed is not None:
            self._fail_whole(done, Failure(done.uri, decision.failed.code, decision.failed.reason))
        elif read is None:
            self._take_unread(done, decision)
        else:
            self._take_read(done, decision, read)
        if done.is_document and not self._given.count(done.number):
            self._claims.stay_silent(key_of_source(done.uri, self._making.tenant))
        self._account.put(done)
        return done.outcome

    def _begin(self, decision: Decision) -> Done:
        source = decision.source
        return Done(
            decision.number,
            source.uri,
            decision.outcome or Outcome.PROCESSED,
            decision.versions,
            decision.checksum,
            is_document=source.kind.chunker is not None,
            moment_ns=decision.signature.mtime_ns if decision.signature else None,
            source_type=source.kind.source_type,
        )

    def _take_unread(self, done: Done, decision: Decision) -> None:
        done.codes, done.is_in_ledger = decision.codes, decision.is_in_ledger
        if decision.is_hashed and decision.signature is not None and decision.checksum is not None:
            self._account.sign(decision.source.location, decision.signature, decision.checksum)
        self._claim_standing(done)
        if not done.is_document:
            self._note_gone(done)

    def _fail_whole(self, done: Done, failure: Failure) -> None:
        done.outcome, done.failures = Outcome.FAILED, 1
        done.codes = {failure.code: 1}
        self._account.failures.append(failure)
        self._account.record_failure(done, failure.code)

    def _claim_standing(self, done: Done) -> None:
        for key, _ in self._given.by(done.number):
            about = None
            if self._placement.rule is not None and done.is_document and done.moment_ns is not None:
                about = About(key, done.source_type, done.moment_ns)
            self._claim(done, key, about)

    def _take_read(self, done: Done, decision: Decision, read: Read) -> None:
        done.is_read = True
        done.checksum, done.codes, done.failures = read.checksum, read.codes or NOTHING, read.failures
        if read.signature is not None:
            done.moment_ns = read.signature.mtime_ns
            if read.checksum is not None:
                self._account.sign(decision.source.location, read.signature, read.checksum)
        for left_out in read.left_out:
            if left_out.is_failure:
                self._account.failures.append(
                    Failure(left_out.source_uri, left_out.code, left_out.reason, left_out.line)
                )
        if read.is_unchanged:
            done.outcome = Outcome.UNCHANGED
            self._given.put(done.number, key_of_source(read.uri, self._making.tenant))
            self._account.recall(done)
            self._claim_standing(done)
            return
        if read.failures:
            self._account.record_failure(done, read.failed)
        changes = False
        for place, waiting in enumerate(read.beside.families() if read.beside else ()):
            self._given.put(done.number, waiting.key, place)
            changes |= self._claim_read(done, waiting)
        if read.is_whole:
            changes |= self._note_gone(done, read.beside.emptied() if read.beside and read.emptied else ())
        else:
            self._keep_standing(done)
        if not read.families:
            done.outcome = Outcome.FAILED if read.failures else Outcome.EMPTY
        elif not changes:
            done.outcome = Outcome.UNCHANGED
        if not changes:
            done.is_in_ledger = self._account.is_in_ledger(done)

    def _keep_standing(self, done: Done) -> None:
        """What a file that failed gave last counts as before, whatever an earlier one gives."""
        for family in self._gone.came_from(done.uri):
            if family.key in self._claims and not self._given.holds(done.number, family.key):
                self._claim(done, family.key, None)

    def _note_gone(self, done: Done, emptied: Iterable[str] = ()) -> bool:
        """Of a file that was read whole: whether something of it goes."""
        done.is_whole = True
        something = False
        for key in self._gone.goes(done.uri, partial(self._given.holds, done.number), emptied):
            self._claims.stay_silent(key, goes=True)
            something = True
        return something

    def _claim_read(self, done: Done, waiting: Waiting) -> bool:
        """False where the family stands just as it was read, or better."""
        about = About(waiting.key, waiting.source_type, waiting.moment_ns)
        is_new = done.is_document or not self._stands_so(waiting)
        self._claim(done, waiting.key, about, waiting if is_new else None, is_read=True)
        return is_new

    def _stands_so(self, waiting: Waiting) -> bool:
        found = self._shelves.families.find(waiting.key)
        if found is None:
            return False
        place, family = found
        if waiting.is_partial and _is_of_more(family, waiting):
            return True
        if family.chunks != waiting.chunks or family.version != waiting.version:
            return False
        standing = list(self._reader.lines(self._shelves.existing[place], family))
        return without_times(standing) == without_times(waiting.lines.read())

    def _claim(
        self, done: Done, key: str, about: About | None, waiting: Waiting | None = None, *, is_read: bool = False
    ) -> None:
        superseded = self._claims.put(key, done.number, about, waiting, is_read=is_read)
        if superseded is not None:
            self._account.add_code(superseded, SOURCE_IN_ANOTHER_FILE)

    def changes(self, *, prune: Vanished | None = None, reads_all: bool = False) -> Changes:
        """With `prune`, what vanished from these folders, or from files that were read whole, is withdrawn. A run that
        `reads_all` has the last word on what every partition tells of failures."""
        changes = Changes(self._tables)
        if self._placement.rule is None:
            changes.told(self._placement.name)
        elif reads_all:
            for key in self._shelves.existing:
                changes.told(key)
        for key, family_key in self._shelves.families.surplus():
            changes.drop(family_key, key)
        for claim in self._claims.placed():
            target = self._placement.key_of(claim.about)
            if claim.read is not None:
                changes.arrive(target, *claim.read, claim.standing)
            elif claim.standing is not None and target != claim.standing:
                family = self._shelves.find(claim.about.family)
                assert family is not None
                changes.move(family, claim.standing, target)
        for family_key, standing in self._claims.leaving():
            if standing is not None:
                changes.drop(family_key, standing)
        for key, family_key, _, reason in self._not_found(prune) if prune is not None else ():
            changes.withdraw(family_key, key, reason, self._making.created_at)
        for done in self._account.done():
            if FOLDER_IS_OUTPUT in done.codes:
                continue  # the first run does not find its own bus yet: else the second would write all anew
            told = changes.told(self._home(done))
            told.errors.update(done.codes)
            told.failures += done.failures
            told.unchanged += done.outcome is Outcome.UNCHANGED
        return changes

    def missing(self, vanished: Vanished) -> Missing:
        """What would be withdrawn, if that were asked for."""
        count = 0
        first: list[str] = []
        for _, family_key, origin, _ in self._not_found(vanished):
            count += 1
            family = self._shelves.find(family_key) if self._account.was_whole(origin) else None
            name = origin if family is None else family.name
            if name not in first:
                first = sorted([*first, name])[: Missing.NAMED]
        return Missing(count, tuple(first))

    def of_others(self, places: Places) -> dict[str | None, int]:
        """How many sources from the folders and files of this run stand for each other tenant, and stay as they are."""
        found = {}
        for tenant, scopes in places.read_for_others():
            origins = (origin for _, _, origin, _ in self._claims.unspoken(tenant))
            if number := sum(any(scope.names(origin) for scope in scopes) for origin in origins):
                found[tenant] = number
        return found

    def of_gone(self, places: Places) -> dict[str, int]:
        """How many sources that were read from folders which are not there any more keep their chunks."""
        gone = list(places.gone())
        names = [origin for _, _, origin, _ in self._claims.unspoken(self._making.tenant)] if gone else []
        found = {str(place.folder): sum(map(place.names, names)) for place in gone}
        return {folder: number for folder, number in found.items() if number}

    def _not_found(self, vanished: Vanished) -> Iterator[tuple[str, str, str, str]]:
        """Partition, key and file of each family, and in which way it is not there any more."""
        self._account.index()
        for others in (False, True):
            for key, family_key, origin, tenant in self._claims.unspoken(self._making.tenant, others=others):
                was_whole = self._account.was_whole(origin)
                if not was_whole and not vanished.holds(origin):
                    continue
                if others and not self._account.may_withdraw(origin, family_key, tenant):
                    continue
                reason = "its file does not hold it any more" if was_whole else "its source vanished"
                yield key, family_key, origin, reason

    def _home(self, done: Done) -> str:
        """The partition whose manifest tells of a source: where its first family is, else where it would go to."""
        if self._placement.rule is None:
            return self._placement.name
        for key in self._given.in_order(done.number):
            if (about := self._claims.about(key)) is not None:
                return self._placement.key_of(about)
            if (standing := self._shelves.place_of(key)) is not None:
                return standing
        own = key_of_source(done.uri, self._making.tenant)
        standing = self._shelves.place_of(own)
        return standing or self._placement.key_of(About(own, done.source_type, done.moment_ns))

    def counts(self, changes: Changes) -> tuple[int, int]:
        """Families that belong to no source of this run, and those that went."""
        return self._claims.others(), changes.withdrawn() + sum(1 for _ in self._claims.leaving())


def _is_of_more(family: Family, waiting: Waiting) -> bool:
    """Whether more stands of the same content than what was read of it now, when a part failed. What says nothing of
    its content is taken for the same."""
    return family.version[0] == waiting.version[0] and family.chunks > waiting.chunks
