"""From files to partitions: what changed is read, what did not is carried over, what fails keeps its chunks.

A file is left as it is while what it gave stands in a valid partition with the same checksum, parser and
canonicaliser; policy, options and tenant are part of the latter. The ledger records every attempt, and gets the row
that a kill after the commit has cost it. Order, and so every byte but times and run ids, follows from the sources
alone. Sources that vanished keep their chunks, which is told, unless they are pruned.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.ledger import Ledger
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.runlog import new_run_id, utc_now
from chunksink.producers.account import Account
from chunksink.producers.batches import read_all
from chunksink.producers.before import Before
from chunksink.producers.commits import Commits
from chunksink.producers.errors import IngestRefused
from chunksink.producers.kinds import AUTO, KINDS, ROWS, Kind
from chunksink.producers.links import make_links
from chunksink.producers.markdown.records import DEFAULT_TENANT
from chunksink.producers.memory import Memory
from chunksink.producers.naming import root_of
from chunksink.producers.outputs import Outputs
from chunksink.producers.partition import FamilyReader, next_created_at
from chunksink.producers.patterns import Patterns
from chunksink.producers.placement import PRODUCER_NAME, Placement
from chunksink.producers.places import Places
from chunksink.producers.produced import Making, RecordReader
from chunksink.producers.prune import Missing, Vanished, is_sure, refuse_emptied, refuse_unsure
from chunksink.producers.report import IngestReport, Progress
from chunksink.producers.rows.names import ROLES, names_with
from chunksink.producers.scratch import scratch
from chunksink.producers.settle import Settling
from chunksink.producers.shelves import Shelves
from chunksink.producers.skip import Skipping
from chunksink.producers.tables import tables_of_a_run
from chunksink.producers.takeovers import refuse_takeovers
from chunksink.producers.wanted import Wanted, find_wanted

Workers = Callable[[int], AbstractContextManager[Executor | None]]
"""Given how many bytes there are to read, processes for it, or none."""


def _no_workers(_bytes: int) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Options:
    """How a run reads. `kind` is a name of `kinds`, or `auto`; `to` a partition, or a rule of `placement`.

    A source is called by its path below `base`; else as it was when its folder was read before; else by the name of
    the folder named and its path below it, so that the name is the same from wherever the folder is reached; a file
    named by itself by its file name.
    """

    kind: str = AUTO
    to: str = "documents"
    base: Path | None = None
    tenant: str | None = None
    exclude: tuple[str, ...] = ()
    """Patterns of what is passed over below the folders named, as in a `.gitignore` file."""
    include: tuple[str, ...] = ()
    """Such patterns of what is read there besides, whatever its suffix: as text, if `kind` does not say otherwise."""
    prune: bool = False
    allow_deletions: int = 0
    """So many sources may be withdrawn though a folder named holds none any more."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """What fields of rows are called, by their roles; all that is named then is rows."""
    every_file: bool = False
    """Read every file and every partition, whatever their times say."""


def ingest(
    paths: Sequence[Path],
    root: BusRoot,
    ledger: Ledger,
    memory: Memory,
    options: Options = Options(),
    *,
    kinds: Mapping[str, Kind] = KINDS,
    workers: Workers = _no_workers,
    run_id: str | None = None,
    now: str | None = None,
    clock: Callable[[], int] = time.time_ns,
    on_progress: Callable[[Progress], object] = lambda _progress: None,
    homes: Collection[Path] = (),
) -> IngestReport:
    """Reads what lies at these paths into partitions. Raises ProducerError where nothing could be begun.

    Where chunksink keeps its own records, which are no sources, is told by `homes`.
    """
    refuse_tenant(options.tenant)
    if not paths:
        raise IngestRefused("no source is named; name folders or files")
    placement = Placement(options.to)
    placement.refuse_misspelt(root)
    with tables_of_a_run() as tables, scratch() as folder, FamilyReader(root) as reader:
        outputs = Outputs.of(root, homes)
        excluded, included = Patterns(options.exclude), Patterns(options.include, "--include")
        known = [place for where, place in memory.places(options.tenant) if placement.shares(where)]
        root_of_path = partial(root_of, base=options.base, known=known)
        kind, kinds = _as_rows(options, kinds) if options.fields else (options.kind, kinds)
        before = Before(ledger, placement.name, kinds, known)
        wanted = find_wanted(
            paths, kind, kinds, root_of_path, before, tables, outputs, excluded, included, prunes=options.prune
        )
        places = Places(wanted, memory, placement, options.tenant)
        if options.prune:
            refuse_unsure(wanted, places)
        trust_memory = not options.every_file
        shelves = Shelves(root, placement, memory, tables, trust_memory=trust_memory, clock=clock)
        refuse_takeovers(wanted, root, memory, shelves, options.tenant)
        created_at = next_created_at(root, shelves.families.stamps(), now or utc_now())
        producer = ManifestProducer(PRODUCER_NAME, _package_version())
        run_id = run_id or new_run_id()
        stamp = {"name": producer.name, "version": producer.version, "run_id": run_id}
        making = Making(created_at, stamp, options.tenant)
        account = Account(ledger, memory, tables, placement.name, making, run_id)
        skipping = Skipping(
            ledger, memory, shelves, placement, options.tenant, wanted, account.given, trust_memory=trust_memory
        )
        noted_ns = clock()
        settling = Settling(account, shelves, reader, tables, placement, making)
        _read(wanted, skipping, settling, making, folder, workers, on_progress)
        vanished = Vanished(
            wanted.scopes, wanted.outputs, excluded, places.former(), lambda uri: wanted.get(uri) is not None
        )
        reads_all = options.kind == AUTO and not options.exclude and places.are_all()
        changes = settling.changes(prune=vanished if options.prune else None, reads_all=reads_all)
        if options.prune:
            refuse_emptied(wanted, places, changes.withdrawn(), options.allow_deletions)
        missing = Missing() if options.prune or not is_sure(wanted, places) else settling.missing(vanished)
        of_others, of_gone = settling.of_others(places), settling.of_gone(places)
        carried_over, pruned = settling.counts(changes)
        commits = Commits(root, shelves, memory, tables, reader, producer, created_at, clock, account.fail_late)
        places.note(prunes=options.prune)
        commits.write(changes)
        account.note(noted_ns)
        links = make_links(root, shelves, tables, memory, all_anew=options.every_file)
        return account.report(
            shelves,
            commits.written,
            links=links,
            carried_over=carried_over,
            pruned=pruned,
            kinds=wanted.by_kind(),
            other_kinds=wanted.other_kinds,
            missing=missing,
            of_gone=of_gone,
            of_others={tenant or DEFAULT_TENANT: number for tenant, number in of_others.items()},
        )


def _as_rows(options: Options, kinds: Mapping[str, Kind]) -> tuple[str, Mapping[str, Kind]]:
    """With the names that the fields have."""
    from chunksink.producers.rows.reader import RowReader

    refuse_fields(options.kind, options.fields)
    reader = RowReader(names_with(options.fields))
    return ROWS, {**kinds, ROWS: replace(kinds[ROWS], records=partial(_same, reader))}


def _same(reader: RecordReader) -> RecordReader:
    return reader


def refuse_fields(kind: str, fields: Mapping[str, str]) -> None:
    if fields and kind not in (AUTO, ROWS):
        raise IngestRefused(f"--field names a field of rows, and {kind!r} are none; leave one of the two out")
    for role, name in fields.items():
        if role not in ROLES or not name:
            raise IngestRefused(f"--field {role}={name}: it is ROLE=NAME, and the roles are {', '.join(ROLES)}")


def refuse_tenant(tenant: str | None) -> None:
    """The specification has this name in the ids of chunks that are of no tenant."""
    if tenant in ("", DEFAULT_TENANT):
        raise IngestRefused(
            f"--tenant {tenant!r} names nobody: it stands for what is of no tenant; "
            "leave --tenant out, or give it another name"
        )


def _read(
    wanted: Wanted,
    skipping: Skipping,
    settling: Settling,
    making: Making,
    folder: Path,
    workers: Workers,
    on_progress: Callable[[Progress], object],
) -> None:
    """Every source in the order of the names; those that are unchanged are not opened."""
    numbers = count(1)
    for failure in wanted.failures:
        settling.fail(next(numbers), failure)
    for left_out in wanted.left_out:
        settling.leave_out(next(numbers), left_out)
    total = len(wanted)
    decisions = map(skipping.decide, numbers, wanted)
    with workers(wanted.size()) as executor, closing(read_all(decisions, making, folder, executor)) as taken:
        for done, (decision, read) in enumerate(taken, start=1):
            outcome = settling.take(decision, read)
            on_progress(Progress(done, total, decision.source.uri, outcome))


def _package_version() -> str:
    try:
        return version("chunksink")
    except PackageNotFoundError:  # run from a checkout that nobody installed
        return "0"
