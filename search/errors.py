"""Errors of search. The docstring is the sentence its reader needs; messages add the facts."""

from chunksink.chunkbus.errors import ChunksinkError


class SearchError(ChunksinkError):
    """Something about a question that its asker can act on."""


class InvalidQuestion(SearchError):
    """The question cannot be asked like this; say it as the message tells."""


class NothingAnswered(SearchError):
    """No engine that was asked can answer; the message says why."""
