"""How it went with each source of a run: for the ledger, which keeps every attempt, and for the report."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from sqlite3 import Connection
from typing import Any

import orjson

from chunksink.chunkbus.ledger import Attempt, Ledger, Status
from chunksink.chunkbus.signature import Signature
from chunksink.producers.errors import SOURCE_EMPTY, WITHOUT_TEXT
from chunksink.producers.given import Given
from chunksink.producers.memory import FORMERLY, Memory
from chunksink.producers.produced import Making
from chunksink.producers.prune import Missing
from chunksink.producers.report import IngestReport, LeftOutFrom, Outcome
from chunksink.producers.shelves import Shelves
from chunksink.producers.skip import NOTHING, Reading, codes_in, read_as
from chunksink.producers.sources import Failure

_MOST_NAMED = 5  # of each code
_NO_VERSIONS = ("", "", "", "")


@dataclass(slots=True)
class Done:
    """How it went with one source. `is_read`: this run read its file. `is_whole`: it was read to its end without a
    failure, or stands as it then was."""

    number: int
    uri: str
    outcome: Outcome
    versions: tuple[str, str, str, str] = _NO_VERSIONS
    checksum: str | None = None
    codes: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    failures: int = 0
    is_in_ledger: bool = False
    is_document: bool = True
    is_read: bool = False
    is_whole: bool = False
    moment_ns: int | None = None
    source_type: str = "other"

    @property
    def reading(self) -> Reading:
        return (self.checksum, *self.versions)


class Account:
    """The sources of a run as they are done. Failures go to the ledger at once, successes after the commits."""

    def __init__(
        self, ledger: Ledger, memory: Memory, tables: Connection, placement: str, making: Making, run_id: str
    ) -> None:
        self._ledger, self._memory, self._tables = ledger, memory, tables
        self._placement, self._making, self._run_id = placement, making, run_id
        self.given = Given(tables)
        self.failures: list[Failure] = []

    def put(self, done: Done) -> None:
        """In place of what was known of it."""
        self._tables.execute("insert or replace into done values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _row(done))

    def done(self, where: str = "true", *values: object) -> Iterator[Done]:
        """In the order of the run."""
        rows = self._tables.execute(f"select * from done where {where} order by number", values)
        return map(_done, rows)

    def index(self) -> None:
        """Before many are asked for by name."""
        self._tables.execute("create index done_by_uri on done (uri)")

    def was_whole(self, uri: str | None) -> bool:
        row = self._tables.execute("select 1 from done where uri = ? and is_whole", [uri]).fetchone()
        return row is not None

    def may_withdraw(self, uri: str, key: str, owner: str | None) -> bool:
        """A family of another tenant, where the file's records named that in a run for this one, and the file was not
        read for that tenant itself."""
        was_given = self._memory.gave_once(uri, self._making.tenant, key)
        return was_given and not self._memory.gave_once(uri, owner, key, now=True)

    def add_code(self, number: int, code: str) -> None:
        for done in list(self.done("number = ?", number)):
            done.codes = Counter(done.codes) + Counter([code])
            self.put(done)

    def fail_late(self, failure: Failure) -> None:
        """A family of a source that was read could not be written."""
        self.failures.append(failure)
        for done in list(self.done("uri = ?", failure.source_uri)):
            done.failures += 1
            done.codes = Counter(done.codes) + Counter([failure.code])
            if done.is_document or self.given.count(done.number) == 1:
                done.outcome = Outcome.FAILED
            self.put(done)
            self.record_failure(done, failure.code)

    def sign(self, location: str, signature: Signature, checksum: str) -> None:
        """What stands for the checksum of a file that was read, from now on."""
        row = (os.fsencode(location), orjson.dumps(signature.numbers()), checksum)
        self._tables.execute("insert into signatures values (?, ?, ?)", row)

    def note(self, noted_ns: int) -> None:
        """After the commits: before them neither the ledger nor the memory may say that it is done."""
        successes = self.done("not failures and not is_in_ledger")
        self._ledger.append_all(map(self._success, successes))
        self._memory.note_checksums(
            (os.fsdecode(location), Signature(*orjson.loads(signature)), noted_ns, checksum)
            for location, signature, checksum in self._tables.execute("select * from signatures")
        )
        records = self.done("not is_document and is_read and outcome <> ?", Outcome.FAILED.value)
        gave = ((done.uri, done.reading, chain(self.given.by(done.number), self._formerly(done))) for done in records)
        self._memory.note_gave(self._making.tenant, gave)

    def _formerly(self, done: Done) -> list[tuple[str, int]]:
        """What its records said for other tenants and say no more: else nobody could tell who read it."""
        standing = self._tables.execute(
            "select family from standing where origin = ? and tenant is not ? and not is_surplus",
            [done.uri, self._making.tenant],
        ).fetchall()
        gone = (key for (key,) in standing if not self.given.holds(done.number, key))
        return [(key, FORMERLY) for key in gone if self._memory.gave_once(done.uri, self._making.tenant, key)]

    def recall(self, done: Done) -> None:
        """What the ledger has of it already, where it stands as it was read then."""
        attempt = self._ledger.last_success(done.uri, self._placement)
        if attempt is not None and read_as(attempt) == done.reading:
            done.is_in_ledger, done.codes = True, codes_in(attempt)

    def is_in_ledger(self, done: Done) -> bool:
        attempt = self._ledger.last_success(done.uri, self._placement)
        if attempt is None:
            return False
        if done.outcome is Outcome.LEFT_OUT:  # nothing of it was read
            return attempt["error_type"] in done.codes
        return read_as(attempt) == done.reading

    def record_failure(self, done: Done, code: str | None) -> None:
        """At once: a run that is killed later has still tried."""
        self._ledger.append(self._attempt(done, Status.FAILED, code))

    def _success(self, done: Done) -> Attempt:
        first = next(iter(done.codes), None)
        if done.outcome is Outcome.EMPTY:
            first = first if first in WITHOUT_TEXT else SOURCE_EMPTY
        elif done.outcome is not Outcome.LEFT_OUT:
            first = None
        return self._attempt(done, Status.PROCESSED, first)

    def _attempt(self, done: Done, status: Status, code: str | None) -> Attempt:
        left_out = orjson.dumps(dict(done.codes), option=orjson.OPT_SORT_KEYS).decode() if done.codes else None
        return Attempt(
            done.uri,
            done.checksum,
            *done.versions,
            self._making.created_at,
            self._run_id,
            status,
            code,
            self._placement,
            left_out,
        )

    def report(
        self,
        shelves: Shelves,
        written: Sequence[str],
        *,
        links: int,
        carried_over: int,
        pruned: int,
        kinds: Mapping[str, int],
        other_kinds: Mapping[str, int],
        missing: Missing,
        of_gone: Mapping[str, int],
        of_others: Mapping[str, int],
    ) -> IngestReport:
        counted = self._tables.execute("select outcome, count(*), sum(failures) from done group by outcome").fetchall()
        outcomes = Counter({outcome: sources for outcome, sources, _ in counted})
        codes, sources = Counter[str](), Counter[str]()
        left_out_from: list[LeftOutFrom] = []
        for uri, told in self._tables.execute("select uri, codes from done where codes is not null order by number"):
            codes.update(found := orjson.loads(told))
            sources.update(found.keys())
            left_out_from += [LeftOutFrom(code, uri) for code in found if sources[code] <= _MOST_NAMED]
        documents, chunks = shelves.families.counts()
        return IngestReport(
            partition_key=self._placement,
            run_id=self._run_id,
            written=bool(written),
            partitions=tuple(sorted(written)),
            sources=outcomes.total() - outcomes[Outcome.LEFT_OUT],
            processed=outcomes[Outcome.PROCESSED],
            unchanged=outcomes[Outcome.UNCHANGED],
            empty=outcomes[Outcome.EMPTY],
            carried_over=carried_over,
            pruned=pruned,
            documents=documents,
            chunks=chunks,
            links=links,
            left_out=dict(sorted(codes.items())),
            left_out_from=tuple(sorted(left_out_from, key=lambda named: named.code)),
            failed=sum(failures for _, _, failures in counted),
            failures=tuple(self.failures),
            kinds=kinds,
            other_kinds=other_kinds,
            missing=missing.sources,
            missing_from=missing.first,
            of_gone=of_gone,
            of_others=of_others,
        )


def _row(done: Done) -> tuple[object, ...]:
    moment_ns = None if done.moment_ns is None else str(done.moment_ns)  # some are more than SQLite's integers hold
    codes = orjson.dumps(dict(done.codes)) if done.codes else None
    flags = (done.is_in_ledger, done.is_document, done.is_read, done.is_whole)
    about = (done.number, done.uri, done.outcome.value, orjson.dumps(done.versions), done.checksum)
    return (*about, codes, done.failures, *flags, moment_ns, done.source_type)


def _done(row: tuple[Any, ...]) -> Done:
    number, uri, outcome, versions, checksum, codes, failures, *flags, moment_ns, source_type = row
    is_in_ledger, is_document, is_read, is_whole = map(bool, flags)
    return Done(
        number,
        uri,
        Outcome(outcome),
        tuple(orjson.loads(versions)),
        checksum,
        orjson.loads(codes) if codes else NOTHING,
        failures,
        is_in_ledger,
        is_document,
        is_read,
        is_whole,
        None if moment_ns is None else int(moment_ns),
        source_type,
    )
