"""What every producer of records yields, whatever it reads: whole families, what it had to leave out, what is empty."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from chunksink.chunkbus.chunk import Record


@dataclass(frozen=True)
class Produced:
    """All chunks of one source, in order, ready for a partition. `is_partial`: parts of it failed."""

    source_uri: str
    tenant: str | None
    records: Sequence[Record]
    is_partial: bool = False


@dataclass(frozen=True)
class LeftOut:
    """A record, event or source that did not become chunks: where it stands, its code, and the reason in words.

    A failure is something to mend; what is left out by rule (a record that says `skipped`) is none.
    """

    source_uri: str
    line: int | None
    code: str
    reason: str
    is_failure: bool = True


@dataclass(frozen=True)
class Emptied:
    """The key of a family whose records say, all without a failure, that there is nothing to index: not a word, or
    `skipped`. What stands of it goes; a family that is not spoken of at all stays."""

    family: str


Tell = Callable[[str], object]
"""Of a source that is read whole, but otherwise than may be meant: a code of `errors.ODD`."""


def untold(code: str) -> None:
    """Tells nobody."""


Item = Produced | LeftOut | Emptied


@dataclass(frozen=True)
class Making:
    """What a run stamps on the chunks that it makes."""

    created_at: str
    producer: Record
    tenant: str | None = None
    """For sources that name none themselves."""


class RecordReader(Protocol):
    """Turns one file of records into families. What it does to them has a version, as a chunker's policy has."""

    @property
    def parser(self) -> tuple[str, str]:
        """Name and version."""

    @property
    def canonicalizer(self) -> tuple[str, str]:
        """Name and version, with every policy and option that moves a boundary."""

    def read(self, path: Path, uri: str, making: Making) -> Iterator[Item]:
        """In an order that follows from the input alone, in bounded memory where the input's order allows it.

        A family whose records stand far apart in the file comes once, whole.
        """
