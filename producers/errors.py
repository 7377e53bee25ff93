"""Errors of the producers. Each docstring is the sentence its reader needs; messages add the facts.

ProducerError
├── SourceFailed        one source cannot become chunks; the others go on   (has the code for ledger and manifest)
└── IngestRefused       the whole run cannot start, nothing was written
"""


class ProducerError(Exception):
    """Something about a producer's input that its reader can act on."""


class SourceFailed(ProducerError):
    """The source was left out; its last good chunks stay."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class IngestRefused(ProducerError):
    """Nothing was read or written."""


CHUNKING_FAILED = "CHUNKING_FAILED"
SOURCE_UNREADABLE = "SOURCE_UNREADABLE"
SOURCE_CHANGED = "SOURCE_CHANGED"
SOURCE_NAME_INVALID = "SOURCE_NAME_INVALID"
SOURCE_EMPTY = "SOURCE_EMPTY"

MEANINGS: dict[str, tuple[str, str]] = {
    CHUNKING_FAILED: (
        "the source cannot be chunked as its specification says",
        "mend the source; the message says where",
    ),
    SOURCE_UNREADABLE: ("the source cannot be opened or read", "mend its permissions or its disk"),
    SOURCE_CHANGED: ("the source was written to while it was being read", "run again when its writer has finished"),
    SOURCE_NAME_INVALID: ("the source's name is not Unicode, so no record can carry it", "rename the file"),
    SOURCE_EMPTY: (
        "the source has no text; it is a document without chunks, not a failure",
        "nothing, if that is meant",
    ),
}
