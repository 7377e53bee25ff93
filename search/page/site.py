"""The parts of the application, and the mapping of errors to HTTP responses."""

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic, perf_counter
from typing import Literal, Protocol, get_args

from chunksink.search.access import Access
from chunksink.search.answer import Answer, SearchService
from chunksink.search.errors import SearchError
from chunksink.search.page.callers import Caller, NotYours, Tokens
from chunksink.search.page.report import Report
from chunksink.search.page.security import Hosts
from chunksink.search.page.workers import Overloaded
from chunksink.search.question import LEGS_OF, Mode, Question
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.errors import InvalidFilter

HIDDEN = "not available right now"
"""Shown to readers instead of a reason, which may name servers and folders."""
_LOG_SECONDS = 60.0
_log = logging.getLogger("chunksink.search.page")


class LiveSearchService(SearchService, Protocol):
    """Searches the live generation."""

    def updated_at(self) -> str:
        """When the live index was last written."""


SearchProblem = Literal["invalid", "unavailable", "overloaded", "bug"]
"""Why a search was not answered."""
SEARCH_PROBLEMS: tuple[SearchProblem, ...] = get_args(SearchProblem)


class Metrics(Protocol):
    """Counts searches, and writes them for a monitoring system. Thread-safe."""

    def answered(self, mode: Mode, seconds: float, failed: Collection[str]) -> None:
        """`failed` are the legs that the answer lacks."""

    def failed(self, reason: SearchProblem) -> None: ...

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All metrics and their media type, in the best form that this `Accept` header allows."""


class Outages:
    """Logs when a kind of search becomes unavailable, and when it answers again: for each kind at most one line a
    minute. Reasons are not logged, because they may repeat the query. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logged: dict[str, tuple[bool, float]] = {}  # whether it was unavailable, and when that was logged

    def note(self, kind: str, *, answered: bool) -> None:
        now = monotonic()
        with self._lock:
            was_unavailable, at = self._logged.get(kind, (False, -inf))
            if was_unavailable != answered or now - at < _LOG_SECONDS:
                return
            self._logged[kind] = not answered, now
        if answered:
            _log.warning("%s search is available again", kind, extra={"severity": "info"})
        else:
            _log.warning("%s search is unavailable: `chunksink doctor` shows the reason", kind)


@dataclass(frozen=True)
class Site:
    """`unready` are errors that mean "not available yet" or "not available now". One of them, `unbuilt`, means that
    there is no index yet. Any other error, except search errors and overload, is a bug.

    `source_url` is put before relative sources to make links. `default_mode` is the mode of questions that name none.
    Without `metrics` nothing is counted.
    """

    service: LiveSearchService
    report: Callable[[], Report]
    tokens: Tokens
    hosts: Hosts
    unready: tuple[type[Exception], ...]
    unbuilt: type[Exception]
    tenants_required: bool = False
    fields: FieldSet = NO_FIELDS
    default_mode: Mode = "hybrid"
    source_url: str | None = None
    version: str = ""
    metrics: Metrics | None = None
    outages: Outages = field(default_factory=Outages)

    def ask(self, question: Question, access: Access) -> Answer:
        """Search, and log which legs fail or answer again."""
        try:
            answer = self.service.search(question, access)
        except (SearchError, InvalidFilter):
            raise
        except self.unready:
            self.outages.note("every", answered=False)
            raise
        self.outages.note("every", answered=True)
        for leg in LEGS_OF[question.mode]:
            self.outages.note(leg, answered=leg not in answer.unavailable)
        return answer

    def search(self, question: Question, access: Access, caller: Caller) -> Answer:
        """Answer a reader's question, and count it. Only callers who may see everything get reasons for failures."""
        answer = self._counted(question, access)
        if caller.sees_all:
            return answer
        not_reranked = HIDDEN if answer.not_reranked is not None else None
        return replace(answer, unavailable=dict.fromkeys(answer.unavailable, HIDDEN), not_reranked=not_reranked)

    def _counted(self, question: Question, access: Access) -> Answer:
        if self.metrics is None:
            return self.ask(question, access)
        began = perf_counter()
        try:
            answer = self.ask(question, access)
        except Exception as error:
            is_invalid = isinstance(error, SearchError | InvalidFilter)
            reason: SearchProblem = "unavailable" if isinstance(error, self.unready) else "bug"
            self.metrics.failed("invalid" if is_invalid else reason)
            raise
        if answer.answered:
            self.metrics.answered(question.mode, perf_counter() - began, answer.unavailable)
        else:
            self.metrics.failed("unavailable")
        return answer

    def problem(self, error: Exception, caller: Caller) -> "HttpProblem":
        """The response to an error; unknown errors are raised again.

        Engine messages may name addresses and folders, so only callers who may see everything get them.
        """
        if isinstance(error, NotYours):
            return HttpProblem(403, str(error))
        if isinstance(error, SearchError | InvalidFilter):
            return HttpProblem(400, str(error))
        if isinstance(error, Overloaded):
            if self.metrics is not None:
                self.metrics.failed("overloaded")
            return HttpProblem(503, str(error))
        if isinstance(error, self.unready):
            hidden = "The search is not available right now. Please try again later."
            return HttpProblem(503, str(error) if caller.sees_all else hidden)
        raise error


@dataclass(frozen=True)
class HttpProblem:
    status: int
    message: str


def unanswered(answer: Answer) -> HttpProblem | None:
    """The problem to report if no leg answered: an empty list of hits would be wrong."""
    return None if answer.answered else HttpProblem(503, answer.outage)
