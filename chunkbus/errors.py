"""Errors of the chunk bus. Validation reports bad data as a `Finding`; a writer refuses it with an error."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class ChunksinkError(Exception):
    """The base of every error that chunksink raises on purpose. Each can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Restores the message and the attributes. Exceptions would call the constructor with the message alone."""
        return ChunksinkError.__new__, (type(self), *self.args), self.__dict__


class ChunkBusError(ChunksinkError):
    """The base of the errors of the chunk bus."""


class NotCanonical(ChunkBusError):
    """The value has no canonical JSON form (RFC 8785)."""


class InvalidChunk(ChunkBusError):
    """The chunk breaks the contract."""


@dataclass(frozen=True)
class RepeatedId:
    """A line whose chunk_id also occurs on an earlier line."""

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
    """A key must have 1 to 128 of the characters A-Z a-z 0-9 . _ - and begin with a letter or digit."""


class NotABusRoot(ChunkBusError):
    """The folder does not exist, contains neither canonical/ nor manifest/, or a link in it leads outside."""


class PartitionChanged(ChunkBusError):
    """The partition was rewritten after it was read; read it again."""


class PartitionLocked(ChunkBusError):
    """Another process is writing this partition, or has just written it; wait for it, or run again."""


def extra_needed(extra: str) -> str:
    """How to install an extra, for messages."""
    return f"install the extra `{extra}` (in a checkout: pip install '.[{extra}]')"


class ExtraMissing(ChunkBusError):
    """A package is missing. Install the extra that the message names."""


class StorageError(ChunkBusError):
    """The storage cannot be reached or refuses a request. It does not mean that chunks are missing or invalid."""


class StorageDenied(StorageError):
    """The credentials are missing, wrong or expired, or lack a permission."""


class StorageEndpointInvalid(StorageError):
    """The endpoint in the environment is not a URL; correct the variable that the message names."""


class StorageConflict(StorageError):
    """Another writer created or changed this file first."""


class NewerStore(ChunkBusError):
    """A newer chunksink wrote this database; upgrade chunksink or move the file away."""


class StoreUnreadable(ChunkBusError):
    """The file is not a database of chunksink, or is damaged; move it away, and the next run makes a new one."""
