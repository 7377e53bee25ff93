"""Errors of the chunk bus. Each docstring is the sentence its reader needs; messages add the facts.

    ChunkBusError                a ChunksinkError, like the base of every other package
    ├── NotCanonical        a value has no canonical JSON form
    ├── InvalidChunk        a producer asked for a chunk that the contract forbids
    │   └── RepeatedChunks  ... for several with one chunk_id   (has their lines)
    ├── InvalidManifest     a manifest cannot be read or lacks what the contract asks for
    ├── InvalidPartitionKey a partition key could be a path, or an engine would not keep it
    ├── NotABusRoot         a folder holds neither canonical/ nor manifest/
    ├── PartitionChanged    a record read by its offset is no longer the one that was recorded
    ├── PartitionLocked     another process is writing the same partition
    ├── NewerStore          a database was written by a newer chunksink
    └── StoreUnreadable     a file of ours is not a database

What is wrong with *data* is not an exception but a `Finding` (see `findings`).
"""

from collections.abc import Sequence
from dataclasses import dataclass


class ChunksinkError(Exception):
    """The base of every error that chunksink raises on purpose."""


class ChunkBusError(ChunksinkError):
    """Something about the chunk bus that its reader can act on."""


class NotCanonical(ChunkBusError):
    """The value has no canonical JSON form (RFC 8785)."""


class InvalidChunk(ChunkBusError):
    """The chunk breaks the contract."""


@dataclass(frozen=True)
class RepeatedId:
    """A line whose chunk_id an earlier line has too."""

    chunk_id: str
    line: int
    earlier_line: int


class RepeatedChunks(InvalidChunk):
    """Chunks of one partition share a chunk_id."""

    def __init__(self, message: str, repeated: Sequence[RepeatedId]) -> None:
        super().__init__(message)
        self.repeated = repeated


class InvalidManifest(ChunkBusError):
    """The manifest breaks the contract."""


class InvalidPartitionKey(ChunkBusError):
    """A partition key is 1 to 128 characters of A-Z a-z 0-9 . _ - and begins with a letter or digit."""


class NotABusRoot(ChunkBusError):
    """A bus root is a folder with canonical/ and manifest/ in it."""


class PartitionChanged(ChunkBusError):
    """The partition was rewritten since it was read; read it again."""


class PartitionLocked(ChunkBusError):
    """Another process is writing this partition; wait for it or end it."""


class NewerStore(ChunkBusError):
    """A newer chunksink wrote this database; upgrade chunksink or move the file away."""


class StoreUnreadable(ChunkBusError):
    """The file is not a database of chunksink; move it away to start anew."""
