"""The partitions that a run looks at, and where each family stands in them."""

from collections.abc import Callable
from datetime import datetime
from sqlite3 import Connection

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.writer import finish_commit
from chunksink.producers.families import Family
from chunksink.producers.memory import Memory
from chunksink.producers.partition import Existing, read_existing
from chunksink.producers.placement import Placement
from chunksink.producers.standing import Standing


class Shelves:
    """Valid partitions by key. Where a family stands in several, the one of the highest rank counts."""

    def __init__(
        self,
        root: BusRoot,
        placement: Placement,
        memory: Memory,
        tables: Connection,
        *,
        trust_memory: bool,
        clock: Callable[[], int],
    ) -> None:
        noted_ns = clock()
        self.others = frozenset(placement.others(root))
        """Partitions that an ingest wrote and this one leaves alone; links lead to and from them."""
        self.families = Standing(tables)
        self.existing: dict[str, Existing] = {}
        for key in placement.partitions(root):
            finish_commit(root, key)
            self.existing[key] = read_existing(root, key, memory, self.families, noted_ns, trust_memory=trust_memory)
        self.families.index()
        if len(self.existing) > 1:
            self._rank()

    def _rank(self) -> None:
        """A run that was killed between two commits leaves what a higher rank supersedes."""
        for family_key in self.families.stand_twice():
            *lower, _ = sorted(self.families.partitions_of(family_key), key=lambda key: self._rank_in(key, family_key))
            for key in lower:
                self.families.supersede(key, family_key)

    def _rank_in(self, key: str, family_key: str) -> tuple[datetime, str]:
        family = self.families.get(key, family_key)
        assert family is not None
        return self.existing[key].rank_of(family)

    def place_of(self, family_key: str) -> str | None:
        found = self.families.find(family_key)
        return None if found is None else found[0]

    def find(self, family_key: str) -> Family | None:
        found = self.families.find(family_key)
        return None if found is None else found[1]

    def get(self, key: str) -> Existing:
        """The partition, or an empty one where there is none yet."""
        return self.existing.get(key) or Existing(key, None)

    def rewrite(self, key: str, manifest: bytes) -> None:
        """The partition holds what was drafted."""
        self.families.rewrite(key)
        self.existing[key] = Existing(key, manifest)
