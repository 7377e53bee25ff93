"""The interfaces for searching a build, and the filters that all of them support."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

from chunksink.settings.fields import NAME
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import CUSTOM, LISTS, Document, Vectors
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.fields import FILTERS, SORTABLE, VALUE_TYPES
from chunksink.sinks.values import LONE_SURROGATE

Value = str | int | float | bool

_BEYOND = 2**53  # above all projected numbers
_COMPARED = {
    int: "compared with whole numbers, not with",
    bool: "true or false, not",
    str: "compared with text, not with",
}
WILDCARDS = re.compile(r"[*?]")


def is_custom(field: str) -> bool:
    """Whether this is a valid name of a custom field. Engines write the name into their queries unquoted."""
    return field.startswith(CUSTOM) and NAME.fullmatch(field.removeprefix(CUSTOM)) is not None


@dataclass(frozen=True)
class Filter:
    """A condition on one field of documents: a set of values, inclusive bounds, or patterns.

    A custom field is named as in documents, `fields.NAME`; `is_list` is true for one that contains lists. A list (tags,
    authors) passes if one member does. A document without the field never passes. Comparison is exact. In a pattern `*`
    matches any text, including `/`, and `?` any character. A value that no document can have (a lone surrogate, a
    number of 2^53 or more) is refused, because not every engine can read it.
    """

    field: str
    any_of: tuple[Value, ...] | None = None
    at_least: float | None = None
    at_most: float | None = None
    like: tuple[str, ...] | None = None
    is_list: bool = False

    def __post_init__(self) -> None:
        if not is_custom(self.field):
            self._check_field()
            object.__setattr__(self, "is_list", self.field in LISTS)
        if self.like is not None and FILTERS.get(self.field) != "pattern":
            names = ", ".join(sorted(name for name, kind in FILTERS.items() if kind == "pattern"))
            raise InvalidFilter(f"{self.field!r} does not support patterns. Fields with patterns: {names}")
        bounds = self.at_least is not None or self.at_most is not None
        if bounds + (self.any_of is not None) + (self.like is not None) != 1:
            raise InvalidFilter(f"the filter on {self.field!r} needs either values, bounds or patterns")
        for values in (self.any_of, self.like):
            if isinstance(values, str):
                raise InvalidFilter(f"the values of {self.field!r} must be a list, not one string")
        limits = [bound for bound in (self.at_least, self.at_most) if bound is not None]
        for value in (*(self.any_of or ()), *(self.like or ()), *limits):
            _check_value(self.field, value)

    def _check_field(self) -> None:
        kind = FILTERS.get(self.field)
        if kind is None:
            raise InvalidFilter(f"{self.field!r} cannot be filtered. Fields to filter by: {', '.join(sorted(FILTERS))}")
        if kind != "range" and (self.at_least is not None or self.at_most is not None):
            numbers = ", ".join(sorted(name for name, kind in FILTERS.items() if kind == "range"))
            raise InvalidFilter(f"{self.field!r} does not support bounds. Fields with bounds: {numbers}")

    @property
    def custom(self) -> str | None:
        """The name of the custom field; None for a field of chunksink."""
        return self.field.removeprefix(CUSTOM) if is_custom(self.field) else None

    def passes(self, document: Document) -> bool:
        """Whether the document passes. Every engine must return the same result."""
        return self.accepts(value_of(document, self.field))

    def accepts(self, value: Any) -> bool:
        """Whether a document with this value of the field passes."""
        members = value if isinstance(value, tuple | list) else () if value is None else (value,)
        if self.any_of is not None:
            return any(member in self.any_of for member in members)
        if self.like is not None:
            return any(_expression(pattern).fullmatch(member) for pattern in self.like for member in members)
        low, high = self.at_least, self.at_most
        return any((low is None or one >= low) and (high is None or one <= high) for one in members)


def value_of(document: Document, field: str) -> Any:
    """The value of a field or custom field; None if the document lacks it."""
    return document.fields.get(field.removeprefix(CUSTOM)) if is_custom(field) else getattr(document, field)


@dataclass(frozen=True)
class Sort:
    """An order by one field; documents without it are last."""

    field: str
    descending: bool = False

    def __post_init__(self) -> None:
        if self.field not in SORTABLE and not is_custom(self.field):
            raise InvalidFilter(f"cannot sort by {self.field!r}. Fields to sort by: {', '.join(SORTABLE)}")


@lru_cache(maxsize=64)
def _expression(pattern: str) -> re.Pattern[str]:
    wildcards = {"*": ".*", "?": "."}
    return re.compile("".join(wildcards.get(one) or re.escape(one) for one in pattern), re.DOTALL)


def prefix_of(pattern: str) -> str | None:
    """The prefix that a pattern such as `docs/*` requires; None if the pattern requires more than a prefix."""
    return pattern[:-1] if pattern.endswith("*") and not WILDCARDS.search(pattern[:-1]) else None


def _check_value(field: str, value: Value) -> None:
    """Raise `InvalidFilter` if no document can have this value."""
    kind = VALUE_TYPES.get(field)
    if kind is None and not isinstance(value, str | int | float):
        raise InvalidFilter(f"{field} is compared with text, numbers, true or false, not with {value!r:.100}")
    if kind is not None and type(value) is not kind:
        raise InvalidFilter(f"{field} is {_COMPARED[kind]} {value!r:.100}")
    if LONE_SURROGATE.search(value) if isinstance(value, str) else not abs(value) < _BEYOND:
        raise InvalidFilter(f"invalid value for {field}: a lone surrogate, or a number of 2^53 or more")


def require_facets(fields: Sequence[str]) -> None:
    """Raise `InvalidFilter` if one of these fields has no facets. All fields that can be filtered have facets."""
    unknown = [field for field in fields if field not in FILTERS and not is_custom(field)]
    if unknown:
        raise InvalidFilter(f"no facets for {', '.join(unknown)}. Fields with facets: {', '.join(sorted(FILTERS))}")


@dataclass(frozen=True)
class Piece:
    """A part of a snippet; `match` marks a search match. Plain text: escape it for display."""

    text: str
    match: bool = False


def after_marks(text: str, place: int) -> int:
    """The next place where a cut splits no character: not before a vowel sign or another combining mark."""
    while place < len(text) and unicodedata.category(text[place]).startswith("M"):
        place += 1
    return place


def marked(text: str, matches: Iterable[tuple[int, int]]) -> tuple[Piece, ...]:
    """The text in pieces. `matches` are the places of the matches, in order. Overlapping ones become one piece. Pieces
    consist of whole characters: a match that begins inside a character is not marked."""
    bounds = [0]
    for start, end in matches:
        if start < bounds[-1]:
            bounds[-1] = max(bounds[-1], after_marks(text, end))
        elif after_marks(text, start) == start:
            bounds += [start, after_marks(text, end)]
    parts = enumerate(pairwise([*bounds, len(text)]))
    return tuple(Piece(text[start:end], number % 2 == 1) for number, (start, end) in parts if start < end)


@dataclass(frozen=True)
class Hit:
    """One document found. A higher score is better; compare scores only within one answer."""

    id: str
    parent_id: str
    score: float


@dataclass(frozen=True)
class FacetValue:
    """A value of a field, and how many of the families found have it."""

    value: Value
    families: int


class Reader(Protocol):
    """The methods of every reader. Several threads may use one, even while a process writes. `limit` is at least 1."""

    def marker(self) -> Marker | None:
        """The marker of the build."""

    def get(self, ids: Sequence[str]) -> list[Document]:
        """The documents with these ids, in this order; absent ones are left out."""

    def refresh(self) -> None:
        """Make later writes visible. If that fails, the reader keeps its old view."""

    def close(self) -> None:
        """Release the engine. May be called twice."""


class KeywordReader(Reader, Protocol):
    """Keyword search. Optional: `SupportsFamilies`, `SupportsPatterns`.

    Under a filter by `tenant_key` all answers, including scores, depend on that tenant's documents alone.
    docs/tenants.md lists the exceptions of each engine.
    """

    def search(
        self,
        query: str,
        limit: int = 10,
        filters: Sequence[Filter] = (),
        *,
        every: bool = False,
        sort: Sort | None = None,
    ) -> list[Hit]:
        """The best documents for a typed query, best first. Every hit contains `"words in quotes"` exactly.

        Without `every` an engine may return only the best document of each family. A query never raises an error,
        whatever was typed. A blank query finds everything that passes the filters, in a stable order. With `sort` the
        hits are the documents that have every word, ordered by that field.
        """

    def snippets(self, query: str, ids: Sequence[str], filters: Sequence[Filter] = ()) -> dict[str, tuple[Piece, ...]]:
        """The texts of these documents, or parts of them around the matches, by id; some may have none. `filters` are
        those of the search. An engine that prefers parts with rare words counts the words in the tenant's documents
        only."""

    def max_score(self, query: str, filters: Sequence[Filter] = ()) -> float | None:
        """The approximate score of an ideal document, which has every word of the query. None if the caller should use
        the score of the best hit instead: the engine does not know it, or some document has every word."""

    def corrections(self, query: str, filters: Sequence[Filter] = ()) -> dict[str, str]:
        """A similar word for each query word that is missing from all documents that pass the filters. Empty for an
        engine that tolerates typos itself."""

    def missing_identifiers(self, query: str, filters: Sequence[Filter] = ()) -> list[str]:
        """The words with digits or underscores (ERR-1299, max_size) that no document that passes the filters has, in
        any spelling that `search` finds. Of many in a query, only the first are checked."""

    def facets(
        self,
        query: str,
        fields: Sequence[str],
        filters: Sequence[Filter] = (),
        limit: int = 100,
        among: Sequence[str] | None = None,
    ) -> dict[str, list[FacetValue]]:
        """The most frequent values of each field among all documents that `search` finds without a limit. With `among`
        only these families are counted."""


FamiliesOf = Callable[[Sequence[str]], Mapping[str, str]]
"""Maps document ids to families. Unknown documents and documents without text are left out."""


def no_families(_ids: Sequence[str]) -> Mapping[str, str]:
    return {}


class VectorReader(Reader, Protocol):
    """Vector search. Optional: `SupportsNearest`."""

    def query(
        self, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), families: FamiliesOf = no_families
    ) -> list[Hit]:
        """The nearest documents that have a text, best first; the score is the cosine similarity.

        `families` returns the family of a hit faster than the engine.
        """

    def similarities(self, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        """The cosine similarity of these documents; those without a vector are left out."""


class HybridReader(Reader, Protocol):
    """An engine that fuses keyword and vector search itself."""

    def hybrid(
        self, query: str, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), *, every: bool = False
    ) -> list[Hit]:
        """Like `search`, with equal weight for the words and the vector of the query."""
