"""Search errors. Their messages are for the person who searches."""

from chunksink.chunkbus.errors import ChunksinkError


class SearchError(ChunksinkError):
    """A search or an evaluation failed. The message is for the person who started it."""


class InvalidQuestion(SearchError):
    """The question is invalid. The message explains how to ask it."""


class NothingAnswered(SearchError):
    """No engine could answer. The message contains the reasons."""
