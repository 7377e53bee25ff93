"""A question to the index, validated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Literal, get_args

from chunksink.search.errors import InvalidQuestion
from chunksink.search.phrases import keyword_query
from chunksink.sinks.reader import Filter, Sort

Mode = Literal["hybrid", "keyword", "semantic", "engine"]
"""`engine` is the hybrid search of the keyword engine itself, such as Meilisearch's."""
MODES: tuple[Mode, ...] = get_args(Mode)

FusionName = Literal["scores", "ranks"]
FUSIONS: tuple[FusionName, ...] = get_args(FusionName)

KEYWORD, SEMANTIC, ENGINE = "keyword", "semantic", "engine"
LEGS_OF: dict[Mode, tuple[str, ...]] = {
    "hybrid": (KEYWORD, SEMANTIC),
    "keyword": (KEYWORD,),
    "semantic": (SEMANTIC,),
    "engine": (ENGINE,),
}

MAX_HITS = 10_000
MAX_CONTEXT = 20
MAX_FILTERS = 100
MAX_VALUES = 10_000
"""In all filters together. Some engines fail with more."""
MAX_CHARACTERS = 10_000
"""The most characters of a query: several pages. Longer queries take seconds and find nothing better."""


@dataclass(frozen=True)
class Question:
    """Asks for `limit` hits after the first `offset` ones. With `collapse` each source is one hit, its best chunk.
    `context` adds this many chunks before and after each hit. All filters must match; `facets` are fields to count.
    With `sort` the hits are all documents that have every word, sorted by that field. `spelling` is set by the search:
    it maps words that no document contains to those that keyword search looks for instead."""

    text: str
    mode: Mode = "hybrid"
    limit: int = 10
    offset: int = 0
    filters: tuple[Filter, ...] = ()
    facets: tuple[str, ...] = ()
    collapse: bool = True
    context: int = 0
    fusion: FusionName = "scores"
    sort: Sort | None = None
    spelling: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_types()
        if len(self.text) > MAX_CHARACTERS:
            raise InvalidQuestion(
                f"the query has {len(self.text):,} characters; at most {MAX_CHARACTERS:,} are allowed. Shorten it "
                "to the sentences that matter."
            )
        if self.mode not in MODES:
            raise InvalidQuestion(f"there is no mode {self.mode!r:.100}. Choose one of: {', '.join(MODES)}")
        if self.fusion not in FUSIONS:
            raise InvalidQuestion(f"there is no fusion {self.fusion!r:.100}. Choose one of: {', '.join(FUSIONS)}")
        if self.limit < 1:
            raise InvalidQuestion(f"limit is {self.limit}: it must be at least 1")
        if self.offset < 0:
            raise InvalidQuestion(f"offset is {self.offset}: it must be at least 0")
        if self.last > MAX_HITS:
            raise InvalidQuestion(
                f"hits {self.offset + 1} to {self.last} were requested; only the first {MAX_HITS} are available. "
                "Narrow the question with filters."
            )
        if self.sort is not None and self.mode not in ("hybrid", KEYWORD):
            raise InvalidQuestion(f"{self.mode} search cannot be sorted: use the mode {KEYWORD}")
        if self.sort is not None:
            object.__setattr__(self, "mode", KEYWORD)
        self._check_filters()
        if not 0 <= self.context <= MAX_CONTEXT:
            raise InvalidQuestion(f"context is {self.context}: it must be between 0 and {MAX_CONTEXT}")

    def _check_filters(self) -> None:
        values = sum(len(one.any_of or ()) for one in self.filters)
        if len(self.filters) > MAX_FILTERS or values > MAX_VALUES:
            raise InvalidQuestion(
                f"the question has {len(self.filters):,} filters with {values:,} values; at most {MAX_FILTERS} "
                f"filters with {MAX_VALUES:,} values in all are allowed"
            )

    def _check_types(self) -> None:
        """Not every caller uses a type checker."""
        if not isinstance(self.text, str):
            raise InvalidQuestion(f"the query must be a string, not {self.text!r:.100}")
        for name in ("limit", "offset", "context"):
            number = getattr(self, name)
            try:
                whole = index(number)  # numpy integers are not `int`
            except TypeError:
                whole = None
            if whole is None or isinstance(number, bool):
                raise InvalidQuestion(f"{name} must be a whole number, not {number!r:.100}")
            object.__setattr__(self, name, whole)
        if not isinstance(self.collapse, bool):
            raise InvalidQuestion(f"collapse must be True or False, not {self.collapse!r:.100}")

    @property
    def words(self) -> str:
        """The query for keyword engines."""
        return keyword_query(self.text, self.spelling)

    @property
    def last(self) -> int:
        """The number of the last requested hit."""
        return self.offset + self.limit
