"""What a run on a home works with: the home's records, the catalog, the engines, and who follows its progress."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.intake import Intake
from chunksink.rebuild.records import Records
from chunksink.rebuild.state import State
from chunksink.sinks.contract import Marker, Sink
from chunksink.sinks.projection import PROJECTION_VERSION


class Advance(Protocol):
    def advance(self, amount: int) -> object:
        """So much more is done."""


Stage = Callable[[str, int | None, str], AbstractContextManager[Advance]]
"""Opens a stage of the work: its name, how much there is of it if that is known, and the unit."""


class Silent:
    """A stage that nobody follows."""

    def advance(self, amount: int) -> object:
        return None


def silent(_name: str, _total: int | None, _unit: str) -> AbstractContextManager[Advance]:
    return nullcontext(Silent())


@dataclass(frozen=True, eq=False)
class Work:
    """One home and its bus root, open for one run. `open_sink` opens sinks that the run does not write."""

    state: State
    catalog: Catalog
    intake: Intake
    records: Records
    sinks: Mapping[str, Sink]
    open_sink: Callable[[str], Sink]
    stage: Stage = silent
    left_behind: Callable[[], Mapping[str, str]] = dict
    """By sink, the folder of the home where builds of it lie though it is configured to be elsewhere."""

    def sink(self, name: str) -> Sink:
        return self.sinks.get(name) or self.open_sink(name)

    @property
    def wants_vectors(self) -> bool:
        """Whether any sink that this run writes does."""
        return any(sink.wants_vectors for sink in self.sinks.values())

    def marker(self, build_id: str, stamp: str = "") -> Marker:
        return Marker(self.state.home_id, build_id, PROJECTION_VERSION, stamp)

    def owns(self, marker: Marker | None) -> bool:
        """Whether a build with this marker was made by this home; what has none is nobody's."""
        return marker is not None and marker.home_id == self.state.home_id

    def refresh(self, *, reread: bool = False) -> None:
        """The catalog says what the bus says now."""
        size = self.intake.pending_bytes(reread=reread)
        with self.stage("validate", size, "B") as bar:
            self.catalog.refresh(self.intake, bar.advance, reread=reread)
