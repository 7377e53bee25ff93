"""What goes into one request: engines take only so many documents at once, and only so many bytes."""

from collections.abc import Iterator, Sequence


def portions(sizes: Sequence[int], most: int, most_bytes: int) -> Iterator[slice]:
    """Runs of what has these sizes. What is too large for any request goes alone."""
    start = total = 0
    for position, size in enumerate(sizes):
        if position > start and (position - start >= most or total + size > most_bytes):
            yield slice(start, position)
            start, total = position, 0
        total += size
    if start < len(sizes):
        yield slice(start, len(sizes))
