"""An index over the legs of a test, which is searched like the result of `chunksink.open()`."""

from __future__ import annotations

from chunksink.search.access import Access
from chunksink.search.answer import Answer
from chunksink.search.filters import FilterArgument, as_filters
from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.settings.fields import FieldOptions
from chunksink.sinks.custom_fields import FieldSet
from tests.search.support import family

CUSTOM = FieldSet.of({"priority": FieldOptions(type="number"), "due": FieldOptions(type="datetime")})
TICKETS = [
    family("a.md", "a cat", custom=CUSTOM, metadata={"priority": 1, "due": "2026-05-31"}),
    family("b.md", "a cat", custom=CUSTOM, metadata={"priority": 2, "due": "2026-01-31", "note": "kept"}),
]


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
        filters: FilterArgument = None,
        tenant: str | None = None,
        collapse: bool,
        context: int = 0,
    ) -> Answer:
        self.tenants.append(tenant)
        question = Question(
            query,
            mode=mode or "hybrid",
            limit=limit,
            filters=as_filters(filters, self._legs.fields),
            collapse=collapse,
            context=context,
        )
        return search(self._legs, question, Access(tenant))
