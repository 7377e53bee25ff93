"""Families that cannot stand in one partition, since they hold a chunk of the same id.

Ids that a formula gives cannot meet; records of others may. One of the families goes on, and the other is told of.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chunksink.chunkbus.twins import Twin
from chunksink.producers.families import Family


@dataclass(frozen=True, slots=True)
class Clash:
    """A family that is left out, for the one that has its chunk's id already."""

    family: str
    reason: str


def clashes(twins: Iterable[Twin], family_at: Callable[[int], Family], arrives: Callable[[str], bool]) -> list[Clash]:
    """What is to be left out of families that were written one after the other, and are found by their lines: what
    arrives gives way to what stands, and the later of two arrivals to the earlier."""
    found: dict[str, Clash] = {}
    for twin in twins:
        earlier, later = family_at(twin.earlier_line), family_at(twin.line)
        kept, left = (earlier, later) if arrives(later.key) else (later, earlier)
        if kept.key != left.key and arrives(left.key) and not {kept.key, left.key} & found.keys():
            found[left.key] = Clash(left.key, f"its chunk {twin.chunk_id!r} is one of {kept.name} already")
    return list(found.values())
