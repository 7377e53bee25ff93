"""The partitions that a run looks at, and where each family stands in them."""

import time
from collections.abc import Callable, Iterator

from chunkbus.layout import BusRoot
from producers.families import Family
from producers.memory import Memory
from producers.partition import Existing, read_existing
from producers.placement import Placement


class Shelves:
    """Valid partitions by key. Where a family stands in several, the one of the highest rank counts."""

    def __init__(
        self, root: BusRoot, placement: Placement, memory: Memory, *, trust_memory: bool, clock: Callable[[], int]
    ) -> None:
        noted_ns = clock()
        self.existing = {
            key: read_existing(root, key, memory, noted_ns, trust_memory=trust_memory)
            for key in placement.partitions(root)
        }
        self.surplus: list[tuple[str, str]] = []
        """Partition and family of what a higher rank supersedes: left by a run that was killed between two commits."""
        self._places: dict[str, str] = {}
        for key, existing in self.existing.items():
            for family in existing.families.values():
                self._place(key, family)

    def _place(self, key: str, family: Family) -> None:
        other = self._places.get(family.key)
        if other is not None:
            there = self.existing[other]
            if there.rank_of(there.families[family.key]) > self.existing[key].rank_of(family):
                self.surplus.append((key, family.key))
                return
            self.surplus.append((other, family.key))
        self._places[family.key] = key

    def place_of(self, family_key: str) -> str | None:
        return self._places.get(family_key)

    def find(self, family_key: str) -> Family | None:
        key = self._places.get(family_key)
        return None if key is None else self.existing[key].families[family_key]

    def families(self) -> Iterator[Family]:
        """Each once, where it counts."""
        for family_key, key in self._places.items():
            yield self.existing[key].families[family_key]

    def get(self, key: str) -> Existing:
        """The partition, or an empty one where there is none yet."""
        return self.existing.get(key) or Existing(key, {}, None)


def wait_a_tick() -> None:
    """Until a change would get another time than one that was just made."""
    time.sleep(0.025)
