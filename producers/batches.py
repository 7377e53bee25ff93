"""Files in batches, read here or in other processes, with results in the order of the files."""

import gc
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import partial
from pathlib import Path

from chunksink.producers.errors import IngestRefused
from chunksink.producers.produced import Making
from chunksink.producers.reading import Job, Read, read_jobs
from chunksink.producers.skip import Decision
from chunksink.producers.sources import size_of

_BATCH_BYTES = 2 * 2**20
_BATCH_FILES = 64
_BATCH_SOURCES = 256
"""With those that are not opened: as many wait behind one that is being read."""
_IN_FLIGHT = 32

Taken = tuple[Decision, Read | None]


def read_all(
    decisions: Iterable[Decision], making: Making, folder: Path, workers: Executor | None
) -> Generator[Taken, None, None]:
    """Every source, with what it gives if it is to be read; lines of families wait in files of the folder.

    Who ends it early ends the workers too, before the folder goes: what they are at is not waited for.
    """
    batches = enumerate(_batches(decisions))
    if workers is None:
        for number, batch in batches:
            yield from _join(batch, partial(read_jobs, _jobs(batch), making, folder / str(number)))
        return
    flying: deque[tuple[list[Decision], Future[list[Read]]]] = deque()
    try:
        for number, batch in batches:
            flying.append((batch, _submit(workers, _jobs(batch), making, folder / str(number))))
            while flying and (len(flying) >= _IN_FLIGHT or flying[0][1].done()):
                yield from _land(flying)
        while flying:
            yield from _land(flying)
    except BrokenExecutor as error:
        raise IngestRefused(
            "a process that reads files was ended from outside, probably for lack of memory; nothing was written. "
            "Run again with --jobs 1, which reads one file after the other"
        ) from error


def _submit(workers: Executor, jobs: list[Job], making: Making, waiting: Path) -> Future[list[Read]]:
    """No process is started where there is nothing to read."""
    if jobs:
        return workers.submit(_read_apart, jobs, making, waiting)
    nothing: Future[list[Read]] = Future()
    nothing.set_result([])
    return nothing


def _land(flying: deque[tuple[list[Decision], Future[list[Read]]]]) -> Iterator[Taken]:
    batch, future = flying.popleft()
    return _join(batch, future.result)


def _jobs(batch: Sequence[Decision]) -> list[Job]:
    return [decision.job for decision in batch if decision.job is not None]


def _join(batch: Sequence[Decision], read: Callable[[], list[Read]]) -> Iterator[Taken]:
    """What needs no reading before the first one that does is not kept waiting for it."""
    reads: Iterator[Read] | None = None
    for decision in batch:
        if decision.job is None:
            yield decision, None
        else:
            reads = reads or iter(read())
            yield decision, next(reads)


def _read_apart(batch: Sequence[Job], making: Making, waiting: Path) -> list[Read]:
    """In a process that looks for no cycles while it works: parsers of documents leave many."""
    reads = read_jobs(batch, making, waiting)
    gc.collect(1)  # what the last batches left: all else lives as long as the process
    return reads


def _batches(decisions: Iterable[Decision]) -> Iterator[list[Decision]]:
    batch: list[Decision] = []
    jobs = size = 0
    for decision in decisions:
        batch.append(decision)
        if decision.job is not None:
            jobs += 1
            size += size_of(decision.job.location)
        if size >= _BATCH_BYTES or jobs >= _BATCH_FILES or len(batch) >= _BATCH_SOURCES:
            yield batch
            batch, jobs, size = [], 0, 0
    if batch:
        yield batch
