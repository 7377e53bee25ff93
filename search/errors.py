"""Errors of search. Their messages are for the person who asks."""

from chunksink.chunkbus.errors import ChunksinkError


class SearchError(ChunksinkError):
    """A problem of a search or an evaluation, for the person who started it."""


class InvalidQuestion(SearchError):
    """The question is invalid. The message explains how to ask it."""


class NothingAnswered(SearchError):
    """No engine could answer. The message contains the reasons."""
