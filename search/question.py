"""A question to the index, validated."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from chunksink.search.errors import InvalidQuestion
from chunksink.sinks.reader import Filter

Mode = Literal["hybrid", "keyword", "semantic", "engine"]
"""`engine` is the hybrid search of the keyword engine itself, such as Meilisearch's."""
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "semantic", "engine")

FusionName = Literal["scores", "ranks"]
FUSIONS: tuple[FusionName, ...] = ("scores", "ranks")

KEYWORD, SEMANTIC, ENGINE = "keyword", "semantic", "engine"
LEGS_OF: dict[Mode, tuple[str, ...]] = {
    "hybrid": (KEYWORD, SEMANTIC),
    "keyword": (KEYWORD,),
    "semantic": (SEMANTIC,),
    "engine": (ENGINE,),
}

MOST_HITS = 10_000
MOST_CONTEXT = 20
MOST_FILTERS = 100
MOST_VALUES = 10_000
"""In all filters together. Some engines cannot read more."""
MOST_CHARACTERS = 10_000
"""Of a query, several pages. A longer one takes seconds and finds nothing better."""


@dataclass(frozen=True)
class Question:
    """`limit` hits after the first `offset` ones. With `collapse` each source answers once, by its best chunk; with
    `context` each hit brings so many chunks before and after it. Filters all hold; `facets` are fields to count."""

    text: str
    mode: Mode = "hybrid"
    limit: int = 10
    offset: int = 0
    filters: tuple[Filter, ...] = ()
    facets: tuple[str, ...] = ()
    collapse: bool = True
    context: int = 0
    fusion: FusionName = "scores"

    def __post_init__(self) -> None:
        self._check_types()
        if len(self.text) > MOST_CHARACTERS:
            raise InvalidQuestion(
                f"the query has {len(self.text):,} characters, at most {MOST_CHARACTERS:,} can be asked: ask with the "
                "sentences that matter"
            )
        require_mode(self.mode)
        if self.fusion not in FUSIONS:
            raise InvalidQuestion(f"there is no fusion {self.fusion!r:.100}; these are: {', '.join(FUSIONS)}")
        if self.limit < 1:
            raise InvalidQuestion(f"limit is {self.limit}: it begins at 1")
        if self.offset < 0:
            raise InvalidQuestion(f"offset is {self.offset}: it begins at 0")
        if self.last > MOST_HITS:
            raise InvalidQuestion(
                f"hits {self.offset + 1} to {self.last} were asked for: they end at {MOST_HITS}; narrow the question "
                "with filters to see further"
            )
        self._check_filters()
        if not 0 <= self.context <= MOST_CONTEXT:
            raise InvalidQuestion(f"{self.context} chunks of context: 0 to {MOST_CONTEXT} can be asked for")

    def _check_filters(self) -> None:
        values = sum(len(one.any_of or ()) for one in self.filters)
        if len(self.filters) > MOST_FILTERS or values > MOST_VALUES:
            raise InvalidQuestion(
                f"the question has {len(self.filters):,} filters with {values:,} values: at most {MOST_FILTERS} "
                f"filters with {MOST_VALUES:,} values in all can be asked; ask for fewer at a time"
            )

    def _check_types(self) -> None:
        """Callers without type checks exist, too."""
        if not isinstance(self.text, str):
            raise InvalidQuestion(f"the query is a text, not {self.text!r:.100}")
        for name in ("limit", "offset", "context"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int):
                raise InvalidQuestion(f"{name} is a whole number, not {number!r:.100}")
        for one in self.filters:
            if not isinstance(one, Filter):
                raise InvalidQuestion(f"{one!r:.100} is no Filter: make one, or have search.filters read it")
        if not isinstance(self.collapse, bool):
            raise InvalidQuestion(f"collapse is True or False, not {self.collapse!r:.100}")
        if isinstance(self.facets, str):
            raise InvalidQuestion(f"the facets {self.facets!r:.100} are no list: give a list of fields")
        for field in self.facets:
            if not isinstance(field, str):
                raise InvalidQuestion(f"{field!r:.100} is no field to count: give the names of fields")

    @property
    def last(self) -> int:
        """The number of hits that must be known."""
        return self.offset + self.limit


def as_fields(given: object) -> tuple[Any, ...]:
    """The requested facets, from one field, several, or None."""
    if given is None or isinstance(given, str):
        return () if given is None else (given,)
    if not isinstance(given, Iterable):
        raise InvalidQuestion(f"the facets {given!r:.100} are no list: give a list of fields")
    return tuple(given)


def require_mode(mode: object) -> None:
    if mode not in MODES:
        raise InvalidQuestion(f"there is no mode {mode!r:.100}; these are: {', '.join(MODES)}")
