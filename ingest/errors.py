"""Errors of an ingest. A problem of one source or record is reported as a `Notice`. The errors below end the reading of
that source or record, or the whole run.

IngestError
├── NotRead             carries the code and the reason
│   ├── SourceFailed    one source cannot become chunks; the others are read
│   └── RecordRefused   one record of a file cannot become a chunk; the others are read
├── IngestRefused       the run stopped before it wrote anything
│   ├── IngestBrake     it would remove too many chunks
│   └── ReaderKilled    a process that reads files was killed
└── IngestBusy          another run uses the home, or has changed the registered folders: try again later
"""

from chunksink.chunkbus.errors import ChunksinkError


class IngestError(ChunksinkError):
    """An error of an ingest."""


class NotRead(IngestError):
    """A source or a record was skipped."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class SourceFailed(NotRead):
    """The source was skipped; its last good chunks stay."""


class RecordRefused(NotRead):
    """The record was skipped; the rest of the file is read."""


class IngestRefused(IngestError):
    """The run stopped before it wrote anything."""


class IngestBrake(IngestRefused):
    """A large share of the chunks, or all of a folder, would be removed; nothing was written."""


class ReaderKilled(IngestRefused):
    """A process that reads files was killed, probably for lack of memory; nothing was written."""


class IngestBusy(IngestError):
    """Another ingest uses this home, or has changed the registered folders of this bus root."""
