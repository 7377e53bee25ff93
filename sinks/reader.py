"""The interfaces that searches read a build through, and the filters that all of them understand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Document, Vectors
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.fields import FILTERS, VALUE_TYPES
from chunksink.sinks.values import HALF

Value = str | int | bool

_BEYOND = 2**53  # above all whole numbers that are projected
_COMPARED = {
    int: "compared with whole numbers, not with",
    bool: "true or false, not",
    str: "compared with text, not with",
}


@dataclass(frozen=True)
class Filter:
    """A condition on one projected field: one of some values, or bounds that both count in.

    On a list (tags, authors) one member that fits is enough. A document without the field never passes.
    Values are compared as they are stored. What no document can hold (half a surrogate pair, a number beyond all that
    are projected) is refused: not every engine could read it.
    """

    field: str
    any_of: tuple[Value, ...] | None = None
    at_least: int | None = None
    at_most: int | None = None

    def __post_init__(self) -> None:
        kind = FILTERS.get(self.field)
        if kind is None:
            raise InvalidFilter(f"{self.field!r} cannot be filtered; these can: {', '.join(sorted(FILTERS))}")
        bounds = self.at_least is not None or self.at_most is not None
        if bounds and kind != "range":
            numbers = ", ".join(sorted(name for name, kind in FILTERS.items() if kind == "range"))
            raise InvalidFilter(f"{self.field!r} has no order to take bounds of; these have: {numbers}")
        if bounds == (self.any_of is not None):
            raise InvalidFilter(f"the filter on {self.field!r} needs either values or bounds")
        if isinstance(self.any_of, str):
            raise InvalidFilter(f"the values of {self.field!r} must be a list, not one string")
        for value in self.any_of or [bound for bound in (self.at_least, self.at_most) if bound is not None]:
            _check_value(self.field, value)

    def passes(self, document: Document) -> bool:
        """What every engine must agree with."""
        value = getattr(document, self.field)
        held = value if isinstance(value, tuple) else () if value is None else (value,)
        if self.any_of is not None:
            return any(value in self.any_of for value in held)
        low, high = self.at_least, self.at_most
        return any((low is None or one >= low) and (high is None or one <= high) for one in held)


def _check_value(field: str, value: Value) -> None:
    """Raise `InvalidFilter` where no document can have this value."""
    kind = VALUE_TYPES[field]
    if type(value) is not kind:
        raise InvalidFilter(f"{field} is {_COMPARED[kind]} {value!r:.100}")
    if HALF.search(value) if isinstance(value, str) else abs(value) >= _BEYOND:
        raise InvalidFilter(f"no {field} can be so: half a character, or too large a number")


def require_facets(fields: Sequence[str]) -> None:
    """Raise `InvalidFilter` where one of these fields has no values to count: they are those that can be filtered."""
    unknown = [field for field in fields if field not in FILTERS]
    if unknown:
        raise InvalidFilter(f"no facets of {', '.join(unknown)}; these have: {', '.join(sorted(FILTERS))}")


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


@dataclass(frozen=True)
class FacetValue:
    """A value of a field, and how many families among the answers have it."""

    value: Value
    families: int


class Reader(Protocol):
    """What both kinds share. A reader may be used by several threads, and beside a writer in any process. Every `limit`
    is 1 or more."""

    def marker(self) -> Marker | None:
        """Which build answers here."""

    def get(self, ids: Sequence[str]) -> list[Document]:
        """The documents with these ids, in this order; absent ones are left out."""

    def refresh(self) -> None:
        """See what was written since. Called when receipts or pointer moved; where it fails the old view stays."""

    def close(self) -> None:
        """Let go of the engine. May be called twice."""


class KeywordReader(Reader, Protocol):
    """An engine that finds words. Where it soon says whose a document is, it has `families` too, a `FamiliesOf`.

    Under a filter by `tenant_key` all answers depend on that tenant's documents alone, scores among them; what an
    engine cannot keep of this is in docs/tenants.md.
    """

    def search(self, query: str, limit: int = 10, filters: Sequence[Filter] = (), *, every: bool = False) -> list[Hit]:
        """The best documents for words as a person types them, best first; `"words in quotes"` must stand so in each.

        Without `every` an engine may answer with the best document of each family only.

        No input is an error. A blank query takes everything that the filters let through, in a stable order.
        """

    def snippets(self, query: str, ids: Sequence[str], filters: Sequence[Filter] = ()) -> dict[str, tuple[Piece, ...]]:
        """Of each of these documents a part of its text with what was searched for; of some there may be none. The
        filters, those of the search, say whose documents count where something is counted."""

    def most_score(self, query: str, filters: Sequence[Filter] = ()) -> float | None:
        """About what a document would score that has all that is looked for; None where that is not known."""

    def corrections(self, query: str, filters: Sequence[Filter] = ()) -> dict[str, str]:
        """By words of the query that no document holds which the filters let through: such a word as one does hold and
        that is written nearly so. Nothing from an engine that looks for those by itself."""

    def facets(
        self,
        query: str,
        fields: Sequence[str],
        filters: Sequence[Filter] = (),
        limit: int = 100,
        among: Sequence[str] | None = None,
    ) -> dict[str, list[FacetValue]]:
        """For each field its most frequent values among all that `search` would find without a limit; with `among`
        only what is of these families is counted."""


FamiliesOf = Callable[[Sequence[str]], Mapping[str, str]]
"""From ids of documents to the families of those of them that have a text, as far as they are known."""


def nobodys(_ids: Sequence[str]) -> Mapping[str, str]:
    return {}


class VectorReader(Reader, Protocol):
    def query(
        self, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), families: FamiliesOf = nobodys
    ) -> list[Hit]:
        """The nearest documents that have a text, best first; the score is the cosine similarity.

        What `families` tells need not be asked of an engine that takes longer to say it.
        """

    def similarities(self, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        """The cosine similarity of these documents; those that have no vector here are left out."""


class HybridReader(Reader, Protocol):
    """An engine that fuses words and meaning itself."""

    def hybrid(
        self, query: str, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), *, every: bool = False
    ) -> list[Hit]:
        """As `search`, by words and by the query's vector, half and half."""
