"""Families that cannot stand in one partition, since they hold a chunk of the same id.

Ids that a formula gives cannot meet; records of others may. One of the families goes on, and the other is told of.
"""

from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import accumulate

from chunkbus.twins import Twin
from producers.families import Family


@dataclass(frozen=True, slots=True)
class Clash:
    """A family that is left out, for the one that has its chunk's id already."""

    family: str
    reason: str


def clashes(families: Sequence[Family], twins: Sequence[Twin], arriving: Container[str]) -> list[Clash]:
    """What is to be left out of these families, which were written one after the other: what arrives gives way to
    what stands, and the later of two arrivals to the earlier."""
    ends = list(accumulate(family.chunks for family in families))
    found: dict[str, Clash] = {}
    for twin in twins:
        earlier, later = (families[bisect_left(ends, line)] for line in (twin.earlier_line, twin.line))
        kept, left = (later, earlier) if later.key not in arriving else (earlier, later)
        if kept is not left and left.key in arriving and not {kept.key, left.key} & found.keys():
            found[left.key] = Clash(left.key, f"its chunk {twin.chunk_id!r} is one of {kept.name} already")
    return list(found.values())
