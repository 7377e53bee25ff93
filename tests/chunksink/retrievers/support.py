"""An open index over the legs of a test, with the same call as `chunksink.open()` gives."""

from __future__ import annotations

from chunksink.search.access import Access
from chunksink.search.answer import Answer
from chunksink.search.filters import Given, as_filters
from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question


class LegsIndex:
    def __init__(self, legs: Legs) -> None:
        self._legs = legs
        self.tenants: list[str | None] = []

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: Mode | None = None,
        filters: Given = None,
        tenant: str | None = None,
        collapse: bool = True,
        context: int = 0,
    ) -> Answer:
        self.tenants.append(tenant)
        question = Question(
            query, mode=mode or "hybrid", limit=limit, filters=as_filters(filters), collapse=collapse, context=context
        )
        return search(self._legs, question, Access(tenant))
