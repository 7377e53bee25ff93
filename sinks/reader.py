"""The interfaces that searches read a build through, and the filters that all of them understand."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sinks.document import Document, Vectors
from sinks.errors import InvalidFilter
from sinks.fields import FILTERS
from sinks.sink import Marker

Value = str | int | bool


@dataclass(frozen=True)
class Filter:
    """A condition on one projected field: one of some values, or bounds that both count in.

    On a list (tags, authors) one member that fits is enough. A document without the field never passes.
    Values are compared as they are stored; an engine may fold case.
    """

    field: str
    any_of: tuple[Value, ...] | None = None
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        kind = FILTERS.get(self.field)
        if kind is None:
            raise InvalidFilter(f"{self.field!r} cannot be filtered; these can: {', '.join(sorted(FILTERS))}")
        bounds = self.at_least is not None or self.at_most is not None
        if bounds and kind != "range":
            numbers = ", ".join(sorted(name for name, kind in FILTERS.items() if kind == "range"))
            raise InvalidFilter(f"{self.field!r} has no order to take bounds of; these have: {numbers}")
        if any(bound is not None and not math.isfinite(bound) for bound in (self.at_least, self.at_most)):
            raise InvalidFilter(f"the bounds of {self.field!r} must be finite numbers")
        if bounds == (self.any_of is not None):
            raise InvalidFilter(f"the filter on {self.field!r} needs either values or bounds")


@dataclass(frozen=True)
class Piece:
    """A run of a snippet; `match` where it is what was searched for. Plain text: whoever shows it escapes it."""

    text: str
    match: bool = False


@dataclass(frozen=True)
class Hit:
    """One document that answers. A higher score is better; scores compare within one answer only."""

    id: str
    parent_id: str
    score: float
    snippet: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class FacetValue:
    """A value of a field, and how many families among the answers have it."""

    value: Value
    families: int


class Reader(Protocol):
    """What both kinds share. A reader may be used by several threads, and beside a writer in any process."""

    def marker(self) -> Marker | None:
        """Which build answers here."""

    def get(self, ids: Sequence[str]) -> list[Document]:
        """The documents with these ids, in this order; absent ones are left out."""

    def refresh(self) -> None:
        """See what was written since. Called when receipts or pointer moved; where it fails the old view stays."""

    def close(self) -> None:
        """Let go of the engine. May be called twice."""


class KeywordReader(Reader, Protocol):
    def search(self, query: str, limit: int = 10, filters: Sequence[Filter] = ()) -> list[Hit]:
        """The best documents for words as a person types them, best first; `"words in quotes"` are a phrase.

        No input is an error. A blank query takes everything that the filters let through, in a stable order.
        """

    def facets(
        self, query: str, fields: Sequence[str], filters: Sequence[Filter] = (), limit: int = 100
    ) -> dict[str, list[FacetValue]]:
        """For each field its most frequent values among all that `search` would find without a limit."""


class VectorReader(Reader, Protocol):
    def query(self, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = ()) -> list[Hit]:
        """The nearest documents, best first; the score is the cosine similarity."""
