"""What a run changes in its partitions, as data: what comes, what goes and where to, what the manifest tells."""

from collections import Counter
from dataclasses import dataclass, field

from chunkbus.manifest import Tombstone
from producers.families import Family
from producers.reading import Waiting


@dataclass(frozen=True, slots=True)
class Arrival:
    """A family that was read, with the file that it came from; or, from another partition, one that stands there."""

    origin: str | None
    waiting: Waiting | None = None
    moved_from: str | None = None


@dataclass(slots=True)
class Told:
    """What the sources of a run that belong to a partition have to tell in its manifest."""

    errors: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    unchanged: int = 0


@dataclass
class Change:
    """What happens to one partition. `told` is None where no source of the run belongs to it."""

    arrivals: dict[str, Arrival] = field(default_factory=dict)
    departures: dict[str, str | None] = field(default_factory=dict)
    """Families that go, and the partition that they go to, if to any."""
    tombstones: list[Tombstone] = field(default_factory=list)
    told: Told | None = None


class Changes:
    """The changes of a run by partition."""

    def __init__(self) -> None:
        self.by_partition: dict[str, Change] = {}

    def of(self, key: str) -> Change:
        return self.by_partition.setdefault(key, Change())

    def told(self, key: str) -> Told:
        change = self.of(key)
        change.told = change.told or Told()
        return change.told

    def arrive(self, key: str, waiting: Waiting, origin: str, standing: str | None) -> None:
        """The family is new, or has another version than where it stands."""
        self.of(key).arrivals[waiting.key] = Arrival(origin, waiting)
        if standing is not None and standing != key:
            self.of(standing).departures[waiting.key] = key

    def move(self, family: Family, standing: str, key: str) -> None:
        """The family belongs into another partition than where it stands."""
        self.of(key).arrivals[family.key] = Arrival(family.origin, moved_from=standing)
        self.of(standing).departures[family.key] = key

    def refuse(self, key: str, family_key: str, code: str) -> Arrival:
        """The family does not arrive after all, and so stays where it stands."""
        change = self.of(key)
        for other in self.by_partition.values():
            if other.departures.get(family_key) == key:
                del other.departures[family_key]
        if change.told is not None:
            change.told.errors[code] += 1
            change.told.failures += 1
        return change.arrivals.pop(family_key)

    def drop(self, family_key: str, standing: str, tombstone: Tombstone | None = None) -> None:
        change = self.of(standing)
        change.departures[family_key] = None
        if tombstone is not None:
            change.tombstones.append(tombstone)
