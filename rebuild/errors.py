"""The errors of this package. A class's docstring says in general what happened; an error's message adds the facts."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunksink.chunkbus.errors import ChunksinkError


class RebuildError(ChunksinkError):
    """An error while building or updating an index that the user can fix."""


class InvalidBus(RebuildError):
    """Chunks break the contract, so no complete index can be made from them."""


class OtherBus(RebuildError):
    """The bus has partitions, but none of those that the index was made from; nothing was read."""


class NotVerified(RebuildError):
    """An engine differs from what was written, or the chunks kept changing during a rebuild."""


class WorseAnswers(RebuildError):
    """The new generation gives worse answers than the live one, which is untouched."""

    def __init__(self, message: str, evaluation: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.evaluation = evaluation


class NoGeneration(RebuildError):
    """The home has no such generation: no live or no previous one."""


class NothingBuilt(NoGeneration):
    """This home has never had a live generation."""

    def __init__(self, home: Path) -> None:
        build = f"build one with `chunksink sync --home {shlex.quote(str(home))}`"
        super().__init__(f"no index in {home.absolute()} yet; {build}")
        self.home = home


class OtherModel(RebuildError):
    """Some sinks would have vectors of one model and some of another: rebuild all of them."""


class HomeLocked(RebuildError):
    """Another run is writing to this home."""


class BackupUnreadable(RebuildError):
    """The file is not a backup, or is incomplete or damaged; nothing was restored."""


class HomeNotEmpty(RebuildError):
    """The home has records already. With --force, a backup replaces them."""


class NotMissing(RebuildError):
    """Only a known partition that is gone can be retired."""


@dataclass(frozen=True)
class Removal:
    """A removal that needs a flag. `removed` counts sources that are removed or lose most of their chunks, `total` all
    sources. If a flip was stopped because an engine refused many documents, both count documents."""

    removed: int
    total: int
    flag: str
    """The flag that allows it."""
    chunks: int = 0
    """Chunks that are removed with these sources, and from sources that shrink."""

    @property
    def sources(self) -> str:
        """The numbers of sources and chunks in words."""
        return f"{self.removed:,} of the {self.total:,} sources in the index, with {self.chunks:,} chunks,"


class Brake(RebuildError):
    """A run would remove a large share of the live index, or an engine refused a large share of a new one. The live
    index is untouched."""

    def __init__(self, removal: Removal, message: str) -> None:
        super().__init__(message)
        self.removal = removal


class UnknownPlan(RebuildError):
    """The hash names no plan; nothing was written."""


class ComputeError(RebuildError):
    """Workers could not be started, or could not do their part. What they had done is kept for the next run."""


class OtherPlan(RebuildError):
    """The named plan is out of date; nothing was written."""


class OtherHome(RebuildError):
    """The build was made by another home; only --adopt takes it over."""


class UnknownSource(RebuildError):
    """No source of this name is known here."""


class UnknownChunk(RebuildError):
    """The name matches no chunk, or several sources."""


class UnknownRun(RebuildError):
    """No run of this home has this id, or more than one id begins with it."""


class UnknownSink(RebuildError):
    """The live generation has no build in a sink of this name."""


class SeveralSources(RebuildError):
    """A name matches several sources; nothing was done."""
