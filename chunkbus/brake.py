"""How much one run may take away unasked. Ingest, sync and rebuild stop at the same limits."""

LEAST_SOURCES = 10
LEAST_CHUNKS = 100
LARGEST_SHARE = 0.2
SHRUNK = 4
"""A source counts as shrunk when it was more than this many times as large."""


def is_much(lost: int, total: int, least: int) -> bool:
    """Whether so many of so many are a large share, and not just a few."""
    return lost >= least and lost > LARGEST_SHARE * total
