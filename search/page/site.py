"""What the application is made of, given by whoever starts it."""

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
from chunksink.sinks.errors import InvalidFilter

HIDDEN = "not available right now"
"""Shown to readers instead of a reason, which may name servers and folders."""


class LiveAnswers(Answers, Protocol):
    """Answers from the live generation."""

    def updated_at(self) -> str:
        """When the live index was last written."""


@dataclass(frozen=True)
class Site:
    """`unready` are errors that say that something is not there yet, or not now; any other one is a bug.

    With `source_url` before them, relative sources become links. `usual_mode` is that of a question which names none.
    """

    answers: LiveAnswers
    report: Callable[[], Report]
    tokens: Tokens
    hosts: Hosts
    unready: tuple[type[Exception], ...]
    tenants_required: bool = False
    usual_mode: Mode = "hybrid"
    source_url: str | None = None
    version: str = ""

    def unanswered(self, answer: Answer, caller: Caller) -> "HttpProblem | None":
        """Where nobody could be asked, an answer without hits would look as if there were none."""
        if answer.answered:
            return None
        told = [
            f"no answer of {leg} search: {answer.unavailable[leg] if caller.sees_all else HIDDEN}"
            for leg in LEGS_OF[answer.mode]
            if leg in answer.unavailable
        ]
        return HttpProblem(503, "; ".join(told))

    def problem(self, error: Exception, caller: Caller) -> "HttpProblem":
        """What is told of an error; one that is not known is raised again.

        A message of an engine may name addresses and folders: it is for those who may see everything.
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
