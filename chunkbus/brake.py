"""How much one run may remove without permission.

Sync and rebuild use all of these limits. Ingest does not use `MIN_SOURCES`, and has stricter rules for files and
folders that are suddenly empty.
"""

MIN_SOURCES = 10
MIN_CHUNKS = 100
"""A run that loses fewer than `MIN_SOURCES` sources and fewer than `MIN_CHUNKS` chunks is never stopped."""
LARGEST_SHARE = 0.2
"""Nor is a run that loses at most this share of all sources and of all chunks."""
SHRUNK_DIVISOR = 4
"""A source counts as shrunk if it keeps less than a quarter of its chunks."""


def allowance_problem(number: object) -> str | None:
    """Why `allow_deletions`, the number of sources that may be lost, cannot have this value; None if it can."""
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return None
    return f"allow_deletions must be a whole number, 0 or more, not {number!r:.100}"


def is_large_loss(lost: int, total: int, least: int) -> bool:
    """Whether the loss is at least `least` and also a large share of the total."""
    return lost >= least and lost > LARGEST_SHARE * total
