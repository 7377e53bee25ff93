"""The plain data that the stages of an ingest hand to each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id


@dataclass(frozen=True, slots=True)
class Source:
    """One version of one file to read, and what the run stamps on every chunk that is made from it.

    `checksum` is the hex sha256 of the file's first `size` bytes. `created_at`, `producer` and `tenant` are the run's;
    a record that names its own tenant keeps it.
    """

    uri: str
    path: Path
    checksum: str
    size: int
    created_at: str
    producer: Record
    tenant: str | None = None

    @property
    def document_id(self) -> str:
        """The id of a document that is this whole file."""
        return derive_document_id(self.uri, self.checksum, tenant=self.tenant)


@dataclass(frozen=True, slots=True)
class Family:
    """All chunks of one document of one tenant, in order.

    `is_partial`: some of its parts could not be read. It does not replace a larger family of the same version.
    """

    chunks: Sequence[Record]
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Empty:
    """A document that has no text any more, by its family key: its chunks are removed."""

    family: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that did not become a chunk, or that became one otherwise than its author may expect.

    `code` is one of `codes` or of the contract's findings. Failures are reported one by one and keep the chunks of the
    last good reading; the rest is counted. `line` is the line of the file, or the number of the record in an array.
    """

    code: str
    reason: str
    line: int | None = None
    is_failure: bool = True


Item = Family | Empty | Notice
"""What a format yields, in an order that follows from the file alone."""
