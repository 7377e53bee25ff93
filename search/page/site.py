"""The parts of the application, and the mapping of errors to HTTP responses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from chunksink.search.answer import Answer, Answers
from chunksink.search.errors import SearchError
from chunksink.search.page.callers import Caller, NotYours, Tokens
from chunksink.search.page.report import Report
from chunksink.search.page.security import Hosts
from chunksink.search.page.workers import Overloaded
from chunksink.search.question import LEGS_OF, Mode
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.errors import InvalidFilter

HIDDEN = "not available right now"
"""Shown to readers instead of a reason, which may name servers and folders."""


class LiveAnswers(Answers, Protocol):
    """Answers from the live generation."""

    def updated_at(self) -> str:
        """When the live index was last written."""


@dataclass(frozen=True)
class Site:
    """`unready` are errors that mean "not available yet" or "not available now". Any other error is a bug.

    `source_url` is put before relative sources to make links. `usual_mode` is the mode of questions that name none.
    """

    answers: LiveAnswers
    report: Callable[[], Report]
    tokens: Tokens
    hosts: Hosts
    unready: tuple[type[Exception], ...]
    tenants_required: bool = False
    fields: FieldSet = NO_FIELDS
    usual_mode: Mode = "hybrid"
    source_url: str | None = None
    version: str = ""

    def unanswered(self, answer: Answer, caller: Caller) -> "HttpProblem | None":
        """The problem to report if no leg answered: an empty list of hits would be wrong."""
        if answer.answered:
            return None
        reasons = [
            f"no answer from {leg} search: {answer.unavailable[leg] if caller.sees_all else HIDDEN}"
            for leg in LEGS_OF[answer.mode]
            if leg in answer.unavailable
        ]
        return HttpProblem(503, "; ".join(reasons))

    def problem(self, error: Exception, caller: Caller) -> "HttpProblem":
        """The response to an error; unknown errors are raised again.

        Messages of engines may name addresses and folders, so only callers who may see everything get them.
        """
        if isinstance(error, NotYours):
            return HttpProblem(403, str(error))
        if isinstance(error, SearchError | InvalidFilter):
            return HttpProblem(400, str(error))
        if isinstance(error, Overloaded):
            return HttpProblem(503, str(error))
        if isinstance(error, self.unready):
            hidden = "The search is not available right now. Please try again later."
            return HttpProblem(503, str(error) if caller.sees_all else hidden)
        raise error


@dataclass(frozen=True)
class HttpProblem:
    status: int
    message: str
