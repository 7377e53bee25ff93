"""Progress for people: a tqdm bar on a terminal, nothing in a pipe. Libraries only call back."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def byte_progress(label: str, total: int, *, hidden: bool = False) -> Iterator[Callable[[int], object]]:
    """A callback that takes the number of bytes just done."""
    if hidden or not sys.stderr.isatty():
        yield lambda _bytes: None
        return
    from tqdm import tqdm

    with tqdm(desc=label, total=total, unit="B", unit_scale=True, leave=False) as bar:
        yield bar.update
