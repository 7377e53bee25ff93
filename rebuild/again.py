"""What only reads the chunks is done again where they were rewritten under it."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from chunksink.chunkbus.errors import PartitionChanged

T = TypeVar("T")

TRIES = 5


def again(look: Callable[[], T]) -> T:
    """What the first look gives that no rewriting has broken off; PartitionChanged where all were."""
    for _ in range(TRIES - 1):
        with suppress(PartitionChanged):
            return look()
    return look()
