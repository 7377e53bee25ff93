"""Errors of rebuilding. Each docstring is the sentence its reader needs; messages add the facts."""

from dataclasses import dataclass
from pathlib import Path

from chunksink.chunkbus.errors import ChunksinkError


class RebuildError(ChunksinkError):
    """Something about building an index that its reader can act on."""


class InvalidBus(RebuildError):
    """Chunks break the contract, so that no complete index can be made of them."""


class NotVerified(RebuildError):
    """What the engine holds is not what was written; the live generation is untouched."""


class NoGeneration(RebuildError):
    """Nothing was ever built here: run `chunksink sync`."""


class NothingBuilt(NoGeneration):
    """There is no live generation, and there was none before."""

    def __init__(self, home: Path) -> None:
        super().__init__(f"no index in {home} yet; build one with `chunksink sync`")
        self.home = home


class OtherModel(RebuildError):
    """Some sinks would hold vectors of one model and some of another: rebuild all of them."""


class HomeLocked(RebuildError):
    """Another run is writing to this home."""


class NotMissing(RebuildError):
    """Only a partition that was taken in, and is not there any more, can be retired."""


@dataclass(frozen=True)
class Removal:
    """More than a run removes unless a flag allows it."""

    removed: int
    total: int
    """Of the sources in the index, or of the documents where an engine refused them."""
    flag: str
    """What allows it."""
    chunks: int = 0
    """That go with them."""

    @property
    def sources(self) -> str:
        """In words, where it counts sources."""
        return f"{self.removed:,} of the {self.total:,} sources in the index, with {self.chunks:,} chunks,"


class Brake(RebuildError):
    """A large share of the index would be removed; the live one is untouched."""

    def __init__(self, removal: Removal, message: str) -> None:
        super().__init__(message)
        self.removal = removal


class UnknownPlan(RebuildError):
    """No plan is named by that; nothing was written."""


class OtherPlan(RebuildError):
    """What a sync would do now is not the plan that was named; nothing was written."""


class OtherHome(RebuildError):
    """The build was made by another home; it is taken over only when that is asked for."""


class UnknownSource(RebuildError):
    """No source of this name is known here."""


class UnknownSink(RebuildError):
    """The live generation has no build in a sink of this name."""


class SeveralSources(RebuildError):
    """A name means more than one source, and only one was to be erased."""
