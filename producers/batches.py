"""Files in batches, read here or in other processes, with results in the order of the files."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, wait
from pathlib import Path

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
            flying.append(workers.submit(read_jobs, batch, making, folder / str(number)))
            if len(flying) >= _IN_FLIGHT:
                yield from flying.popleft().result()
        while flying:
            yield from flying.popleft().result()
    finally:
        for future in flying:
            future.cancel()
        wait(flying)  # they write into the folder


def _batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += size_of(job.path)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # whoever reads it says why it cannot be read
