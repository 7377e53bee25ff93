"""How it went with each source of a run: for the ledger, which keeps every attempt, and for the report."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from chunkbus.ledger import Attempt, Ledger, Status
from producers.errors import SOURCE_EMPTY
from producers.memory import Gave, Memory
from producers.produced import Making
from producers.report import IngestReport, Outcome
from producers.shelves import Shelves
from producers.skip import NOTHING, Reading, read_as
from producers.sources import Failure, Signature

_NO_VERSIONS = ("", "", "", "")


@dataclass(slots=True)
class Done:
    """How it went with one source."""

    uri: str
    outcome: Outcome
    versions: tuple[str, str, str, str] = _NO_VERSIONS
    checksum: str | None = None
    keys: Sequence[str] = ()
    codes: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    failures: int = 0
    is_in_ledger: bool = False
    is_document: bool = True
    moment_ns: int | None = None
    source_type: str = "other"

    @property
    def reading(self) -> Reading:
        return (self.checksum, *self.versions)


class Account:
    """The sources of a run as they are done. Failures go to the ledger at once, successes after the commits."""

    def __init__(self, ledger: Ledger, memory: Memory, placement: str, making: Making, run_id: str) -> None:
        self._ledger, self._memory, self._placement = ledger, memory, placement
        self._making, self._run_id = making, run_id
        self.done: list[Done] = []
        self.failures: list[Failure] = []
        self.signatures: list[tuple[str, Signature, str]] = []
        """Of files that were read: what stands for their checksum from now on."""

    def fail_late(self, failure: Failure) -> None:
        """A family of a source that was read could not be written."""
        self.failures.append(failure)
        for done in self.done:
            if done.uri == failure.source_uri:
                done.failures += 1
                done.codes = Counter(done.codes) + Counter([failure.code])
                if done.is_document or len(done.keys) == 1:
                    done.outcome = Outcome.FAILED
                self.record_failure(done)

    def note(self, noted_ns: int) -> None:
        """After the commits: before them neither the ledger nor the memory may say that it is done."""
        successes = [done for done in self.done if not done.failures and not done.is_in_ledger]
        self._ledger.append(*(self._attempt(done, Status.PROCESSED) for done in successes))
        self._memory.note_checksums(
            (path, signature, noted_ns, checksum) for path, signature, checksum in self.signatures
        )
        records = [done for done in self.done if not done.is_document and done.outcome is not Outcome.FAILED]
        gave = [(done.uri, Gave(list(done.keys), done.reading)) for done in records]
        self._memory.note_gave(self._making.tenant, gave)

    def is_in_ledger(self, done: Done) -> bool:
        attempt = self._ledger.last_attempt(done.uri, self._placement)
        is_done = attempt is not None and attempt["status"] == Status.PROCESSED
        is_same = attempt is not None and read_as(attempt) == done.reading
        if done.outcome is Outcome.LEFT_OUT:  # nothing of it was read
            is_same = attempt is not None and attempt["error_type"] in done.codes
        return is_done and is_same

    def record_failure(self, done: Done) -> None:
        """At once: a run that is killed later has still tried."""
        self._ledger.append(self._attempt(done, Status.FAILED))

    def _attempt(self, done: Done, status: Status) -> Attempt:
        failed = next(iter(done.codes), None)
        is_told = status is Status.FAILED or done.outcome is Outcome.LEFT_OUT
        error = failed if is_told else SOURCE_EMPTY if done.outcome is Outcome.EMPTY else None
        left_out = orjson.dumps(dict(done.codes), option=orjson.OPT_SORT_KEYS).decode() if done.codes else None
        return Attempt(
            done.uri,
            done.checksum,
            *done.versions,
            self._making.created_at,
            self._run_id,
            status,
            error,
            self._placement,
            left_out,
        )

    def report(
        self, shelves: Shelves, written: Sequence[str], *, links: int, carried_over: int, pruned: int
    ) -> IngestReport:
        outcomes = Counter(done.outcome for done in self.done)
        codes: Counter[str] = Counter()
        for done in self.done:
            codes.update(done.codes)
        standing = [family.chunks for existing in shelves.existing.values() for family in existing.families.values()]
        return IngestReport(
            partition_key=self._placement,
            run_id=self._run_id,
            written=bool(written),
            partitions=tuple(sorted(written)),
            sources=len(self.done) - outcomes[Outcome.LEFT_OUT],
            processed=outcomes[Outcome.PROCESSED],
            unchanged=outcomes[Outcome.UNCHANGED],
            empty=outcomes[Outcome.EMPTY],
            carried_over=carried_over,
            pruned=pruned,
            documents=len(standing),
            chunks=sum(standing),
            links=links,
            left_out=dict(sorted(codes.items())),
            failed=sum(done.failures for done in self.done),
            failures=tuple(self.failures),
        )
