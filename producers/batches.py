"""Files in batches, read here or in other processes, with results in the order of the files."""

import gc
import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from pathlib import Path

from producers.errors import IngestRefused
from producers.produced import Making
from producers.reading import Job, Read, read_jobs

_BATCH_BYTES = 2 * 2**20
_BATCH_FILES = 64
_IN_FLIGHT = 32


def read_all(
    jobs: Iterable[Job], making: Making, folder: Path, workers: Executor | None
) -> Generator[Read, None, None]:
    """What each file gives; lines of families wait in files of the folder."""
    batches = enumerate(_batches(jobs))
    if workers is None:
        for number, batch in batches:
            yield from read_jobs(batch, making, folder / str(number))
        return
    flying: deque[Future[list[Read]]] = deque()
    try:
        for number, batch in batches:
            flying.append(workers.submit(_read_apart, batch, making, folder / str(number)))
            if len(flying) >= _IN_FLIGHT:
                yield from flying.popleft().result()
        while flying:
            yield from flying.popleft().result()
    except BrokenExecutor as error:
        raise IngestRefused(
            "a process that reads files was ended from outside, probably for lack of memory; nothing was written. "
            "Run again with --jobs 1, which reads one file after the other"
        ) from error
    finally:
        for future in flying:
            future.cancel()
        wait(flying)  # they write into the folder


def _read_apart(batch: Sequence[Job], making: Making, waiting: Path) -> list[Read]:
    """In a process that looks for no cycles while it works: parsers of documents leave many."""
    reads = read_jobs(batch, making, waiting)
    gc.collect(1)  # what the last batches left: all else lives as long as the process
    return reads


def _batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += size_of(job.location)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def size_of(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0  # whoever reads it says why it cannot be read
