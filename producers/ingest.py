"""From files to partitions: what changed is read, what did not is carried over, what fails keeps its chunks.

A file is left as it is while what it gave stands in a valid partition with the same checksum, parser and
canonicaliser; policy, options and tenant are part of the latter. The ledger records every attempt, and gets the row
that a kill after the commit has cost it. Order, and so every byte but times and run ids, follows from the sources
alone. Sources that vanished keep their chunks, unless they are pruned.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path

from chunkbus.layout import BusRoot
from chunkbus.ledger import Ledger
from chunkbus.manifest import ManifestProducer
from chunkbus.runlog import new_run_id, utc_now
from producers.account import Account
from producers.batches import read_all, size_of
from producers.commits import Commits
from producers.errors import IngestRefused
from producers.kinds import AUTO, KINDS, Kind
from producers.links import links_file, write_links
from producers.markdown.records import DEFAULT_TENANT
from producers.memory import Memory
from producers.partition import FamilyReader, next_created_at
from producers.placement import PRODUCER_NAME, Placement
from producers.places import Places
from producers.produced import Making
from producers.prune import refuse_empty, vanished
from producers.reading import Job, Read
from producers.report import IngestReport, Progress
from producers.scratch import scratch
from producers.settle import Settling
from producers.shelves import Shelves
from producers.skip import Decision, Skipping
from producers.wanted import Wanted, find_wanted, former_kinds

Workers = Callable[[int], AbstractContextManager[Executor | None]]
"""Given how many bytes there are to read, processes for it, or none."""


def _no_workers(_bytes: int) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Options:
    """How a run reads. `kind` is a name of `kinds`, or `auto`; `to` a partition, or a rule of `placement`.

    A source is called by its path below `base`; else by the name of the folder named and its path below it, so that
    the name is the same from wherever the folder is reached; a file named by itself by its file name.
    """

    kind: str = AUTO
    to: str = "documents"
    base: Path | None = None
    tenant: str | None = None
    prune: bool = False
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
) -> IngestReport:
    """Reads what lies at these paths into partitions. Raises ProducerError where nothing could be begun."""
    _refuse_tenant(options.tenant)
    placement = Placement(options.to)
    wanted = find_wanted(paths, options.kind, kinds, options.base, former_kinds(ledger, placement.name, kinds))
    places = Places(wanted, memory, placement, options.tenant)
    if options.prune:
        refuse_empty(wanted)
        places.refuse_others()
    trust_memory = not options.every_file
    shelves = Shelves(root, placement, memory, trust_memory=trust_memory, clock=clock)
    created_at = next_created_at(root, shelves.existing.values(), now or utc_now())
    producer = ManifestProducer(PRODUCER_NAME, _package_version())
    run_id = run_id or new_run_id()
    stamp = {"name": producer.name, "version": producer.version, "run_id": run_id}
    making = Making(created_at, stamp, options.tenant)
    skipping = Skipping(ledger, memory, shelves, placement, options.tenant, wanted.sources, trust_memory=trust_memory)
    account = Account(ledger, memory, placement.name, making, run_id)
    noted_ns = clock()
    with FamilyReader(root) as reader, scratch() as folder:
        settling = Settling(account, shelves, reader, placement, making)
        _read(wanted, skipping, settling, making, folder, workers, on_progress)
        if options.prune:
            settling.withdraw(vanished(wanted.found, shelves, settling.stands_for, settling.gone, options.tenant))
        changes = settling.changes()
        carried_over, pruned = settling.counts()
        commits = Commits(root, shelves, memory, reader, producer, created_at, clock, account.fail_late)
        places.note()
        commits.write(changes)
    account.note(noted_ns)
    links = commits.links + _lost_links(root, changes.by_partition, commits.written)
    return account.report(shelves, commits.written, links=links, carried_over=carried_over, pruned=pruned)


def _refuse_tenant(tenant: str | None) -> None:
    """The ids of chunks would be those that sources of no tenant get."""
    if tenant in ("", DEFAULT_TENANT):
        raise IngestRefused(
            f"--tenant {tenant!r} names nobody: the ids of its chunks would be those of chunks without a tenant; "
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
    for failure in wanted.found.failures:
        settling.fail(failure)
    for left_out in wanted.found.left_out:
        settling.leave_out(left_out)
    pending: deque[Decision] = deque()
    total = len(wanted.sources)

    def jobs() -> Iterator[Job]:
        for source in wanted.sources:
            pending.append(decision := skipping.decide(source))
            if decision.job is not None:
                yield decision.job
            else:
                go_on()

    def take(read: Read | None) -> None:
        decision = pending.popleft()
        outcome = settling.take(decision, read)
        on_progress(Progress(next(done), total, decision.source.uri, outcome))

    def go_on() -> None:
        """To the next source that is being read."""
        while pending and pending[0].job is None:
            take(None)

    done = count(1)
    size = sum(size_of(source.location) for source in wanted.sources)
    with workers(size) as executor, closing(read_all(jobs(), making, folder, executor)) as reads:
        for read in reads:
            take(read)
            go_on()


def _lost_links(root: BusRoot, looked_at: Iterable[str], written: Sequence[str]) -> int:
    """Link artifacts that somebody removed, made again from the chunks."""
    lost = [key for key in looked_at if key not in written and root.manifest_file(key).exists()]
    return sum(write_links(root, key) for key in lost if not links_file(root, key).exists())


def _package_version() -> str:
    try:
        return version("chunksink")
    except PackageNotFoundError:  # run from a checkout that nobody installed
        return "0"
